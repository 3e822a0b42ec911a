// A program as libtorch's users write them: a small convolutional network learns which quarter of
// an image is bright. Prints the loss and the accuracy, then what was saved and read back.
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <iostream>
#include <string>

struct Quarters : torch::data::datasets::Dataset<Quarters> {
  explicit Quarters(int64_t count) {
    targets_ = torch::randint(0, 4, {count}, torch::kInt64);
    images_ = torch::rand({count, 1, 12, 12}, torch::TensorOptions().dtype(torch::kFloat32));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t quarter = targets_[i].item<int64_t>();
      images_[i][0]
          .slice(0, 6 * (quarter / 2), 6 * (quarter / 2) + 6)
          .slice(1, 6 * (quarter % 2), 6 * (quarter % 2) + 6)
          .add_(0.5);
    }
  }
  torch::data::Example<> get(size_t index) override {
    return {images_[static_cast<int64_t>(index)], targets_[static_cast<int64_t>(index)]};
  }
  torch::optional<size_t> size() const override { return targets_.size(0); }

 private:
  torch::Tensor images_, targets_;
};

struct Net : torch::nn::Module {
  Net()
      : conv1(torch::nn::Conv2dOptions(1, 8, /*kernel_size=*/3)),
        conv2(torch::nn::Conv2dOptions(8, 16, /*kernel_size=*/3)),
        fc1(16, 32),
        fc2(32, 4) {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }

  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(torch::max_pool2d(conv1->forward(x), 2));
    x = torch::relu(torch::max_pool2d(conv2->forward(x), {2, 2}));
    x = x.mean({2, 3});
    x = torch::relu(fc1->forward(x.view({-1, 16})));
    x = torch::dropout(x, /*p=*/0.1, /*train=*/is_training());
    x = fc2->forward(x);
    return torch::log_softmax(x, /*dim=*/1);
  }

  torch::nn::Conv2d conv1;
  torch::nn::Conv2d conv2;
  torch::nn::Linear fc1;
  torch::nn::Linear fc2;
};

template <typename Loader>
void train(size_t epoch, Net& model, torch::Device device, Loader& loader,
           torch::optim::Optimizer& optimizer) {
  model.train();
  double total = 0;
  size_t count = 0;
  for (auto& batch : loader) {
    auto data = batch.data.to(device), targets = batch.target.to(device);
    optimizer.zero_grad();
    auto output = model.forward(data);
    auto loss = torch::nll_loss(output, targets);
    loss.backward();
    torch::nn::utils::clip_grad_norm_(model.parameters(), 5.0);
    optimizer.step();
    total += loss.template item<float>();
    ++count;
  }
  std::printf("epoch %zu %.6f\n", epoch, total / static_cast<double>(count));
}

template <typename Loader>
void test(Net& model, torch::Device device, Loader& loader, size_t size) {
  torch::NoGradGuard no_grad;
  model.eval();
  double loss = 0;
  int64_t correct = 0;
  for (const auto& batch : loader) {
    auto data = batch.data.to(device), targets = batch.target.to(device);
    auto output = model.forward(data);
    loss += torch::nll_loss(output, targets, /*weight=*/{}, torch::Reduction::Sum)
                .template item<float>();
    auto pred = output.argmax(1);
    correct += pred.eq(targets).sum().template item<int64_t>();
  }
  const double share = static_cast<double>(correct) / static_cast<double>(size);
  std::printf("test %.6f %.4f\n", loss / static_cast<double>(size), share);
}

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : ".";
  torch::manual_seed(1);
  torch::Device device(torch::cuda::is_available() ? torch::kMeta : torch::kCPU);
  auto model = std::make_shared<Net>();
  model->to(device);

  auto train_dataset = Quarters(256)
                           .map(torch::data::transforms::Normalize<>(0.6, 0.35))
                           .map(torch::data::transforms::Stack<>());
  auto test_dataset = Quarters(64)
                          .map(torch::data::transforms::Normalize<>(0.6, 0.35))
                          .map(torch::data::transforms::Stack<>());
  const size_t test_size = test_dataset.size().value();
  auto train_loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      std::move(train_dataset), torch::data::DataLoaderOptions().batch_size(32).workers(2));
  auto test_loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      std::move(test_dataset), /*batch_size=*/50);

  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(0.02));
  torch::optim::StepLR schedule(optimizer, 4, 0.5);
  for (size_t epoch = 1; epoch <= 6; ++epoch) {
    train(epoch, *model, device, *train_loader, optimizer);
    schedule.step();
  }
  test(*model, device, *test_loader, test_size);

  torch::save(model, folder + "/net.pt");
  torch::save(optimizer, folder + "/optimizer.pt");
  auto again = std::make_shared<Net>();
  torch::load(again, folder + "/net.pt");
  torch::optim::Adam other(again->parameters(), /*lr=*/0.02);
  torch::load(other, folder + "/optimizer.pt");
  test(*again, device, *test_loader, test_size);
  std::cout << (other.state_dict().size() == optimizer.state_dict().size()) << "\n";

  torch::Tensor tensor = torch::eye(2);
  torch::save(tensor, folder + "/tensor.pt");
  torch::Tensor loaded;
  torch::load(loaded, folder + "/tensor.pt");
  std::cout << loaded << std::endl;
}
