#include <rushlight/memory.h>
#include <rushlight/tensor.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "tensor/pending.h"
#include "tensor/storage_bounds.h"

namespace rushlight {

void (*release_python_object)(TensorImpl* tensor) = nullptr;
void (*run_captured)(std::string_view what) = nullptr;
thread_local bool making_inference_tensors = false;

namespace {

// Storages and their small data share one block: the header takes the first kHeader bytes.
constexpr size_t kHeader = 64;
constexpr size_t kInlineData = 4096;
static_assert(sizeof(StorageImpl) <= kHeader);

void release_owned(StorageImpl* self) {
  memory::release(self->data, self->bytes);
}

// Storages that were made smaller. Tensors made before may reach as far as they did then: memory is
// kept for all of `reach` bytes, or, where none is left, nobody may read or write any.
void release_reach(StorageImpl* self) {
  memory::release(self->data, reach_of(self));
}
void release_emptied(StorageImpl*) {}

void check_bounds(IntArrayRef sizes, IntArrayRef strides, size_t* elements) {
  int64_t extent = 1;
  if (strides.size() != sizes.size()) {
    fail(ErrorKind::Runtime, "empty_strided", "dimensionality of sizes (", sizes,
         ") must match dimensionality of strides (", strides, ")");
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) {
      *elements = 0;
      return;
    }
    extent = checked_add(extent, checked_multiply(sizes[i] - 1, strides[i], "empty_strided"),
                         "empty_strided");
  }
  *elements = static_cast<size_t>(extent);
}

// A header over `storage`, whose reference it takes, also where there is no memory for a header.
TensorImpl* new_header(StorageImpl* storage) {
  try {
    return new TensorImpl;
  } catch (...) {
    release(storage);
    throw;
  }
}

TensorImpl* new_impl(IntArrayRef sizes, IntArrayRef strides, DType dtype, StorageImpl* storage) {
  TensorImpl* impl = new_header(storage);
  impl->dtype = dtype;
  impl->device = storage->device;
  impl->storage = storage;
  impl->sizes.assign(sizes.data(), sizes.size());
  impl->strides.assign(strides.data(), strides.size());
  impl->refresh();
  return impl;
}

}  // namespace

size_t reach_of(const StorageImpl* storage) {
  const bool shrunk = storage->release == release_reach || storage->release == release_emptied;
  return shrunk ? reinterpret_cast<size_t>(storage->context) : storage->bytes;
}

void* TensorImpl::operator new(size_t size) {
  return memory::allocate(size);
}
void TensorImpl::operator delete(void* block, size_t size) noexcept {
  memory::release(block, size);
}

TensorImpl::~TensorImpl() {
  delete autograd;
  if (storage != nullptr) {
    rushlight::release(storage);
  }
}

void TensorImpl::refresh() {
  rank = static_cast<int32_t>(sizes.size());
  numel = 1;
  for (int64_t size : sizes) {
    numel *= size;
  }
  bool contiguous = true;
  if (numel != 0) {
    int64_t expected = 1;
    for (int32_t i = rank; i-- > 0;) {
      if (sizes[i] != 1) {
        contiguous = contiguous && strides[i] == expected;
        expected *= sizes[i];
      }
    }
  }
  set(kContiguous, contiguous);
}

void destroy(TensorImpl* tensor) {
  if (tensor->has(TensorImpl::kOwnsPython) && release_python_object != nullptr) {
    release_python_object(tensor);
  }
  delete tensor;
}

void retain(StorageImpl* storage) {
  storage->references.fetch_add(1, std::memory_order_relaxed);
}

void release(StorageImpl* storage) {
  if (storage->references.fetch_sub(1, std::memory_order_acq_rel) != 1) {
    return;
  }
  if (checks_bounds) {
    unlist_memory(storage->data, storage->bytes);
  }
  if (storage->release != nullptr) {
    storage->release(storage);
  }
  size_t block = kHeader + storage->inline_bytes;
  storage->~StorageImpl();
  memory::release(storage, block);
}

