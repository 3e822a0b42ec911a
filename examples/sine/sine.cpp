#include <rushlight/rushlight.h>

#include <iostream>

using namespace rushlight;

int main() {
  manual_seed(0);
  Tensor x = linspace(-3, 3, 256).unsqueeze(1);
  Tensor y = sin(2 * x) + 0.1 * randn({256, 1});

  nn::Sequential model{nn::Linear(1, 64), nn::GELU(), nn::Linear(64, 64), nn::GELU(),
                       nn::Linear(64, 1)};
  optim::AdamW optimizer(model->parameters(), optim::AdamWOptions(1e-2));

  for (int step = 0; step <= 500; ++step) {
    Tensor loss = mse_loss(model->forward(x), y);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (step % 100 == 0) {
      std::cout << step << " " << loss.item().to_double() << "\n";
    }
  }
  std::cout << model->forward(full({1, 1}, 0.5)) << "\n";
}
