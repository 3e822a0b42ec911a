// Tensor: a counted handle to sizes, strides and dtype over a storage that views share.
//
// A default-constructed Tensor is undefined: `defined()` is false and nothing else may be asked.
// Copying the handle shares the tensor; `clone()` copies the data. Strides and offsets count
// elements. Reading one tensor from many threads is safe; writing needs the caller's own order.
#pragma once

#include <rushlight/device.h>
#include <rushlight/dtype.h>
#include <rushlight/error.h>
#include <rushlight/generator.h>
#include <rushlight/scalar.h>
#include <rushlight/shape.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace rushlight {

class Tensor;
using TensorList = std::vector<Tensor>;

// Memory with an owner and a version, counted; shared by the tensors that view it.
struct StorageImpl {
  std::atomic<uint32_t> references{1};
  std::atomic<uint32_t> version{0};  // goes up with each in-place write
  void* data = nullptr;              // null: meta, or no bytes
  size_t bytes = 0;
  Device device;
  bool resizable = true;
  std::atomic<bool> pending{false};  // captured, not computed yet: see storage_data
  uint32_t inline_bytes = 0;         // of data that lies behind this header, in its own block
  void (*release)(StorageImpl* self) = nullptr;  // frees `data`; null: nothing to free
  void* context = nullptr;                       // for `release`: the foreign owner
};

// What autograd keeps of a tensor; defined in src/autograd.
struct AutogradMeta {
  virtual ~AutogradMeta() = default;
};

// Gives a pending storage its memory: `compute_pending`, which the graph installs (src/graph), runs
// what was captured. Meta storages are pending for ever: Error(NotImplemented).
RUSHLIGHT_API void resolve_pending(StorageImpl* storage);
extern void (*compute_pending)(StorageImpl* storage);

// The memory of a storage, computed first where it is pending.
inline char* storage_data(StorageImpl* storage) {
  if (storage->pending.load(std::memory_order_acquire)) [[unlikely]] {
    resolve_pending(storage);
  }
  return static_cast<char*>(storage->data);
}

struct TensorImpl {
  std::atomic<uint32_t> references{1};
  DType dtype = DType::Float32;
  Device device;
  uint8_t flags = 0;
  int32_t rank = 0;
  int64_t numel = 1;
  int64_t offset = 0;  // in elements
  StorageImpl* storage = nullptr;
  IntList sizes;
  IntList strides;
  AutogradMeta* autograd = nullptr;
  void* python = nullptr;  // the Python object of this tensor, where there is one

  enum Flag : uint8_t {
    kRequiresGrad = 1,   // a leaf that asked for it, or a result with a grad_fn
    kWrappedNumber = 2,  // made of a Python number: weak in type promotion
    kContiguous = 4,     // row-major without gaps
    kInference = 8,      // made in inference mode
    kOwnsPython = 16,    // the C++ side keeps the Python object alive, not the reverse
    kTracksBase = 32,    // a view that autograd tracks: requires grad where its base does
    kUnversioned = 64,   // made by `.data`: writes to it and its views pass unseen by autograd
  };
  bool has(Flag flag) const { return flags & flag; }
  void set(Flag flag, bool on) { flags = on ? flags | flag : flags & ~flag; }

  TensorImpl() = default;
  TensorImpl(const TensorImpl&) = delete;
  TensorImpl& operator=(const TensorImpl&) = delete;
  ~TensorImpl();

  // Recomputes rank, numel and the contiguous flag after sizes or strides changed.
  void refresh();

  static void* operator new(size_t size);
  static void operator delete(void* block, size_t size) noexcept;
};

// Whether tensors made on this thread are inference tensors; set by autograd's InferenceMode.
extern thread_local bool making_inference_tensors __attribute__((tls_model("initial-exec")));

// Installed by the Python binding: drops the reference of a kOwnsPython tensor to its object.
extern void (*release_python_object)(TensorImpl* tensor);

void retain(StorageImpl* storage);
void release(StorageImpl* storage);
void destroy(TensorImpl* tensor);
// Of a kTracksBase tensor (src/autograd/view.cpp).
bool base_requires_grad(const TensorImpl* view);

struct TensorOptions {
  std::optional<DType> dtype_;
  std::optional<Device> device_;
  std::optional<LayoutKind> layout_;
  bool requires_grad_ = false;
  TensorOptions() = default;
  TensorOptions(DType dtype) : dtype_(dtype) {}
  TensorOptions(Device device) : device_(device) {}
  TensorOptions dtype(DType dtype) const {
    TensorOptions copy = *this;
    copy.dtype_ = dtype;
    return copy;
  }
  TensorOptions device(Device device) const {
    TensorOptions copy = *this;
    copy.device_ = device;
    return copy;
  }
  TensorOptions requires_grad(bool on) const {
    TensorOptions copy = *this;
    copy.requires_grad_ = on;
    return copy;
  }
};

class RUSHLIGHT_API Tensor {
 public:
  Tensor() : impl_(nullptr) {}
  explicit Tensor(TensorImpl* owned) : impl_(owned) {}  // takes over one reference
  Tensor(const Tensor& other) : impl_(other.impl_) { retain(); }
  Tensor(Tensor&& other) noexcept : impl_(std::exchange(other.impl_, nullptr)) {}
  Tensor& operator=(const Tensor& other) {
    Tensor copy(other);
    std::swap(impl_, copy.impl_);
    return *this;
  }
  Tensor& operator=(Tensor&& other) noexcept {
    std::swap(impl_, other.impl_);
    return *this;
  }
  ~Tensor() { drop(); }

