// A GPT: a transformer that predicts the next token, with normalisation before each part.
#pragma once

#include <rushlight/rushlight.h>

#include <cmath>
#include <string>
#include <vector>

namespace gpt {

namespace nn = rushlight::nn;
using rushlight::Tensor;

// What a model's parameters depend on. Each head has width / heads channels.
struct Shape {
  int64_t vocabulary;
  int64_t context;
  int64_t layers;
  int64_t width;
  int64_t heads;
};

// Every position looks at itself and at those before it: (B, T, C) to (B, T, C).
class AttentionImpl : public nn::TensorModule {
 public:
  explicit AttentionImpl(const Shape& shape) : TensorModule("Attention"), heads_(shape.heads) {
    project_in = register_module("project_in", nn::Linear(shape.width, 3 * shape.width, false));
    project_out = register_module("project_out", nn::Linear(shape.width, shape.width, false));
  }
  Tensor forward(const Tensor& x) override {
    int64_t B = x.size(0);
    int64_t T = x.size(1);
    int64_t C = x.size(2);
    rushlight::TensorList parts = project_in(x).split(C, 2);
    for (Tensor& part : parts) {
      part = part.view({B, T, heads_, C / heads_}).transpose(1, 2);
    }
    Tensor y = rushlight::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, true);
    return project_out(y.transpose(1, 2).reshape({B, T, C}));
  }

 private:
  int64_t heads_;
  nn::Linear project_in{nullptr};
  nn::Linear project_out{nullptr};
};
RUSHLIGHT_MODULE(Attention);

// Attention, then two layers at every position, each added to what it reads.
class BlockImpl : public nn::TensorModule {
 public:
  explicit BlockImpl(const Shape& shape) : TensorModule("Block") {
    norm_attention = register_module("norm_attention", nn::LayerNorm(shape.width));
    attention = register_module("attention", Attention(shape));
    norm_expand = register_module("norm_expand", nn::LayerNorm(shape.width));
    expand = register_module("expand", nn::Linear(shape.width, 4 * shape.width, false));
    project_out = register_module("project_out", nn::Linear(4 * shape.width, shape.width, false));
  }
  Tensor forward(const Tensor& input) override {
    Tensor x = input + attention(norm_attention(input));
    return x + project_out(rushlight::gelu(expand(norm_expand(x))));
  }

 private:
  nn::LayerNorm norm_attention{nullptr};
  Attention attention{nullptr};
  nn::LayerNorm norm_expand{nullptr};
  nn::Linear expand{nullptr};
  nn::Linear project_out{nullptr};
};
RUSHLIGHT_MODULE(Block);

// Tokens (B, T) of int64 to scores of the next token (B, T, vocabulary).
class GPTImpl : public nn::TensorModule {
 public:
  explicit GPTImpl(const Shape& shape) : TensorModule("GPT"), shape_(shape) {
    tokens = register_module("tokens", nn::Embedding(shape.vocabulary, shape.width));
    positions = register_module("positions", nn::Embedding(shape.context, shape.width));
    for (int64_t i = 0; i < shape.layers; ++i) {
      blocks_.emplace_back(shape);
    }
    nn::ModuleList list;
    for (const Block& block : blocks_) {
      list->push_back(block.ptr());
    }
    register_module("blocks", list);
    norm = register_module("norm", nn::LayerNorm(shape.width));
    head = register_module("head", nn::Linear(shape.width, shape.vocabulary, false));
    for (auto& [name, parameter] : named_parameters()) {
      if (name.find("norm") == std::string::npos) {
        // What blocks add up grows with their number: they begin smaller.
        bool adds = name.find("project_out") != std::string::npos;
        double deep = adds ? std::sqrt(2.0 * static_cast<double>(shape.layers)) : 1.0;
        nn::init::normal_(parameter, 0, 0.02 / deep);
      }
    }
  }
  Tensor forward(const Tensor& input) override {
    Tensor places = rushlight::arange(rushlight::Scalar(input.size(1)));
    Tensor x = tokens(input) + positions(places);
    for (Block& block : blocks_) {
      x = block(x);
    }
    return head(norm(x));
  }
  // Mean cross-entropy of the `following` tokens (B, T), in nats a token.
  Tensor loss(const Tensor& input, const Tensor& following) {
    return rushlight::cross_entropy_loss(forward(input).flatten(0, 1), following.flatten());
  }
  // `start` and `count` tokens after it, each drawn by its probability.
  std::vector<int64_t> sample(std::vector<int64_t> written, int64_t count, double temperature,
                              rushlight::Generator generator) {
    rushlight::NoGradGuard no_grad;
    for (int64_t i = 0; i < count; ++i) {
      auto seen = std::min<int64_t>(static_cast<int64_t>(written.size()), shape_.context);
      Tensor window = rushlight::empty({1, seen}, rushlight::DType::Int64);
      std::copy(written.end() - seen, written.end(), window.data_ptr<int64_t>());
      Tensor scores = forward(window).select(0, 0).select(0, -1);
      Tensor chances = rushlight::softmax(scores / rushlight::Scalar(temperature), 0);
      written.push_back(rushlight::multinomial(chances, 1, false, generator).item<int64_t>());
    }
    return written;
  }
  const Shape& shape() const { return shape_; }

 private:
  Shape shape_;
  nn::Embedding tokens{nullptr};
  nn::Embedding positions{nullptr};
  std::vector<Block> blocks_;
  nn::LayerNorm norm{nullptr};
  nn::Linear head{nullptr};
};
RUSHLIGHT_MODULE(GPT);

}  // namespace gpt
