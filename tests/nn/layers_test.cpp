// Values are those of PyTorch 2.13 for the same seeds.
#include <gtest/gtest.h>
#include <rushlight/rushlight.h>

#include <functional>
#include <string>
#include <vector>

namespace rushlight {
namespace {

using Floats = std::vector<float>;

void expect_near(const Tensor& got, const Floats& expected) {
  ASSERT_EQ(got.numel(), static_cast<int64_t>(expected.size()));
  const Tensor row = got.detach().contiguous();
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(row.data_ptr<float>()[i], expected[i], 1e-6) << "element " << i;
  }
}

void expect_error(ErrorKind kind, const std::string& text, const std::function<void()>& body) {
  try {
    body();
    ADD_FAILURE() << "no error; expected: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

TEST(Linear, StartsAsPyTorchs) {
  manual_seed(0);
  const nn::Linear layer(3, 2);
  expect_near(layer->weight,
              {-0.0043225177f, 0.30971584f, -0.47518533f, -0.4248946f, -0.22236897f, 0.15482073f});
  expect_near(layer->bias, {-0.011439145f, 0.45777494f});
  EXPECT_EQ(layer->to_string(), "Linear(in_features=3, out_features=2, bias=True)");
}

TEST(Linear, MultipliesByItsWeight) {
  const nn::Linear layer(2, 3);
  nn::init::ones_(layer->weight);
  nn::init::constant_(layer->bias, 0.5);
  expect_near(layer(ones({4, 2})), Floats(12, 2.5f));
  EXPECT_EQ(layer(ones({5, 4, 2})).sizes(), IntArrayRef({5, 4, 3}));
  EXPECT_EQ(layer(ones({0, 2})).sizes(), IntArrayRef({0, 3}));
}

TEST(Linear, WithoutBiasHasOneParameter) {
  const nn::Linear layer(nn::LinearOptions(3, 2).bias(false));
  EXPECT_EQ(layer->parameters().size(), 1U);
  EXPECT_FALSE(layer->bias.defined());
  EXPECT_EQ(layer->to_string(), "Linear(in_features=3, out_features=2, bias=False)");
}

TEST(Linear, OfNoInputsIsItsBias) {
  const nn::Linear layer(0, 2);
  expect_near(layer->bias, {0, 0});
  expect_near(layer(ones({1, 0})), {0, 0});
}

TEST(Linear, RefusesOtherInputsAndSizes) {
  const nn::Linear layer(3, 2);
  expect_error(ErrorKind::Runtime, "cannot be multiplied", [&] { layer(ones({4, 5})); });
  expect_error(ErrorKind::Value, "in_features of 0 or more, got -1", [] { nn::Linear(-1, 2); });
}

TEST(Embedding, StartsAsPyTorchsWithAZeroPaddingRow) {
  manual_seed(0);
  const nn::Embedding table(nn::EmbeddingOptions(3, 2).padding_idx(-2));
  expect_near(table->weight, {1.5409961f, -0.2934289f, 0, 0, -1.0845224f, -1.3985955f});
  EXPECT_EQ(table->to_string(), "Embedding(3, 2, padding_idx=1)");
}

TEST(Embedding, ThePaddingRowGetsNoGradient) {
  const nn::Embedding table(nn::EmbeddingOptions(3, 2).padding_idx(1));
  table(tensor({0, 1, 1, 2, 2})).sum().backward();
  expect_near(table->weight.grad(), {1, 1, 0, 0, 2, 2});
}

TEST(Embedding, ScalesGradientsByFrequency) {
  const nn::Embedding table(nn::EmbeddingOptions(3, 1).scale_grad_by_freq(true));
  table(tensor({0, 2, 2})).sum().backward();
  expect_near(table->weight.grad(), {1, 0, 1});
}

TEST(Embedding, ShrinksTheRowsThatAreReadToMaxNorm) {
  manual_seed(1);
  const nn::Embedding table(nn::EmbeddingOptions(3, 2).max_norm(1.0));
  expect_near(table(tensor({0, 2})), {0.66135216f, 0.26692411f, -0.45190597f, -0.16613023f});
  expect_near(table->weight,
              {0.66135216f, 0.26692411f, 0.061677258f, 0.62131733f, -0.45190597f, -0.16613023f});
  EXPECT_EQ(nn::Embedding(
                nn::EmbeddingOptions(3, 2).max_norm(1.5).norm_type(1.0).scale_grad_by_freq(true))
                ->to_string(),
            "Embedding(3, 2, max_norm=1.5, norm_type=1.0, scale_grad_by_freq=True)");
}

TEST(Embedding, RefusesIndicesAndPaddingOutOfRange) {
  const nn::Embedding table(3, 2);
  expect_error(ErrorKind::Index, "out of range", [&] { table(tensor({3})); });
  expect_error(ErrorKind::Value, "padding_idx must be within num_embeddings, got 3 of 3",
               [] { nn::Embedding(nn::EmbeddingOptions(3, 2).padding_idx(3)); });
}

TEST(LayerNorm, HasPyTorchsValues) {
  const Tensor x = tensor({1.0, 2.0, 4.0}).to(DType::Float32);
  expect_near(nn::LayerNorm(3)(x), {-1.0690414f, -0.26726028f, 1.3363018f});
  EXPECT_EQ(nn::LayerNorm(3)->to_string(),
            "LayerNorm((3,), eps=1e-05, elementwise_affine=True, bias=True)");
  EXPECT_EQ(nn::LayerNorm(nn::LayerNormOptions({3, 4}).eps(0.1).bias(false))->to_string(),
            "LayerNorm((3, 4), eps=0.1, elementwise_affine=True, bias=False)");
}

TEST(LayerNorm, HasNoParametersUnlessAffine) {
  EXPECT_EQ(nn::LayerNorm(3)->parameters().size(), 2U);
  EXPECT_EQ(nn::LayerNorm(nn::LayerNormOptions({3}).bias(false))->parameters().size(), 1U);
  EXPECT_TRUE(
      nn::LayerNorm(nn::LayerNormOptions({3}).elementwise_affine(false))->parameters().empty());
}

TEST(LayerNorm, RefusesAnotherShape) {
  expect_error(ErrorKind::Runtime, "normalized_shape=[3]", [] { nn::LayerNorm(3)(ones({2, 4})); });
}

TEST(RMSNorm, HasPyTorchsValues) {
  const Tensor x = tensor({1.0, 2.0, 4.0}).to(DType::Float32);
  expect_near(nn::RMSNorm(3)(x), {0.3779645f, 0.755929f, 1.511858f});
  expect_near(nn::RMSNorm(nn::RMSNormOptions({3}).eps(0.1))(x),
              {0.37529331f, 0.75058663f, 1.5011733f});
  EXPECT_EQ(nn::RMSNorm(nn::RMSNormOptions({3, 4}))->to_string(),
            "RMSNorm((3, 4), eps=None, elementwise_affine=True)");
}

TEST(Dropout, DrawsPyTorchsMaskInTrainingOnly) {
  const nn::Dropout dropout(0.5);
  manual_seed(3);
  expect_near(dropout(ones({8})), {2, 2, 0, 2, 0, 0, 2, 2});
  dropout->eval();
  expect_near(dropout(ones({8})), Floats(8, 1));
  EXPECT_EQ(dropout->to_string(), "Dropout(p=0.5, inplace=False)");
}

TEST(Dropout, InplaceOverwritesTheInput) {
  const Tensor x = ones({8});
  EXPECT_TRUE(nn::Dropout(1.0, true)(x).is_same(x));
  expect_near(x, Floats(8, 0));
}

TEST(Dropout, RefusesProbabilitiesOutsideZeroToOne) {
  expect_error(ErrorKind::Value, "dropout probability has to be between 0 and 1, but got -0.5",
               [] { nn::Dropout(-0.5); });
  expect_error(ErrorKind::Value, "between 0 and 1", [] { nn::Dropout(std::nan("")); });
}

TEST(Flatten, JoinsDimensions) {
  EXPECT_EQ(nn::Flatten()(ones({2, 3, 4})).sizes(), IntArrayRef({2, 12}));
  EXPECT_EQ(nn::Flatten(0, 1)(ones({2, 3, 4})).sizes(), IntArrayRef({6, 4}));
  EXPECT_EQ(nn::Flatten()->to_string(), "Flatten(start_dim=1, end_dim=-1)");
}

}  // namespace
}  // namespace rushlight
