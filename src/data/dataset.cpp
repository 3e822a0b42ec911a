#include <rushlight/data.h>
#include <rushlight/generated/functions.h>

#include <algorithm>
#include <numeric>

namespace rushlight::data {
namespace {

std::vector<int64_t> listed(const Tensor& numbers) {
  const int64_t* begin = numbers.data_ptr<int64_t>();
  return {begin, begin + numbers.numel()};
}

Tensor permutation(int64_t size, const std::optional<Generator>& generator) {
  return randperm(size, TensorOptions(DType::Int64), generator);
}

template <typename T>
Tensor row_of(const std::vector<T>& values, DType dtype) {
  const Tensor row = empty({static_cast<int64_t>(values.size())}, TensorOptions(dtype));
  std::copy(values.begin(), values.end(), row.data_ptr<T>());
  return row;
}

}  // namespace

TensorDataset::TensorDataset(TensorList tensors) : tensors_(std::move(tensors)) {
  if (tensors_.empty()) {
    fail(ErrorKind::Value, "TensorDataset", "expected at least one tensor");
  }
  for (const Tensor& tensor : tensors_) {
    if (tensor.size(0) != tensors_[0].size(0)) {
      fail(ErrorKind::Value, "", "Size mismatch between tensors");
    }
  }
}

TensorList TensorDataset::get(int64_t index) {
  TensorList sample;
  for (const Tensor& tensor : tensors_) {
    sample.push_back(select(tensor, 0, index));
  }
  return sample;
}

int64_t TensorDataset::size() const {
  return tensors_[0].size(0);
}

std::vector<int64_t> SequentialSampler::order() {
  std::vector<int64_t> numbers(static_cast<size_t>(size_));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

RandomSampler::RandomSampler(int64_t size, bool replacement, std::optional<int64_t> num_samples,
                             std::optional<Generator> generator)
    : size_(size),
      replacement_(replacement),
      num_samples_(num_samples.value_or(size)),
      generator_(std::move(generator)) {
  if (num_samples_ <= 0) {
    fail(ErrorKind::Value, "",
         "num_samples should be a positive integer value, but got num_samples=", num_samples_);
  }
}

std::vector<int64_t> RandomSampler::order() {
  std::optional<Generator> generator = generator_;
  if (!generator) {
    const Tensor seed = empty({}, TensorOptions(DType::Int64));
    random_(seed);
    generator.emplace(static_cast<uint64_t>(seed.item().to_int()));
  }
  std::vector<int64_t> numbers;
  const auto add = [&](const Tensor& drawn, int64_t count) {
    const std::vector<int64_t> all = listed(drawn);
    numbers.insert(numbers.end(), all.begin(), all.begin() + count);
  };
  if (replacement_) {
    const auto draw = [&](int64_t count) {
      add(randint(size_, IntList{count}, TensorOptions(DType::Int64), generator), count);
    };
    for (int64_t block = 0; block < num_samples_ / 32; ++block) {
      draw(32);
    }
    draw(num_samples_ % 32);
    return numbers;
  }
  for (int64_t round = 0; round < num_samples_ / size_; ++round) {
    add(permutation(size_, generator), size_);
  }
  add(permutation(size_, generator), num_samples_ % size_);
  return numbers;
}

SubsetRandomSampler::SubsetRandomSampler(std::vector<int64_t> indices,
                                         std::optional<Generator> generator)
    : indices_(std::move(indices)), generator_(std::move(generator)) {}

std::vector<int64_t> SubsetRandomSampler::order() {
  std::vector<int64_t> numbers = listed(permutation(size(), generator_));
  for (int64_t& number : numbers) {
    number = indices_[static_cast<size_t>(number)];
  }
  return numbers;
}

BatchSampler::BatchSampler(std::shared_ptr<Sampler> sampler, int64_t batch_size, bool drop_last)
    : sampler_(std::move(sampler)), batch_size_(batch_size), drop_last_(drop_last) {
  if (batch_size <= 0) {
    fail(ErrorKind::Value, "",
         "batch_size should be a positive integer value, but got batch_size=", batch_size);
  }
}

std::vector<std::vector<int64_t>> BatchSampler::batches() {
  const std::vector<int64_t> numbers = sampler_->order();
  const size_t most = static_cast<size_t>(batch_size_);
  std::vector<std::vector<int64_t>> found;
  for (size_t begin = 0; begin < numbers.size(); begin += most) {
    const size_t count = std::min(most, numbers.size() - begin);
    if (count == most || !drop_last_) {
      const auto first = numbers.begin() + static_cast<std::ptrdiff_t>(begin);
      found.emplace_back(first, first + static_cast<std::ptrdiff_t>(count));
    }
  }
  return found;
}

int64_t BatchSampler::size() const {
  const int64_t rounding = drop_last_ ? 0 : batch_size_ - 1;
  return (sampler_->size() + rounding) / batch_size_;
}

Tensor collate(const std::vector<Tensor>& samples) {
  return stack(samples);
}

TensorList collate(const std::vector<TensorList>& samples) {
  TensorList batch;
  for (size_t field = 0; field < samples.at(0).size(); ++field) {
    TensorList values;
    for (const TensorList& sample : samples) {
      if (sample.size() != samples[0].size()) {
        fail(ErrorKind::Runtime, "", "each element in list of batch should be of equal size");
      }
      values.push_back(sample[field]);
    }
    batch.push_back(stack(values));
  }
  return batch;
}

Tensor collate(const std::vector<double>& samples) {
  return row_of(samples, DType::Float64);
}

Tensor collate(const std::vector<int64_t>& samples) {
  return row_of(samples, DType::Int64);
}

}  // namespace rushlight::data
