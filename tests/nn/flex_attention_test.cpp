#include <gtest/gtest.h>
#include <rushlight/rushlight.h>

#include <cmath>

using namespace rushlight;

namespace {

Tensor causal(const Tensor&, const Tensor&, const Tensor& q, const Tensor& k) {
  return ge(q, k);
}

bool near(const Tensor& a, const Tensor& b) {
  return allclose(a, b, 1e-4, 1e-5, false);
}

}  // namespace

TEST(FlexAttention, CausalMaskIsThatOfAttention) {
  manual_seed(0);
  Tensor q = randn({2, 4, 150, 16}, TensorOptions());
  Tensor k = randn({2, 2, 150, 16}, TensorOptions());
  Tensor v = randn({2, 2, 150, 8}, TensorOptions());
  nn::BlockMask mask = nn::create_block_mask(causal, 1, 1, 150, 150);
  EXPECT_NEAR(mask.sparsity(), 100 * (1 - 3.0 * 128 * 128 / (150 * 150)), 1e-9);
  nn::FlexResult found = nn::flex_attention(q, k, v, {.block_mask = &mask, .enable_gqa = true});
  Tensor expected = scaled_dot_product_attention(q, k, v, Tensor(), 0.0, true, std::nullopt, true);
  EXPECT_TRUE(near(found.out, expected));
  EXPECT_EQ(found.lse.sizes(), IntArrayRef({2, 4, 150}));
}

TEST(FlexAttention, CapturedTensorsGetGradients) {
  manual_seed(1);
  Tensor q = randn({1, 3, 40, 8}, TensorOptions());
  Tensor slopes = randn({3}, TensorOptions()).requires_grad_();
  nn::ScoreMod tilt = [&](const Tensor& score, const Tensor&, const Tensor& h, const Tensor& i,
                          const Tensor& j) {
    return add(score, mul(index(slopes, {h}), sub(i, j)));
  };
  Tensor out = nn::flex_attention(q, q, q, {.score_mod = tilt}).out;
  sum(square(out)).backward();
  Tensor found = slopes.grad();
  slopes.set_grad(Tensor());
  Tensor at = arange(Scalar(40), TensorOptions());
  Tensor bias = mul(reshape(slopes, {3, 1, 1}), sub(reshape(at, {40, 1}), at));
  Tensor scores = add(mul(matmul(q, transpose(q, -2, -1)), Scalar(1 / std::sqrt(8.0))), bias);
  sum(square(matmul(softmax(scores, -1), q))).backward();
  EXPECT_TRUE(allclose(found, slopes.grad(), 1e-3, 1e-4, false));
}

TEST(FlexAttention, DenseMasks) {
  Tensor mask = nn::create_mask(causal, 1, 1, 4, 3);
  EXPECT_TRUE(equal(reshape(mask, {4, 3}), tril(ones({4, 3}, TensorOptions(DType::Bool)))));
}

TEST(FlexAttention, MasksCombine) {
  nn::MaskMod near_by = [](const Tensor&, const Tensor&, const Tensor& i, const Tensor& j) {
    return lt(sub(i, j), Scalar(2));
  };
  auto dense = [](const nn::MaskMod& mask) {
    return reshape(nn::create_mask(mask, 1, 1, 5, 5), {5, 5});
  };
  Tensor a = dense(causal);
  Tensor b = dense(near_by);
  EXPECT_TRUE(equal(dense(nn::and_masks({causal, near_by})), bitwise_and(a, b)));
  EXPECT_TRUE(equal(dense(nn::or_masks({causal, near_by})), bitwise_or(a, b)));
  EXPECT_TRUE(equal(dense(nn::and_masks({})), dense(nn::noop_mask)));
  EXPECT_FALSE(any(dense(nn::or_masks({}))).item().to_bool());
}

TEST(FlexAttention, MistakesAreErrors) {
  Tensor q = ones({1, 2, 10, 4}, TensorOptions());
  nn::MaskMod number = [](const Tensor&, const Tensor&, const Tensor& i, const Tensor&) {
    return i;
  };
  EXPECT_THROW(nn::create_block_mask(number, 1, 1, 10, 10), Error);
  nn::BlockMask mask = nn::create_block_mask(causal, 1, 1, 12, 10);
  EXPECT_THROW(nn::flex_attention(q, q, q, {.block_mask = &mask}), Error);
  EXPECT_THROW(nn::flex_attention(reshape(q, {2, 10, 4}), q, q), Error);
}

TEST(LinearCrossEntropy, IsTheLossOfALinearLayer) {
  manual_seed(2);
  Tensor x = randn({6, 4}, TensorOptions()).requires_grad_();
  Tensor w = randn({9, 4}, TensorOptions()).requires_grad_();
  Tensor target = randint(9, {6}, TensorOptions(DType::Int64));
  Tensor loss = linear_cross_entropy(x, w, target);
  loss.backward();
  Tensor found = w.grad();
  w.set_grad(Tensor());
  Tensor expected = cross_entropy_loss(matmul(x, transpose(w, 0, 1)), target);
  EXPECT_TRUE(near(loss, expected));
  expected.backward();
  EXPECT_TRUE(near(found, w.grad()));
}

TEST(LinearCrossEntropy, IsAModule) {
  manual_seed(3);
  nn::LinearCrossEntropyLoss loss(
      nn::LinearCrossEntropyLossOptions(4, 5).out_features({2, 3}).bias(true).z_loss(0.1));
  EXPECT_EQ(loss->linear->weight.sizes(), IntArrayRef({30, 4}));
  EXPECT_EQ(loss->state_dict().size(), 2U);
  Tensor x = randn({7, 4}, TensorOptions());
  Tensor target = randint(5, {7, 2, 3}, TensorOptions(DType::Int64));
  Tensor found = loss(x, target);
  Tensor logits = reshape(loss->linear(x), {7, 5, 2, 3});
  Tensor extra = mul(mean(square(logsumexp(logits, {1}))), Scalar(0.1));
  EXPECT_TRUE(near(found, add(cross_entropy_loss(logits, target), extra)));
  found.backward();
  EXPECT_TRUE(loss->linear->bias.grad().defined());
  EXPECT_THROW(nn::LinearCrossEntropyLoss(
                   nn::LinearCrossEntropyLossOptions(4, 5).weight(ones({4}, TensorOptions()))),
               Error);
}
