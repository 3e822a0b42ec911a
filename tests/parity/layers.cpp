// Layers and losses of the C++ face on small inputs: text, sums of results, gradients and buffers.
// layers.py is the same program in Python; test_layers.py compares what they print.
#include <rushlight/rushlight.h>

#include <cstdio>
#include <tuple>

namespace {

using rushlight::Tensor;
using rushlight::TensorList;
namespace nn = rushlight::nn;

Tensor first(const Tensor& output) {
  return output;
}
template <typename... Rest>
Tensor first(const std::tuple<Tensor, Rest...>& outputs) {
  return std::get<0>(outputs);
}

void print(const char* what, const Tensor& tensor) {
  if (tensor.defined()) {
    const Tensor plain = tensor.detach().to(rushlight::DType::Float32);
    std::printf(" %s %.9g %.9g", what, rushlight::sum(plain).item<double>(),
                rushlight::sum(rushlight::abs(plain)).item<double>());
  }
}

template <typename Make, typename Inputs>
void show(const Make& make, const Inputs& make_inputs) {
  rushlight::manual_seed(0);
  auto layer = make();
  std::printf("%s\n", layer->to_string().c_str());
  for (const bool training : {true, false}) {
    layer->train(training);
    layer->zero_grad();
    auto inputs = make_inputs();
    const auto each = [&](auto&&... input) {
      for (const Tensor* x : {&input...}) {
        if (x->is_floating_point()) {
          x->requires_grad_();
        }
      }
      const Tensor output = first(layer(input...));
      print(" output", output);
      rushlight::sum(rushlight::mul(output, output)).backward();
      for (const Tensor* x : {&input...}) {
        print("input", x->is_floating_point() ? x->grad() : Tensor());
      }
    };
    std::apply(each, inputs);
    for (const Tensor& parameter : layer->parameters()) {
      print("gradient", parameter.grad());
    }
    for (const Tensor& buffer : layer->buffers()) {
      print("buffer", buffer);
    }
    std::printf("\n");
  }
}

// Braces: the values are drawn in the order in which they are written.
#define SHOW(layer, ...) show([] { return layer; }, [] { return std::tuple{__VA_ARGS__}; })

Tensor randn(rushlight::IntArrayRef sizes) {
  return rushlight::randn(sizes);
}

void normalizations() {
  SHOW(nn::BatchNorm1d(3), randn({4, 3}));
  SHOW(nn::BatchNorm1d(nn::BatchNorm1dOptions(3).momentum(std::nullopt)), randn({4, 3, 5}));
  SHOW(nn::BatchNorm2d(nn::BatchNorm2dOptions(3).eps(1e-3).momentum(0.2)), randn({2, 3, 4, 5}));
  SHOW(nn::BatchNorm2d(nn::BatchNorm2dOptions(3).affine(false).track_running_stats(false)),
       randn({2, 3, 4, 5}));
  SHOW(nn::BatchNorm3d(nn::BatchNorm3dOptions(2).bias(false)), randn({2, 2, 3, 4, 2}));
  SHOW(nn::InstanceNorm1d(3), randn({2, 3, 6}));
  SHOW(nn::InstanceNorm1d(3), randn({3, 6}));
  SHOW(nn::InstanceNorm2d(nn::InstanceNorm2dOptions(3).affine(true).track_running_stats(true)),
       randn({2, 3, 4, 4}));
  SHOW(nn::InstanceNorm3d(2), randn({2, 2, 3, 4, 2}));
  SHOW(nn::GroupNorm(2, 4), randn({2, 4, 5}));
  SHOW(nn::GroupNorm(nn::GroupNormOptions(4, 4).affine(false)), randn({2, 4, 5, 3}));
}

void dropouts() {
  SHOW(nn::Dropout1d(0.5), randn({3, 4, 5}));
  SHOW(nn::Dropout1d(0.5), randn({4, 5}));
  SHOW(nn::Dropout2d(0.3), randn({3, 4, 5, 2}));
  SHOW(nn::Dropout3d(0.3), randn({4, 5, 2, 3}));
  SHOW(nn::AlphaDropout(0.4), randn({30}));
  SHOW(nn::FeatureAlphaDropout(0.4), randn({3, 4, 5}));
  SHOW(nn::RReLU(), randn({20}));
}

void borders_and_shapes() {
  SHOW(nn::ReflectionPad1d(2), randn({2, 3, 5}));
  SHOW(nn::ReflectionPad2d(nn::ReflectionPad2dOptions({1, 2, 0, 1})), randn({2, 3, 5, 4}));
  SHOW(nn::ReflectionPad3d(1), randn({1, 2, 3, 4, 3}));
  SHOW(nn::ReplicationPad1d(nn::ReplicationPad1dOptions({1, 2})), randn({3, 5}));
  SHOW(nn::ReplicationPad2d(1), randn({2, 3, 5, 4}));
  SHOW(nn::ReplicationPad3d(1), randn({1, 2, 3, 4, 3}));
  SHOW(nn::CircularPad1d(2), randn({2, 3, 5}));
  SHOW(nn::CircularPad2d(1), randn({2, 3, 5, 4}));
  SHOW(nn::CircularPad3d(1), randn({1, 2, 3, 4, 3}));
  SHOW(nn::ZeroPad1d(1), randn({2, 3, 5}));
  SHOW(nn::ZeroPad2d(nn::ZeroPad2dOptions({1, 0, 2, 1})), randn({2, 3, 5, 4}));
  SHOW(nn::ZeroPad3d(1), randn({1, 2, 3, 4, 3}));
  SHOW(nn::ConstantPad1d(2, 1.5), randn({2, 3, 5}));
  SHOW(nn::ConstantPad2d(1, -0.5), randn({2, 3, 5, 4}));
  SHOW(nn::ConstantPad3d(1, 3.0), randn({1, 2, 3, 4, 3}));
  SHOW(nn::Unflatten(nn::UnflattenOptions(1, {2, 3})), randn({4, 6}));
  SHOW(nn::PixelShuffle(2), randn({2, 8, 3, 4}));
  SHOW(nn::PixelUnshuffle(2), randn({2, 2, 6, 4}));
  SHOW(nn::ChannelShuffle(2), randn({2, 6, 3}));
  SHOW(nn::Softmax2d(), randn({2, 3, 4, 5}));
  using Factors = std::vector<double>;
  using Sizes = std::vector<int64_t>;
  SHOW(nn::Upsample(nn::UpsampleOptions().scale_factor(Factors{2})), randn({2, 3, 5}));
  SHOW(nn::Upsample(nn::UpsampleOptions().scale_factor(Factors{2, 1.5}).mode("bilinear")),
       randn({2, 3, 5, 4}));
  SHOW(nn::Upsample(nn::UpsampleOptions().size(Sizes{7, 3}).mode("bicubic").align_corners(true)),
       randn({2, 3, 5, 4}));
  SHOW(nn::Upsample(nn::UpsampleOptions().size(Sizes{4}).mode("area")), randn({2, 3, 6, 5}));
  SHOW(nn::Upsample(nn::UpsampleOptions().scale_factor(Factors{2}).mode("trilinear")),
       randn({1, 2, 3, 4, 3}));
  SHOW(nn::UpsamplingNearest2d(nn::UpsamplingNearest2dOptions().scale_factor(Factors{2})),
       randn({2, 3, 5, 4}));
  SHOW(nn::UpsamplingBilinear2d(nn::UpsamplingBilinear2dOptions().size(Sizes{6, 9})),
       randn({2, 3, 5, 4}));
}

Tensor signs(int64_t count) {
  return rushlight::sub(rushlight::mul(rushlight::randint(0, 2, {count}), 2), 1);
}

void pairs() {
  SHOW(nn::CosineSimilarity(nn::CosineSimilarityOptions().dim(-1)), randn({4, 5}), randn({4, 5}));
  SHOW(nn::PairwiseDistance(nn::PairwiseDistanceOptions().p(3).keepdim(true)), randn({4, 5}),
       randn({4, 5}));
  SHOW(nn::Bilinear(3, 4, 2), randn({5, 3}), randn({5, 4}));
  SHOW(nn::CosineEmbeddingLoss(nn::CosineEmbeddingLossOptions().margin(0.1)), randn({6, 4}),
       randn({6, 4}), signs(6));
  SHOW(nn::MarginRankingLoss(nn::MarginRankingLossOptions().margin(0.5)), randn({6}), randn({6}),
       signs(6));
  SHOW(nn::MultiMarginLoss(nn::MultiMarginLossOptions().p(2).margin(0.7)), randn({5, 4}),
       rushlight::randint(0, 4, {5}));
  SHOW(nn::MultiLabelSoftMarginLoss(), randn({5, 4}), rushlight::randint(0, 2, {5, 4}));
  SHOW(nn::PoissonNLLLoss(nn::PoissonNLLLossOptions().full(true)), randn({6}),
       rushlight::randint(0, 9, {6}));
  SHOW(nn::GaussianNLLLoss(nn::GaussianNLLLossOptions().full(true)), randn({6, 2}), randn({6, 2}),
       rushlight::rand({6, 1}));
  SHOW(nn::TripletMarginLoss(nn::TripletMarginLossOptions().swap(true)), randn({5, 4}),
       randn({5, 4}), randn({5, 4}));
  SHOW(nn::TripletMarginWithDistanceLoss(
           nn::TripletMarginWithDistanceLossOptions().margin(2).swap(true)),
       randn({5, 4}), randn({5, 4}), randn({5, 4}));
  SHOW(nn::AdaptiveLogSoftmaxWithLoss(
           nn::AdaptiveLogSoftmaxWithLossOptions(16, 20, {4, 10}).head_bias(true)),
       randn({6, 16}), rushlight::randint(0, 20, {6}));
}

void attention() {
  using Options = nn::MultiheadAttentionOptions;
  SHOW(nn::MultiheadAttention(8, 2), randn({5, 3, 8}), randn({4, 3, 8}), randn({4, 3, 8}));
  SHOW(nn::MultiheadAttention(Options(8, 4).batch_first(true).dropout(0.2)), randn({3, 5, 8}),
       randn({3, 4, 8}), randn({3, 4, 8}));
  SHOW(nn::MultiheadAttention(Options(8, 2).kdim(6).vdim(5).add_bias_kv(true).add_zero_attn(true)),
       randn({5, 3, 8}), randn({4, 3, 6}), randn({4, 3, 5}));
  SHOW(nn::MultiheadAttention(Options(8, 2).bias(false)), randn({5, 8}), randn({4, 8}),
       randn({4, 8}));
  SHOW(nn::MultiheadAttention(8, 2), randn({5, 3, 8}), randn({4, 3, 8}), randn({4, 3, 8}),
       rushlight::gt(randn({3, 4}), 1.0));
  using Layer = nn::TransformerLayerOptions;
  SHOW(nn::TransformerEncoderLayer(Layer(8, 2).dim_feedforward(12)), randn({5, 3, 8}));
  SHOW(nn::TransformerEncoderLayer(
           Layer(8, 2).dim_feedforward(12).norm_first(true).activation("gelu").batch_first(true)),
       randn({3, 5, 8}));
  SHOW(nn::TransformerDecoderLayer(Layer(8, 2).dim_feedforward(12).bias(false)), randn({5, 3, 8}),
       randn({4, 3, 8}));
  SHOW(nn::TransformerEncoder(nn::TransformerEncoderLayer(Layer(8, 2).dim_feedforward(12)), 2,
                              nn::LayerNorm(8)),
       randn({5, 3, 8}), nn::TransformerImpl::generate_square_subsequent_mask(5));
  SHOW(nn::Transformer(nn::TransformerOptions()
                           .d_model(8)
                           .nhead(2)
                           .num_encoder_layers(2)
                           .num_decoder_layers(1)
                           .dim_feedforward(12)
                           .norm_first(true)),
       randn({5, 3, 8}), randn({4, 3, 8}));
}

}  // namespace

int main() {
  normalizations();
  dropouts();
  borders_and_shapes();
  pairs();
  attention();
}
