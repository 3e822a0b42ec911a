// What the layers compute is compared with Python's in tests/parity/test_layers.py.
#include <rushlight/rushlight.h>

#include "expect_error.h"

namespace rushlight {
namespace {

TEST(BatchNorm, KeepsStatisticsOfTraining) {
  nn::BatchNorm2d layer(nn::BatchNorm2dOptions(1).momentum(0.5));
  layer(tensor({1.0, 3.0}).view({2, 1, 1, 1}));
  EXPECT_EQ(layer->running_mean.item<double>(), 1.0);  // half of 0, half of 2
  EXPECT_EQ(layer->running_var.item<double>(), 1.5);   // half of 1, half of 2
  EXPECT_EQ(layer->num_batches_tracked.item<int64_t>(), 1);
  layer->eval();
  layer(ones({2, 1, 1, 1}));
  EXPECT_EQ(layer->num_batches_tracked.item<int64_t>(), 1);
  layer->reset_running_stats();
  EXPECT_EQ(layer->running_mean.item<double>(), 0.0);
  EXPECT_EQ(layer->num_batches_tracked.item<int64_t>(), 0);
}

TEST(BatchNorm, HasPythonsState) {
  const nn::NamedTensors state = nn::BatchNorm1d(2)->state_dict();
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state) {
    names.push_back(name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"weight", "bias", "running_mean", "running_var",
                                             "num_batches_tracked"}));
}

TEST(BatchNorm, RefusesWhatItCannotNormalise) {
  expect_error(ErrorKind::Value, "expected 4D input (got 3D input)",
               [] { nn::BatchNorm2d(3)(ones({2, 3, 4})); });
  expect_error(ErrorKind::Value, "expected 2D or 3D input (got 4D input)",
               [] { nn::BatchNorm1d(3)(ones({2, 3, 4, 4})); });
  expect_error(ErrorKind::Value, "Expected more than 1 value per channel when training",
               [] { nn::BatchNorm1d(3)(ones({1, 3})); });
  expect_error(ErrorKind::Value, "eps must be positive during training", [] {
    nn::BatchNorm1d layer(nn::BatchNorm1dOptions(3).eps(0));
    layer(ones({2, 3}));
  });
  expect_error(ErrorKind::Value, "num_features", [] { nn::BatchNorm1d(-1); });
  expect_error(ErrorKind::Runtime, "", [] { nn::BatchNorm1d(3)(ones({2, 4})); });
}

TEST(InstanceNorm, RefusesWhatItCannotNormalise) {
  expect_error(ErrorKind::Value, "expected 3D or 4D input (got 5D input)",
               [] { nn::InstanceNorm2d(3)(ones({2, 3, 4, 4, 4})); });
  expect_error(ErrorKind::Value, "Expected more than 1 spatial element when training",
               [] { nn::InstanceNorm1d(3)(ones({2, 3, 1})); });
  expect_error(ErrorKind::Value, "to match num_features (3), but got: 4.", [] {
    nn::InstanceNorm1d layer(nn::InstanceNorm1dOptions(3).affine(true));
    layer(ones({2, 4, 5}));
  });
}

TEST(GroupNorm, RefusesWhatItCannotNormalise) {
  expect_error(ErrorKind::Value, "num_channels (5) must be divisible by num_groups (2)",
               [] { nn::GroupNorm(2, 5); });
  expect_error(ErrorKind::Value, "num_groups", [] { nn::GroupNorm(0, 5); });
  expect_error(ErrorKind::Runtime, "at least 2 dimensions", [] { nn::GroupNorm(1, 4)(ones({4})); });
  expect_error(ErrorKind::Value, "Expected more than 1 value per channel",
               [] { nn::GroupNorm(4, 4)(ones({1, 4})); });
}

TEST(Dropout, RefusesOtherProbabilities) {
  expect_error(ErrorKind::Value, "between 0 and 1, but got 1.5", [] { nn::Dropout2d(1.5); });
  expect_error(ErrorKind::Value, "between 0 and 1, but got -1", [] { nn::AlphaDropout(-1.0); });
  expect_error(ErrorKind::Runtime, "dropout1d: Expected 2D or 3D input",
               [] { nn::Dropout1d()(ones({4})); });
}

}  // namespace
}  // namespace rushlight
