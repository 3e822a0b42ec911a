// Datasets, samplers and loaders. That batches are Python's is tested by
// tests/python/binding/test_data_in_both.py.
#include <gtest/gtest.h>
#include <rushlight/rushlight.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace rushlight {
namespace {

using data::DataLoader;
using data::DataLoaderOptions;

void expect_error(ErrorKind kind, const std::string& text, const std::function<void()>& body) {
  try {
    body();
    ADD_FAILURE() << "no error; expected: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

std::shared_ptr<data::TensorDataset> numbers(int64_t count) {
  return std::make_shared<data::TensorDataset>(TensorList{arange(count), arange(count) * 10});
}

TensorList firsts(DataLoader<TensorList>& loader) {
  TensorList found;
  for (const TensorList& batch : loader) {
    EXPECT_TRUE(equal(batch[0] * 10, batch[1]));
    found.push_back(batch[0]);
  }
  return found;
}

TEST(DataLoader, GivesBatchesInOrder) {
  DataLoader<TensorList> loader(numbers(7), 3);
  EXPECT_EQ(loader.size(), 3);
  const TensorList batches = firsts(loader);
  ASSERT_EQ(batches.size(), 3U);
  EXPECT_TRUE(equal(batches[1], tensor({3, 4, 5})));
  EXPECT_TRUE(equal(batches[2], tensor({6})));
}

TEST(DataLoader, DropsTheLast) {
  DataLoader<TensorList> loader(numbers(7), DataLoaderOptions(3).drop_last(true));
  EXPECT_EQ(loader.size(), 2);
  EXPECT_EQ(firsts(loader).size(), 2U);
}

TEST(DataLoader, EachEpochIsAnew) {
  manual_seed(3);
  DataLoader<TensorList> loader(numbers(50), DataLoaderOptions(50).shuffle(true));
  const Tensor first = firsts(loader)[0];
  const Tensor second = firsts(loader)[0];
  EXPECT_FALSE(equal(first, second));
  EXPECT_TRUE(equal(std::get<0>(sort(first)), arange(50)));
}

TEST(DataLoader, WorkersKeepTheOrder) {
  for (const int64_t workers : {0, 1, 4}) {
    manual_seed(5);
    DataLoader<TensorList> loader(numbers(101),
                                  DataLoaderOptions(4).shuffle(true).num_workers(workers));
    manual_seed(5);
    DataLoader<TensorList> alone(numbers(101), DataLoaderOptions(4).shuffle(true));
    const TensorList expected = firsts(alone);
    manual_seed(5);
    const TensorList got = firsts(loader);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(equal(got[i], expected[i])) << workers << " workers, batch " << i;
    }
  }
}

struct Counting : data::Dataset<data::Example<>> {
  std::atomic<int> asked = 0;
  int64_t broken = -1;
  data::Example<> get(int64_t index) override {
    ++asked;
    if (index == broken) {
      fail(ErrorKind::Value, "", "no sample ", index);
    }
    return {full({2}, index), tensor(index)};
  }
  int64_t size() const override { return 1000; }
};

TEST(DataLoader, ExamplesAreStackedByField) {
  DataLoader<data::Example<>> loader(std::make_shared<Counting>(), 10);
  const auto first = loader.begin();
  EXPECT_EQ(first->data.sizes(), IntArrayRef({10, 2}));
  EXPECT_TRUE(equal(first->target, arange(10)));
}

TEST(DataLoader, WorkersLoadOnlySomeAhead) {
  const auto dataset = std::make_shared<Counting>();
  {
    DataLoader<data::Example<>> loader(dataset,
                                       DataLoaderOptions(10).num_workers(2).prefetch_factor(3));
    auto batch = loader.begin();
    ++batch;
  }  // ends in the midst of an epoch
  EXPECT_LE(dataset->asked, (2 + 2 * 3) * 10);
}

TEST(DataLoader, ErrorsOfWorkersArriveInOrder) {
  const auto dataset = std::make_shared<Counting>();
  dataset->broken = 25;
  for (const int64_t workers : {0, 3}) {
    DataLoader<data::Example<>> loader(dataset, DataLoaderOptions(10).num_workers(workers));
    int seen = 0;
    expect_error(ErrorKind::Value, "no sample 25", [&] {
      for ([[maybe_unused]] auto& batch : loader) {
        ++seen;
      }
    });
    EXPECT_EQ(seen, 2) << workers;
  }
}

TEST(DataLoader, RefusesOptionsThatExcludeEachOther) {
  const auto make = [](const DataLoaderOptions& options) {
    return [options] { DataLoader<TensorList> loader(numbers(3), options); };
  };
  const auto sampler = std::make_shared<data::SequentialSampler>(3);
  expect_error(ErrorKind::Value, "sampler option is mutually exclusive with shuffle",
               make(DataLoaderOptions().sampler(sampler).shuffle(true)));
  expect_error(ErrorKind::Value, "num_workers option should be non-negative",
               make(DataLoaderOptions().num_workers(-1)));
  expect_error(ErrorKind::Value, "prefetch_factor option could only be specified",
               make(DataLoaderOptions().prefetch_factor(2)));
  expect_error(ErrorKind::Value,
               "batch_size should be a positive integer value, but got "
               "batch_size=0",
               make(DataLoaderOptions(0)));
}

TEST(Dataset, RefusesTensorsOfDifferentLength) {
  expect_error(ErrorKind::Value, "Size mismatch between tensors",
               [] { data::TensorDataset({ones({3}), ones({4})}); });
  expect_error(ErrorKind::Value, "at least one tensor", [] { data::TensorDataset({}); });
}

TEST(Sampler, RefusesToDrawNothing) {
  expect_error(ErrorKind::Value, "num_samples should be a positive integer value",
               [] { data::RandomSampler(0); });
}

TEST(Collate, NumbersBecomeVectors) {
  EXPECT_EQ(data::collate(std::vector<double>{1, 2}).dtype(), DType::Float64);
  EXPECT_TRUE(equal(data::collate(std::vector<int64_t>{1, 2}), tensor({1, 2})));
  expect_error(ErrorKind::Runtime, "should be of equal size",
               [] { data::collate(std::vector<TensorList>{{ones({})}, {ones({}), ones({})}}); });
}

}  // namespace
}  // namespace rushlight
