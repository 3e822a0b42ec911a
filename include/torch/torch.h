// The names of libtorch: programs written for it compile against Rushlight.
//
// `torch` is the namespace rushlight, whose names are mostly the same. What differs only in
// spelling is here: dtypes and devices by constants, files of tensors and modules, datasets that
// are mapped, schedules outside lr_scheduler. Files are safetensors, not libtorch's archives.
#pragma once

#include <rushlight/rushlight.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace rushlight {

constexpr DType kBool = DType::Bool;
constexpr DType kUInt8 = DType::UInt8;
constexpr DType kByte = DType::UInt8;
constexpr DType kInt8 = DType::Int8;
constexpr DType kChar = DType::Int8;
constexpr DType kInt16 = DType::Int16;
constexpr DType kShort = DType::Int16;
constexpr DType kInt32 = DType::Int32;
constexpr DType kInt = DType::Int32;
constexpr DType kInt64 = DType::Int64;
constexpr DType kLong = DType::Int64;
constexpr DType kFloat16 = DType::Float16;
constexpr DType kHalf = DType::Float16;
constexpr DType kBFloat16 = DType::BFloat16;
constexpr DType kFloat32 = DType::Float32;
constexpr DType kFloat = DType::Float32;
constexpr DType kFloat64 = DType::Float64;
constexpr DType kDouble = DType::Float64;
constexpr DType kComplexFloat = DType::Complex64;
constexpr DType kComplexDouble = DType::Complex128;
using Dtype = DType;
using ScalarType = DType;

constexpr DeviceType kCPU = DeviceType::CPU;
constexpr DeviceType kMeta = DeviceType::Meta;

constexpr std::nullopt_t nullopt = std::nullopt;
template <typename T>
using optional = std::optional<T>;

inline TensorOptions dtype(DType dtype) {
  return TensorOptions(dtype);
}
inline TensorOptions device(Device device) {
  return TensorOptions(device);
}
inline TensorOptions requires_grad(bool on = true) {
  return TensorOptions().requires_grad(on);
}

// How operators take a reduction: nll_loss(output, target, {}, torch::Reduction::Sum).
namespace Reduction {
enum Reduction : int64_t { None, Mean, Sum };
}

inline Tensor nll_loss(const Tensor& self, const Tensor& target, const Tensor& weight = {},
                       int64_t reduction = Reduction::Mean, int64_t ignore_index = -100) {
  return nll_loss_nd(self, target, weight, reduction, ignore_index);
}

// No accelerator is in this build.
namespace cuda {
inline bool is_available() {
  return false;
}
inline int64_t device_count() {
  return 0;
}
}  // namespace cuda

namespace detail {

using Named = std::vector<std::pair<std::string, Tensor>>;

inline void save_named(const Named& named, const std::string& path) {
  NoGradGuard no_grad;
  safetensors::NamedTensors tensors;
  for (const auto& [name, tensor] : named) {
    tensors.emplace(name, tensor.detach());
  }
  safetensors::save_file(tensors, path);
}

inline Named load_named(const std::string& path) {
  const safetensors::NamedTensors tensors = safetensors::load_file(path);
  return {tensors.begin(), tensors.end()};
}

}  // namespace detail

// A module's parameters and buffers, an optimizer's state, or tensors, in a file.
template <typename M>
  requires std::is_base_of_v<nn::Module, M>
void save(const std::shared_ptr<M>& module, const std::string& path) {
  detail::save_named(module->state_dict(), path);
}
template <typename M>
  requires std::is_base_of_v<nn::Module, M>
void load(const std::shared_ptr<M>& module, const std::string& path) {
  module->load_state_dict(detail::load_named(path));
}
template <typename Impl>
void save(const nn::ModuleHolder<Impl>& module, const std::string& path) {
  save(module.ptr(), path);
}
template <typename Impl>
void load(const nn::ModuleHolder<Impl>& module, const std::string& path) {
  load(module.ptr(), path);
}
inline void save(const optim::Optimizer& optimizer, const std::string& path) {
  detail::save_named(optimizer.state_dict(), path);
}
inline void load(optim::Optimizer& optimizer, const std::string& path) {
  optimizer.load_state_dict(detail::load_named(path));
}
inline void save(const Tensor& tensor, const std::string& path) {
  detail::save_named({{"0", tensor}}, path);
}
inline void load(Tensor& tensor, const std::string& path) {
  tensor = safetensors::File(path).tensor("0");
}
inline void save(const std::vector<Tensor>& tensors, const std::string& path) {
  detail::Named named;
  for (size_t i = 0; i < tensors.size(); ++i) {
    named.emplace_back(std::to_string(i), tensors[i]);
  }
  detail::save_named(named, path);
}
inline void load(std::vector<Tensor>& tensors, const std::string& path) {
  const safetensors::File file(path);
  tensors.clear();
  for (size_t i = 0; i < file.entries().size(); ++i) {
    tensors.push_back(file.tensor(std::to_string(i)));
  }
}