  // The handle of a tensor somebody else holds: adds a reference.
  static Tensor share(TensorImpl* impl) {
    Tensor tensor(impl);
    tensor.retain();
    return tensor;
  }
  TensorImpl* impl() const { return impl_; }
  TensorImpl* release_impl() { return std::exchange(impl_, nullptr); }

  bool defined() const { return impl_ != nullptr; }
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }
  DType dtype() const { return impl_->dtype; }
  Device device() const { return impl_->device; }
  bool is_cpu() const { return impl_->device.is_cpu(); }
  bool is_meta() const { return impl_->device.is_meta(); }
  int64_t dim() const { return impl_->rank; }
  int64_t ndimension() const { return impl_->rank; }
  int64_t numel() const { return impl_->numel; }
  IntArrayRef sizes() const { return impl_->sizes; }
  IntArrayRef strides() const { return impl_->strides; }
  int64_t size(int64_t dim) const;
  int64_t stride(int64_t dim) const;
  int64_t storage_offset() const { return impl_->offset; }
  int64_t element_size() const { return rushlight::element_size(impl_->dtype); }
  int64_t nbytes() const { return numel() * element_size(); }
  bool is_contiguous() const { return impl_->has(TensorImpl::kContiguous); }
  bool is_contiguous(MemoryFormat format) const;
  bool is_floating_point() const { return is_floating(impl_->dtype); }
  bool is_complex() const { return rushlight::is_complex(impl_->dtype); }
  TensorOptions options() const { return TensorOptions(dtype()).device(device()); }
  StorageImpl* storage() const { return impl_->storage; }
  uint32_t version() const { return impl_->storage->version.load(std::memory_order_relaxed); }
  void bump_version() const {
    if (!impl_->has(TensorImpl::kUnversioned)) {
      impl_->storage->version.fetch_add(1, std::memory_order_relaxed);
    }
  }

  // The first element. Error(Runtime) on meta tensors when read through data_ptr<T>().
  void* data() const { return storage_data(impl_->storage) + impl_->offset * element_size(); }
  // As T; Error(Runtime) naming both where T is not the element type.
  template <typename T>
  T* data_ptr() const {
    check_element_type(dtype_of<T>());
    return static_cast<T*>(data());
  }
  // The value of a tensor with one element.
  Scalar item() const;
  template <typename T>
  T item() const;
  std::string to_string() const;  // PyTorch's repr

  // Autograd (src/autograd/tensor_methods.cpp).
  bool requires_grad() const {
    return impl_->has(TensorImpl::kRequiresGrad) ||
           (impl_->has(TensorImpl::kTracksBase) && base_requires_grad(impl_));
  }
  const Tensor& requires_grad_(bool on = true) const;
  bool is_leaf() const;
  const Tensor& grad() const;  // undefined where there is none
  void set_grad(Tensor grad) const;
  Tensor detach() const;  // shares memory, outside the graph
  void retain_grad() const;
  void backward(const Tensor& gradient = {}, bool retain_graph = false,
                bool create_graph = false) const;
  // The new-data half of `x.data = y`: keeps identity and autograd record.
  void set_data(const Tensor& data) const;

#ifndef RUSHLIGHT_CORE  // the core calls the free functions: a new operator must not rebuild it
#include <rushlight/generated/tensor_methods.inc>
#endif

 private:
  template <typename T>
  static constexpr DType dtype_of();
  void check_element_type(DType dtype) const;
  void retain() const {
    if (impl_ != nullptr) {
      impl_->references.fetch_add(1, std::memory_order_relaxed);
    }
  }
  void drop() {
    if (impl_ != nullptr && impl_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      destroy(impl_);
    }
  }

  TensorImpl* impl_;
};

template <typename T>
constexpr DType Tensor::dtype_of() {
#define RUSHLIGHT_CASE(name, type, text, alias, ir, category) \
  if constexpr (std::is_same_v<T, type>) {                    \
    return DType::name;                                       \
  }
  RUSHLIGHT_DTYPES(RUSHLIGHT_CASE)
#undef RUSHLIGHT_CASE
}

template <typename T>
T Tensor::item() const {
  if constexpr (std::is_same_v<T, bool>) {
    return item().to_bool();
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(item().to_int());
  } else {
    return static_cast<T>(item().to_double());
  }
}

// One element in memory, as a number. Floats out of an integer's range saturate at int64 first.
Scalar read_element(const void* at, DType dtype);
void write_element(void* at, DType dtype, const Scalar& value);

// A fresh tensor without defined contents, outside every door (no autograd, no profiler).
Tensor make_tensor(IntArrayRef sizes, DType dtype, Device device = {});
Tensor make_strided(IntArrayRef sizes, IntArrayRef strides, DType dtype, Device device = {});
// Another view of the same storage; the caller has checked the bounds.
Tensor make_view(const Tensor& base, IntArrayRef sizes, IntArrayRef strides, int64_t offset);
Tensor make_view(const Tensor& base, IntArrayRef sizes, IntArrayRef strides, int64_t offset,
                 DType dtype);
// A 0-dim tensor of a number.
Tensor make_scalar_tensor(const Scalar& value, DType dtype);
// Memory of somebody else: `release` runs when the last view is gone.
Tensor make_foreign(void* data, IntArrayRef sizes, IntArrayRef strides, DType dtype,
                    void (*release)(StorageImpl*), void* context);
StorageImpl* make_storage(size_t bytes, Device device);
// Gives the storage this many bytes, the first of the old ones kept; Error(Runtime) where its
// memory is somebody else's.
void resize_storage(StorageImpl* storage, size_t bytes);
// Gives the tensor this shape, contiguous, growing its storage where needed.
void resize_in_place(const Tensor& tensor, IntArrayRef sizes);

}  // namespace rushlight