void (*compute_pending)(StorageImpl* storage) = nullptr;

void resolve_pending(StorageImpl* storage) {
  if (storage->device.is_meta()) {
    fail(ErrorKind::NotImplemented, "",
         "Cannot read the elements of a meta tensor: it has a shape and a dtype, but no data");
  }
  if (std::atomic_ref(storage->release).load(std::memory_order_acquire) == release_emptied) {
    fail(ErrorKind::Runtime, "", "setStorage: tensors that require a storage size of up to ",
         reach_of(storage), " bytes are out of bounds for storage of size 0: it was resized by ",
         "untyped_storage().resize_(0); resize it again before reading or writing them");
  }
  compute_pending(storage);
}

namespace {

StorageImpl* new_storage(size_t bytes, Device device) {
  bool inside = !device.is_meta() && bytes <= kInlineData;
  char* block = static_cast<char*>(memory::allocate(inside ? kHeader + bytes : kHeader));
  auto* storage = new (block) StorageImpl;
  storage->bytes = bytes;
  storage->device = device;
  if (device.is_meta()) {
    storage->pending.store(true, std::memory_order_relaxed);
    return storage;
  }
  if (inside) {
    storage->data = block + kHeader;
    storage->inline_bytes = static_cast<uint32_t>(bytes);
    return storage;
  }
  try {
    storage->data = memory::allocate(bytes);
  } catch (...) {
    memory::release(block, kHeader);
    throw;
  }
  storage->release = release_owned;
  return storage;
}

}  // namespace

StorageImpl* make_storage(size_t bytes, Device device) {
  StorageImpl* storage = new_storage(bytes, device);
  if (checks_bounds && storage->data != nullptr) {
    list_memory(storage->data, bytes);
  }
  return storage;
}

Tensor make_strided(IntArrayRef sizes, IntArrayRef strides, DType dtype, Device device) {
  checked_numel(sizes, "empty_strided");
  size_t elements;
  check_bounds(sizes, strides, &elements);
  int64_t bytes =
      checked_multiply(static_cast<int64_t>(elements), element_size(dtype), "empty_strided");
  StorageImpl* storage = make_storage(static_cast<size_t>(bytes), device);
  return Tensor(new_impl(sizes, strides, dtype, storage));
}

Tensor make_tensor(IntArrayRef sizes, DType dtype, Device device) {
  int64_t numel = checked_numel(sizes, "empty");
  int64_t bytes = checked_multiply(numel, element_size(dtype), "empty");
  StorageImpl* storage = make_storage(static_cast<size_t>(bytes), device);
  TensorImpl* impl = new_header(storage);
  impl->dtype = dtype;
  impl->device = device;
  impl->storage = storage;
  impl->sizes.assign(sizes.data(), sizes.size());
  impl->strides.resize(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    impl->strides[i] = stride;
    stride *= sizes[i] > 1 ? sizes[i] : 1;
  }
  impl->rank = static_cast<int32_t>(sizes.size());
  impl->numel = numel;
  impl->set(TensorImpl::kContiguous, true);
  if (making_inference_tensors) {
    impl->set(TensorImpl::kInference, true);
  }
  return Tensor(impl);
}

Tensor make_view(const Tensor& base, IntArrayRef sizes, IntArrayRef strides, int64_t offset,
                 DType dtype) {
  retain(base.storage());
  TensorImpl* impl = new_impl(sizes, strides, dtype, base.storage());
  impl->offset = offset;
  impl->flags |= base.impl()->flags & (TensorImpl::kInference | TensorImpl::kUnversioned);
  return Tensor(impl);
}

Tensor make_view(const Tensor& base, IntArrayRef sizes, IntArrayRef strides, int64_t offset) {
  return make_view(base, sizes, strides, offset, base.dtype());
}

