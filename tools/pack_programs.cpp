// Programs whose fused kernels belong in the pack: those that most models of their kind need.
#include <rushlight/rushlight.h>

#include "pack_samples.h"

namespace rushlight {
namespace {

constexpr int64_t kWidth = 8;
constexpr int64_t kHeads = 2;

// Normalisation before attention and before two layers, each added to what it reads.
class BlockImpl : public nn::TensorModule {
 public:
  explicit BlockImpl(bool bias) : TensorModule("Block") {
    first_ = register_module("first", nn::LayerNorm(kWidth));
    second_ = register_module("second", nn::LayerNorm(kWidth));
    in_ = register_module("in", nn::Linear(kWidth, 3 * kWidth, bias));
    out_ = register_module("out", nn::Linear(kWidth, kWidth, bias));
    up_ = register_module("up", nn::Linear(kWidth, 4 * kWidth, bias));
    down_ = register_module("down", nn::Linear(4 * kWidth, kWidth, bias));
  }

  Tensor forward(const Tensor& input) override {
    const int64_t batch = input.size(0);
    const int64_t length = input.size(1);
    TensorList parts = split(in_(first_(input)), kWidth, 2);
    for (Tensor& part : parts) {
      part = transpose(reshape(part, {batch, length, kHeads, kWidth / kHeads}), 1, 2);
    }
    Tensor mixed = scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, true);
    Tensor x = input + out_(reshape(transpose(mixed, 1, 2), {batch, length, kWidth}));
    return x + down_(gelu(up_(second_(x))));
  }

 private:
  nn::LayerNorm first_{nullptr}, second_{nullptr};
  nn::Linear in_{nullptr}, out_{nullptr}, up_{nullptr}, down_{nullptr};
};
RUSHLIGHT_MODULE(Block);

// A step twice: the second time gradients are added to those of the first.
template <typename Loss>
void train(Loss loss) {
  for (int step = 0; step < 2; ++step) {
    loss().backward();
  }
}

void run_transformer(bool bias, DType dtype) {
  auto model = nn::Sequential(Block(bias), Block(bias));
  model->to(dtype);
  auto forward = compile([&](const Tensor& x) { return model->forward(x); });
  const Tensor x = ones({2, 3, kWidth}, TensorOptions(dtype));
  train([&] { return mean(square(forward(x))); });
  NoGradGuard guard;
  forward(x);
  optim::Adam(model->parameters()).step();
  optim::AdamW(model->parameters()).step();
}

void run_language_model() {
  auto model = nn::Sequential(nn::Embedding(5, kWidth), Block(false), Block(false),
                              nn::LayerNorm(kWidth), nn::Linear(kWidth, 5));
  const Tensor tokens = zeros({2, 3}, TensorOptions(DType::Int64));
  auto loss = compile([&] {
    return cross_entropy_loss(reshape(model->forward(tokens), {6, 5}), reshape(tokens, {6}));
  });
  train(loss);
}

}  // namespace

void run_sample_programs() {
  for (DType dtype : {DType::Float32, DType::BFloat16}) {
    run_transformer(true, dtype);
    run_transformer(false, dtype);
  }
  run_language_model();
  add_(ones({}, TensorOptions()), 1);  // Python's optimisers count their steps so
}

}  // namespace rushlight
