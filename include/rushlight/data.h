// Datasets, orders of their samples, and loaders that make batches of them, on threads if asked.
//
// The same seed gives the same batches as Python's loader: an epoch draws from the same generators
// in the same order.
#pragma once

#include <rushlight/nn/module.h>

#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace rushlight::data {

// Something to learn from: data and what is wanted for it.
template <typename Data = Tensor, typename Target = Tensor>
struct Example {
  Data data;
  Target target;
};

// Samples by number.
template <typename Sample = TensorList>
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual Sample get(int64_t index) = 0;  // from several threads at once, if a loader has workers
  virtual int64_t size() const = 0;
};

// Slices of tensors that have the same first size: Error(Value) where they have not.
class RUSHLIGHT_API TensorDataset : public Dataset<TensorList> {
 public:
  explicit TensorDataset(TensorList tensors);
  TensorList get(int64_t index) override;
  int64_t size() const override;
  const TensorList& tensors() const { return tensors_; }

 private:
  TensorList tensors_;
};

// Numbers of samples, in the order of an epoch.
class RUSHLIGHT_API Sampler {
 public:
  virtual ~Sampler() = default;
  virtual std::vector<int64_t> order() = 0;  // anew each time
  virtual int64_t size() const = 0;
};

// 0, 1, 2, ...
class RUSHLIGHT_API SequentialSampler : public Sampler {
 public:
  explicit SequentialSampler(int64_t size) : size_(size) {}
  std::vector<int64_t> order() override;
  int64_t size() const override { return size_; }

 private:
  int64_t size_;
};

// A random order; with `replacement`, independent draws. Error(Value) where there is none to draw.
class RUSHLIGHT_API RandomSampler : public Sampler {
 public:
  explicit RandomSampler(int64_t size, bool replacement = false,
                         std::optional<int64_t> num_samples = {},
                         std::optional<Generator> generator = {});
  std::vector<int64_t> order() override;
  int64_t size() const override { return num_samples_; }

 private:
  int64_t size_;
  bool replacement_;
  int64_t num_samples_;
  std::optional<Generator> generator_;
};

// Given numbers in a random order.
class RUSHLIGHT_API SubsetRandomSampler : public Sampler {
 public:
  explicit SubsetRandomSampler(std::vector<int64_t> indices,
                               std::optional<Generator> generator = {});
  std::vector<int64_t> order() override;
  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }

 private:
  std::vector<int64_t> indices_;
  std::optional<Generator> generator_;
};

// Lists of `batch_size` numbers of another sampler; the last may be shorter, or dropped.
class RUSHLIGHT_API BatchSampler {
 public:
  // Error(Value) unless batch_size is positive.
  BatchSampler(std::shared_ptr<Sampler> sampler, int64_t batch_size, bool drop_last);
  std::vector<std::vector<int64_t>> batches();  // of an epoch
  int64_t size() const;

 private:
  std::shared_ptr<Sampler> sampler_;
  int64_t batch_size_;
  bool drop_last_;
};

// Samples to a batch: tensors are stacked.
RUSHLIGHT_API Tensor collate(const std::vector<Tensor>& samples);
RUSHLIGHT_API TensorList collate(const std::vector<TensorList>& samples);
RUSHLIGHT_API Tensor collate(const std::vector<double>& samples);   // float64
RUSHLIGHT_API Tensor collate(const std::vector<int64_t>& samples);  // int64
template <typename Data, typename Target>
auto collate(const std::vector<Example<Data, Target>>& samples) {
  std::vector<Data> data;
  std::vector<Target> targets;
  for (const Example<Data, Target>& sample : samples) {
    data.push_back(sample.data);
    targets.push_back(sample.target);
  }
  return Example{collate(data), collate(targets)};
}