Tensor make_foreign(void* data, IntArrayRef sizes, IntArrayRef strides, DType dtype,
                    void (*release)(StorageImpl*), void* context) {
  size_t elements;
  check_bounds(sizes, strides, &elements);
  auto* storage = new (memory::allocate(kHeader)) StorageImpl;
  storage->data = data;
  storage->bytes = elements * static_cast<size_t>(element_size(dtype));
  storage->resizable = false;
  Tensor tensor(new_impl(sizes, strides, dtype, storage));
  // Last, so that the owner stays the caller's where anything before this throws.
  storage->release = release;
  storage->context = context;
  if (checks_bounds) {
    list_memory(data, storage->bytes);
  }
  return tensor;
}

void fill_pending(StorageImpl* storage, StorageImpl* filled) {
  // Other threads look at these two while the storage is pending.
  auto own = [&](void (*release)(StorageImpl*), void* context) {
    std::atomic_ref(storage->context).store(context, std::memory_order_relaxed);
    std::atomic_ref(storage->release).store(release, std::memory_order_release);
  };
  storage->data = filled->data;
  if (filled->references.load(std::memory_order_acquire) == 1 && filled->inline_bytes == 0 &&
      filled->release == release_owned) {
    own(release_owned, nullptr);
    filled->release = nullptr;
    release(filled);
  } else {
    own([](StorageImpl* self) { release(static_cast<StorageImpl*>(self->context)); }, filled);
  }
}

void settle_captured(std::string_view what) {
  if (run_captured != nullptr) {
    run_captured(what);
  }
}

void resize_storage(StorageImpl* storage, size_t bytes) {
  if (bytes == storage->bytes) {
    return;
  }
  if (!storage->resizable) {
    fail(ErrorKind::Runtime, "resize_", "Trying to resize storage that is not resizable: it has ",
         storage->bytes, " bytes of somebody else's memory, ", bytes, " were asked for");
  }
  if (storage->device.is_meta()) {
    storage->bytes = bytes;
    return;
  }
  const bool emptied = storage->release == release_emptied;
  const char* before = emptied ? nullptr : storage_data(storage);
  // Alone, no tensor is over it.
  const bool alone = storage->references.load(std::memory_order_acquire) == 1;
  const size_t reach = alone ? bytes : std::max(bytes, reach_of(storage));
  const bool emptying = bytes == 0 && reach != 0;
  void* fresh = emptying ? nullptr : memory::allocate(reach);
  const size_t kept = std::min(reach, reach_of(storage));
  if (fresh != nullptr && before != nullptr && kept != 0) {
    std::memcpy(fresh, before, kept);
  }
  if (checks_bounds) {
    unlist_memory(storage->data, storage->bytes);
    list_memory(fresh, bytes);
  }
  if (storage->release != nullptr) {
    storage->release(storage);
  }
  storage->data = fresh;
  storage->bytes = bytes;
  storage->context = reach > bytes ? reinterpret_cast<void*>(reach) : nullptr;
  storage->release = emptying ? release_emptied : reach != bytes ? release_reach : release_owned;
  storage->pending.store(emptying, std::memory_order_release);
}

void resize_in_place(const Tensor& tensor, IntArrayRef sizes) {
  if (tensor.sizes() == sizes) {
    return;
  }
  TensorImpl* impl = tensor.impl();
  int64_t numel = checked_numel(sizes, "resize_");
  int64_t needed = checked_multiply(checked_add(numel, impl->offset, "resize_"),
                                    tensor.element_size(), "resize_");
  StorageImpl* storage = impl->storage;
  if (needed > static_cast<int64_t>(storage->bytes) && numel > 0) {
    resize_storage(storage, static_cast<size_t>(needed));
  }
  IntList strides = contiguous_strides(sizes);
  impl->sizes.assign(sizes.data(), sizes.size());
  impl->strides = strides;
  impl->refresh();
}

}  // namespace rushlight
