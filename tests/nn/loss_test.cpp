// Values are those of PyTorch 2.13.
#include <gtest/gtest.h>
#include <rushlight/rushlight.h>

namespace rushlight {
namespace {

class Losses : public ::testing::Test {
 protected:
  Tensor x = tensor({{0.2, -1.0, 0.5}, {1.0, 0.0, -0.5}});
  Tensor y = tensor({{0.0, 1.0, 1.0}, {1.0, 0.0, 1.0}});
  Tensor classes = tensor({2, 0});
  Tensor weight = tensor({1.0, 2.0, 3.0});
};

void expect(const Tensor& loss, double value) {
  EXPECT_EQ(loss.dim(), 0);
  EXPECT_NEAR(loss.item<double>(), value, 2e-6);
}

TEST_F(Losses, CrossEntropy) {
  expect(nn::CrossEntropyLoss()(x, classes), 0.569662868976593);
  expect(nn::CrossEntropyLoss(nn::CrossEntropyLossOptions().weight(weight).label_smoothing(0.1))(
             x, classes),
         0.6987118721008301);
  expect(nn::CrossEntropyLoss(nn::CrossEntropyLossOptions().ignore_index(0).reduction(
             nn::Reduction::Sum))(x, classes),
         0.6749569177627563);
  const Tensor each = nn::CrossEntropyLoss(
      nn::CrossEntropyLossOptions().reduction(nn::Reduction::None))(x, classes);
  EXPECT_EQ(each.sizes(), IntArrayRef({2}));
}

TEST_F(Losses, NegativeLogLikelihood) {
  expect(nn::NLLLoss(nn::NLLLossOptions().weight(weight))(x, classes), -0.625);
}

TEST_F(Losses, BinaryCrossEntropy) {
  expect(nn::BCELoss()(sigmoid(x), y), 0.7609937787055969);
  expect(nn::BCEWithLogitsLoss()(x, y), 0.7609937787055969);
  expect(nn::BCEWithLogitsLoss(nn::BCEWithLogitsLossOptions().pos_weight(weight))(x, y),
         1.462588906288147);
  expect(nn::BCELoss(nn::BCELossOptions().weight(zeros({3})))(sigmoid(x), y), 0);
}

TEST_F(Losses, WithAReductionAlone) {
  const nn::Reduction sum = nn::Reduction::Sum;
  expect(nn::MSELoss()(x, y), 1.090000033378601);
  expect(nn::MSELoss(sum)(x, y), 6.539999961853027);
  expect(nn::L1Loss()(x, y), 0.699999988079071);
  expect(nn::L1Loss(sum)(x, y), 4.199999809265137);
  expect(nn::SoftMarginLoss()(x, y), 0.7434952259063721);
  expect(nn::SoftMarginLoss(sum)(x, y), 4.460971355438232);
  expect(nn::MultiLabelMarginLoss()(x, tensor({{2, -1, 0}, {0, 1, -1}})), 0.2);
  EXPECT_EQ(nn::MSELoss(nn::Reduction::None)(x, y).sizes(), IntArrayRef({2, 3}));
}

TEST_F(Losses, WithABend) {
  const nn::Reduction mean = nn::Reduction::Mean;
  expect(nn::SmoothL1Loss()(x, y), 0.44083333015441895);
  expect(nn::SmoothL1Loss(mean, 0.5)(x, y), 0.5483333468437195);
  expect(nn::HuberLoss()(x, y), 0.44083333015441895);
  expect(nn::HuberLoss(mean, 0.5)(x, y), 0.27416667342185974);
  expect(nn::HingeEmbeddingLoss(2.0)(x, 2 * y - 1), 0.6333333253860474);
}

TEST_F(Losses, KullbackLeibler) {
  expect(nn::KLDivLoss(nn::KLDivLossOptions().log_target(true))(x, y), 1.7788543701171875);
}

TEST_F(Losses, WeightsAreBuffersAndFollowTheModule) {
  const nn::CrossEntropyLoss loss(nn::CrossEntropyLossOptions().weight(clone(weight)));
  EXPECT_EQ(loss->state_dict().size(), 1U);
  EXPECT_EQ(nn::CrossEntropyLoss()->state_dict().size(), 0U);
  loss->to(DType::Float64);
  const Tensor wide = x.to(DType::Float64);
  expect(loss(wide, classes),
         nn::CrossEntropyLoss(nn::CrossEntropyLossOptions().weight(weight))(x, classes)
             .item<double>());
}

TEST_F(Losses, RefuseTargetsThatDoNotFit) {
  EXPECT_THROW(nn::CrossEntropyLoss()(x, tensor({2, 0, 1})), Error);
  EXPECT_THROW(nn::CrossEntropyLoss()(x, tensor({2, 3})), Error);
  EXPECT_THROW(nn::NLLLoss(nn::NLLLossOptions().weight(ones({4})))(x, classes), Error);
  EXPECT_THROW(nn::BCELoss()(x, y), Error);
  EXPECT_THROW(nn::SmoothL1Loss(nn::Reduction::Mean, -1.0)(x, y), Error);
}

}  // namespace
}  // namespace rushlight