// `sampler` excludes `shuffle`. With `num_workers` threads, each loads `prefetch_factor` batches
// ahead (2 unless given); batches come in the order of the sampler whatever their number.
struct DataLoaderOptions {
  DataLoaderOptions(int64_t batch_size = 1) : batch_size_(batch_size) {}
  RUSHLIGHT_ARG(int64_t, batch_size) = 1;
  RUSHLIGHT_ARG(bool, shuffle) = false;
  RUSHLIGHT_ARG(std::shared_ptr<Sampler>, sampler) = nullptr;
  RUSHLIGHT_ARG(int64_t, num_workers) = 0;
  RUSHLIGHT_ARG(bool, drop_last) = false;
  RUSHLIGHT_ARG(std::optional<Generator>, generator) = std::nullopt;
  RUSHLIGHT_ARG(std::optional<int64_t>, prefetch_factor) = std::nullopt;

 public:
  DataLoaderOptions& workers(int64_t count) { return num_workers(count); }  // libtorch's name
};

namespace detail {

// Error(Value) on options that exclude each other; else what gives the batches of an epoch.
RUSHLIGHT_API std::shared_ptr<BatchSampler> batch_sampler(const DataLoaderOptions& options,
                                                          int64_t size);
// Draws the seed that an epoch begins with.
RUSHLIGHT_API void begin_epoch(const DataLoaderOptions& options);

// Loads batches 0, 1, ... on `workers` threads, or when they are asked for if there are none.
class RUSHLIGHT_API Prefetcher {
 public:
  using Load = std::function<std::shared_ptr<void>(size_t number)>;
  Prefetcher(size_t count, int64_t workers, int64_t ahead, Load load);
  ~Prefetcher();  // waits for the batches that are being loaded
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;
  // The next batch; null after the last. Throws what loading it threw.
  std::shared_ptr<void> next();

 private:
  struct Queue;
  size_t count_;
  size_t given_ = 0;
  Load load_;
  std::unique_ptr<Queue> queue_;
};

}  // namespace detail

// Batches of a dataset: `for (auto& batch : loader)`. Each loop is an epoch, in an order of its
// own.
template <typename Sample = TensorList>
class DataLoader {
 public:
  using Batch = decltype(collate(std::declval<std::vector<Sample>>()));

  explicit DataLoader(std::shared_ptr<Dataset<Sample>> dataset,
                      const DataLoaderOptions& options = DataLoaderOptions())
      : dataset_(std::move(dataset)),
        options_(options),
        batches_(detail::batch_sampler(options, dataset_->size())) {}

  class Iterator {
   public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    Iterator() = default;
    explicit Iterator(std::shared_ptr<detail::Prefetcher> epoch) : epoch_(std::move(epoch)) {
      ++*this;
    }
    Batch& operator*() const { return *batch_; }
    Batch* operator->() const { return batch_.get(); }
    Iterator& operator++() {
      batch_ = std::static_pointer_cast<Batch>(epoch_->next());
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(const Iterator& other) const { return batch_ == other.batch_; }

   private:
    std::shared_ptr<detail::Prefetcher> epoch_;
    std::shared_ptr<Batch> batch_;  // null at the end
  };

  Iterator begin() {
    detail::begin_epoch(options_);
    const auto numbers = std::make_shared<std::vector<std::vector<int64_t>>>(batches_->batches());
    const auto load = [numbers, dataset = dataset_](size_t number) -> std::shared_ptr<void> {
      std::vector<Sample> samples;
      for (const int64_t index : (*numbers)[number]) {
        samples.push_back(dataset->get(index));
      }
      return std::make_shared<Batch>(collate(samples));
    };
    return Iterator(std::make_shared<detail::Prefetcher>(
        numbers->size(), options_.num_workers(), options_.prefetch_factor().value_or(2), load));
  }
  Iterator end() { return Iterator(); }
  int64_t size() const { return batches_->size(); }  // in batches
  const DataLoaderOptions& options() const { return options_; }

 private:
  std::shared_ptr<Dataset<Sample>> dataset_;
  DataLoaderOptions options_;
  std::shared_ptr<BatchSampler> batches_;
};

}  // namespace rushlight::data
