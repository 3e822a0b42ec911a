#include <gtest/gtest.h>
#include <rushlight/rushlight.h>

#include <functional>
#include <string>

namespace rushlight {
namespace {

using namespace nn::utils;

void expect_error(ErrorKind kind, const std::string& text, const std::function<void()>& body) {
  try {
    body();
    ADD_FAILURE() << "no error; expected: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

Tensor with_grad(const Tensor& grad) {
  const Tensor made = zeros(grad.sizes()).requires_grad_();
  made.set_grad(grad);
  return made;
}

TEST(ClipGrad, ScalesToTheJointNorm) {
  const TensorList params = {with_grad(tensor({3.0, 0.0})), with_grad(tensor({4.0})), zeros({2})};
  EXPECT_EQ(clip_grad_norm_(params, 1).item<double>(), 5);
  EXPECT_TRUE(allclose(params[0].grad(), tensor({0.6, 0.0})));
  EXPECT_TRUE(allclose(params[1].grad(), tensor({0.8})));
  const Tensor before = params[0].grad().clone();
  clip_grad_norm_(params, 10);
  EXPECT_TRUE(equal(params[0].grad(), before));
  EXPECT_EQ(clip_grad_norm_({}, 1).item<double>(), 0);
}

TEST(ClipGrad, TakesOtherNorms) {
  const TensorList params = {with_grad(tensor({3.0, -1.0})), with_grad(tensor({4.0}))};
  EXPECT_EQ(get_total_norm({params[0].grad(), params[1].grad()}, 1).item<double>(), 8);
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(clip_grad_norm_(params, 2, infinity).item<double>(), 4);
  EXPECT_TRUE(allclose(params[0].grad(), tensor({1.5, -0.5})));
}

TEST(ClipGrad, RefusesNonFiniteNormsIfAsked) {
  const TensorList params = {with_grad(tensor({std::numeric_limits<double>::quiet_NaN()}))};
  expect_error(ErrorKind::Runtime, "is non-finite, so it cannot be clipped",
               [&] { clip_grad_norm_(params, 1, 2, true); });
  EXPECT_TRUE(clip_grad_norm_(params, 1).isnan().item<bool>());
}

TEST(ClipGrad, LimitsValues) {
  const Tensor param = with_grad(tensor({3.0, -0.25, -7.0}));
  clip_grad_value_({param}, 0.5);
  EXPECT_TRUE(equal(param.grad(), tensor({0.5, -0.25, -0.5})));
}

TEST(Parameters, AreOneVectorAndBack) {
  const Tensor a = ones({2, 2}).requires_grad_();
  const Tensor b = zeros({3}).requires_grad_();
  const Tensor vector = parameters_to_vector({a, b});
  EXPECT_TRUE(equal(vector, tensor({1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0})));
  EXPECT_TRUE(vector.requires_grad());
  vector_to_parameters(vector * 2 + 1, {a, b});
  EXPECT_TRUE(equal(a, full({2, 2}, 3.0)));
  EXPECT_TRUE(equal(b, ones({3})));
  EXPECT_TRUE(a.requires_grad() && a.is_leaf());
}

TEST(Sequences, ArePackedAndUnpacked) {
  const TensorList sequences = {tensor({1.0}), tensor({2.0, 3.0, 4.0}), tensor({5.0, 6.0})};
  const rnn::PackedSequence packed = rnn::pack_sequence(sequences, false);
  EXPECT_TRUE(equal(packed.data, tensor({2.0, 5.0, 1.0, 3.0, 6.0, 4.0})));
  EXPECT_TRUE(equal(packed.batch_sizes, tensor({3, 2, 1})));
  EXPECT_TRUE(equal(packed.sorted_indices, tensor({1, 2, 0})));
  EXPECT_TRUE(equal(packed.unsorted_indices, tensor({2, 0, 1})));
  const TensorList unpacked = rnn::unpack_sequence(packed);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(equal(unpacked[i], sequences[i]));
  }
  const auto [padded, lengths] = rnn::pad_packed_sequence(packed, true, -1, 4);
  EXPECT_TRUE(equal(padded[0], tensor({1.0, -1.0, -1.0, -1.0})));
  EXPECT_TRUE(equal(lengths, tensor({1, 3, 2})));
}

TEST(Sequences, ArePaddedOnEitherSide) {
  const TensorList sequences = {tensor({1.0}), tensor({2.0, 3.0})};
  EXPECT_TRUE(equal(rnn::pad_sequence(sequences), tensor({{1.0, 2.0}, {0.0, 3.0}})));
  EXPECT_TRUE(
      equal(rnn::pad_sequence(sequences, true, 9, "left"), tensor({{9.0, 1.0}, {2.0, 3.0}})));
}

TEST(Sequences, RefuseWhatCannotBe) {
  expect_error(ErrorKind::Runtime, "received an empty list of sequences",
               [] { rnn::pad_sequence({}); });
  expect_error(ErrorKind::Runtime, "one of left or right, but got middle",
               [] { rnn::pad_sequence({ones({1})}, false, 0, "middle"); });
  expect_error(ErrorKind::Value, "got total_length=1 and max sequence length being 2",
               [] { rnn::pad_packed_sequence(rnn::pack_sequence({ones({2})}), false, 0, 1); });
  expect_error(ErrorKind::Runtime, "", [] { rnn::pack_sequence({ones({1}), ones({2})}); });
}

}  // namespace
}  // namespace rushlight