namespace optim {
using lr_scheduler::LRScheduler;
using lr_scheduler::ReduceLROnPlateau;
using lr_scheduler::StepLR;
}  // namespace optim

namespace data {

namespace samplers {
using data::RandomSampler;
using data::SequentialSampler;
}  // namespace samplers

namespace transforms {

// Marks that batches are stacked, as all are here.
template <typename Single = Example<>>
struct Stack {
  Single operator()(Single sample) const { return sample; }
};

// (data - mean) / stddev, a number each, or one a channel of (C, H, W).
template <typename Target = Tensor>
class Normalize {
 public:
  Normalize(double mean, double stddev) : mean_(tensor(mean)), stddev_(tensor(stddev)) {}
  Normalize(const std::vector<double>& mean, const std::vector<double>& stddev)
      : mean_(channels(mean)), stddev_(channels(stddev)) {}
  Example<Tensor, Target> operator()(Example<Tensor, Target> sample) const {
    sample.data = (sample.data - mean_) / stddev_;
    return sample;
  }

 private:
  static Tensor channels(const std::vector<double>& values) {
    return collate(values).to(default_dtype()).view({-1, 1, 1});
  }
  Tensor mean_;
  Tensor stddev_;
};

}  // namespace transforms

namespace datasets {

template <typename D, typename Transform>
class MapDataset;

// Samples by number; a subclass names itself: `struct Digits : Dataset<Digits>`.
template <typename Self, typename Single = Example<>>
class Dataset {
 public:
  using ExampleType = Single;
  virtual ~Dataset() = default;
  virtual Single get(size_t index) = 0;
  virtual std::optional<size_t> size() const = 0;
  // The samples after a transform.
  template <typename Transform>
  MapDataset<Self, Transform> map(Transform transform) {
    return {std::move(static_cast<Self&>(*this)), std::move(transform)};
  }
};

template <typename D, typename Transform>
class MapDataset
    : public Dataset<MapDataset<D, Transform>,
                     std::decay_t<std::invoke_result_t<Transform, typename D::ExampleType>>> {
 public:
  using Single = std::decay_t<std::invoke_result_t<Transform, typename D::ExampleType>>;
  MapDataset(D dataset, Transform transform)
      : dataset_(std::move(dataset)), transform_(std::move(transform)) {}
  Single get(size_t index) override { return transform_(dataset_.get(index)); }
  std::optional<size_t> size() const override { return dataset_.size(); }

 private:
  D dataset_;
  Transform transform_;
};

}  // namespace datasets

namespace detail {

// A dataset of libtorch's kind as one of ours.
template <typename D>
class Adapted : public Dataset<typename D::ExampleType> {
 public:
  explicit Adapted(D dataset) : dataset_(std::move(dataset)) {}
  typename D::ExampleType get(int64_t index) override {
    return dataset_.get(static_cast<size_t>(index));
  }
  int64_t size() const override { return static_cast<int64_t>(dataset_.size().value()); }

 private:
  D dataset_;
};

}  // namespace detail

// A loader of a dataset whose last map is transforms::Stack; random unless another sampler is
// named.
template <typename S = RandomSampler, typename D>
auto make_data_loader(D dataset, DataLoaderOptions options = DataLoaderOptions()) {
  const auto size = static_cast<int64_t>(dataset.size().value());
  options.sampler(std::make_shared<S>(size));
  return std::make_unique<DataLoader<typename D::ExampleType>>(
      std::make_shared<detail::Adapted<D>>(std::move(dataset)), options);
}

}  // namespace data
}  // namespace rushlight

namespace torch = rushlight;
