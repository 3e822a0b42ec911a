// What the layers compute is compared with Python's in tests/parity/test_layers.py.
#include <rushlight/rushlight.h>

#include "expect_error.h"

namespace rushlight {
namespace {

Tensor difference(const Tensor& a, const Tensor& b) {
  return max(abs(sub(a, b)));
}

TEST(MultiheadAttention, FusedIsAsWithWeights) {
  manual_seed(0);
  nn::MultiheadAttention layer(8, 2);
  layer->eval();
  const Tensor x = randn({5, 3, 8});
  const Tensor causal = nn::TransformerImpl::generate_square_subsequent_mask(5);
  const Tensor padding = gt(randn({3, 5}), 0.8);
  for (const Tensor& mask : {Tensor(), causal}) {
    const auto [slow, weights] = layer(x, x, x, padding, true, mask);
    const auto [fused, none] = layer(x, x, x, padding, false, mask);
    EXPECT_FALSE(none.defined());
    EXPECT_EQ(weights.sizes(), IntArrayRef({3, 5, 5}));
    EXPECT_LT(difference(slow, fused).item<double>(), 1e-6);
  }
  const auto [hinted, none] = layer(x, x, x, Tensor(), false, causal, true, true);
  const auto [masked, weights] = layer(x, x, x, Tensor(), true, causal, false);
  EXPECT_EQ(weights.sizes(), IntArrayRef({3, 2, 5, 5}));
  EXPECT_LT(difference(hinted, masked).item<double>(), 1e-6);
}

TEST(MultiheadAttention, HidesWhatMasksHide) {
  manual_seed(0);
  nn::MultiheadAttention layer(4, 2);
  layer->eval();
  const Tensor query = randn({2, 4}), key = randn({3, 4});
  const Tensor hidden = eq(arange(3), 2);
  const auto [all, weights] = layer(query, key, key, hidden);
  EXPECT_EQ(max(select(weights, -1, 2)).item<double>(), 0.0);
  const Tensor seen = narrow(key, 0, 0, 2);
  const auto [some, fewer] = layer(query, seen, seen);
  EXPECT_LT(difference(all, some).item<double>(), 1e-6);
}

TEST(MultiheadAttention, RefusesWhatDoesNotGoTogether) {
  expect_error(ErrorKind::Value, "must be greater than 0", [] { nn::MultiheadAttention(0, 1); });
  expect_error(ErrorKind::Value, "divisible by num_heads", [] { nn::MultiheadAttention(5, 2); });
  nn::MultiheadAttention layer(4, 2);
  const Tensor x = ones({3, 2, 4});
  expect_error(ErrorKind::Value, "query of 2 or 3 dimensions", [&] { layer(x[0][0], x, x); });
  expect_error(ErrorKind::Value, "key and value of 3 dimensions", [&] { layer(x, x[0], x); });
  expect_error(ErrorKind::Value, "embedding dimension of 4, but got 6", [&] {
    const Tensor wide = ones({3, 2, 6});
    layer(wide, wide, wide);
  });
  expect_error(ErrorKind::Value, "same length and batch", [&] { layer(x, x, ones({2, 2, 4})); });
  expect_error(ErrorKind::Runtime, "attn_mask of shape",
               [&] { layer(x, x, x, Tensor(), true, ones({3, 4})); });
  expect_error(ErrorKind::Value, "key_padding_mask of (2, 3)",
               [&] { layer(x, x, x, ones({2, 4})); });
  expect_error(ErrorKind::Value, "only bool and floating types of key_padding_mask",
               [&] { layer(x, x, x, zeros({2, 3}, TensorOptions(DType::Int64))); });
  expect_error(ErrorKind::Runtime, "Need attn_mask",
               [&] { layer(x, x, x, Tensor(), true, Tensor(), true, true); });
}

TEST(Transformer, RefusesWhatDoesNotGoTogether) {
  nn::Transformer model(nn::TransformerOptions()
                            .d_model(8)
                            .nhead(2)
                            .num_encoder_layers(1)
                            .num_decoder_layers(1)
                            .dim_feedforward(8));
  expect_error(ErrorKind::Runtime, "batch number of src and tgt must be equal",
               [&] { model(ones({3, 2, 8}), ones({3, 1, 8})); });
  expect_error(ErrorKind::Runtime, "equal to d_model",
               [&] { model(ones({3, 2, 6}), ones({3, 2, 8})); });
  expect_error(ErrorKind::Runtime, "activation should be relu/gelu, not tanh", [] {
    nn::TransformerEncoderLayer(nn::TransformerLayerOptions(8, 2).activation("tanh"));
  });
  const nn::TransformerEncoderLayer layer(8, 2);
  expect_error(ErrorKind::Value, "num_layers above 0", [&] { nn::TransformerEncoder(layer, 0); });
}

TEST(TransformerEncoder, CopiesItsLayer) {
  manual_seed(3);
  const nn::TransformerEncoderLayer layer(
      nn::TransformerLayerOptions(8, 2).dim_feedforward(8).dropout(0));
  const std::vector<uint8_t> stream = default_generator().get_state();
  nn::TransformerEncoder encoder(layer, 3);
  EXPECT_EQ(default_generator().get_state(), stream);
  const Tensor x = randn({4, 2, 8});
  Tensor expected = x;
  for (int i = 0; i < 3; ++i) {
    expected = layer(expected);
  }
  EXPECT_EQ(difference(encoder(x), expected).item<double>(), 0.0);
  // A copy shares nothing with the layer.
  nn::init::zeros_(layer->linear1->weight);
  EXPECT_EQ(difference(encoder(x), expected).item<double>(), 0.0);
}

TEST(AdaptiveLogSoftmax, PredictsTheMostProbable) {
  manual_seed(0);
  nn::AdaptiveLogSoftmaxWithLoss layer(
      nn::AdaptiveLogSoftmaxWithLossOptions(16, 20, {4, 10}).div_value(2));
  const Tensor x = mul(randn({50, 16}), 4);
  const Tensor log_prob = layer->log_prob(x);
  EXPECT_LT(difference(sum(exp(log_prob), {1}), ones({50})).item<double>(), 1e-5);
  EXPECT_TRUE(equal(layer->predict(x), argmax(log_prob, 1)));
  expect_error(ErrorKind::Value, "cutoffs should be a sequence of unique", [] {
    nn::AdaptiveLogSoftmaxWithLoss(nn::AdaptiveLogSoftmaxWithLossOptions(16, 20, {10, 4}));
  });
  expect_error(ErrorKind::Runtime, "Target values should be in [0, 19]",
               [&] { layer(x, full({50}, 20, TensorOptions(DType::Int64))); });
}

TEST(LossPairs, RefuseWhatDoesNotGoTogether) {
  const Tensor x = ones({4, 3});
  expect_error(ErrorKind::Value, "var is of incorrect size",
               [&] { nn::GaussianNLLLoss()(x, x, ones({4, 2})); });
  expect_error(ErrorKind::Value, "var has negative entry",
               [&] { nn::GaussianNLLLoss()(x, x, full({4, 3}, -1.0)); });
  expect_error(ErrorKind::Value, "margin to be greater than 0",
               [] { nn::TripletMarginLoss(nn::TripletMarginLossOptions().margin(0)); });
  expect_error(ErrorKind::Value, "only p == 1 and p == 2 supported",
               [] { nn::MultiMarginLoss(nn::MultiMarginLossOptions().p(3)); });
  expect_error(ErrorKind::Runtime, "All input tensors should have same dimension",
               [&] { nn::MarginRankingLoss()(x, x, x[0]); });
}

}  // namespace
}  // namespace rushlight
