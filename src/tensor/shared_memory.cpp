#include "tensor/shared_memory.h"

#include <fcntl.h>
#include <rushlight/error.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "tensor/pending.h"
#include "tensor/storage_bounds.h"

namespace rushlight {
namespace {

[[noreturn]] void refuse(const char* what, size_t bytes) {
  fail(ErrorKind::Runtime, "share_memory_", what, " of ", bytes,
       " bytes of shared memory failed: ", std::strerror(errno));
}

// Memory without a name, behind a descriptor.
int create(size_t bytes) {
#ifdef __linux__
  const int descriptor = memfd_create("rushlight", MFD_CLOEXEC);
#else
  static std::atomic<int> count{0};
  const std::string name =
      "/rushlight_" + std::to_string(getpid()) + "_" + std::to_string(count.fetch_add(1));
  const int descriptor = shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  if (descriptor >= 0) {
    shm_unlink(name.c_str());
  }
#endif
  if (descriptor < 0) {
    refuse("making", bytes);
  }
  if (ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) {
    close(descriptor);
    refuse("making", bytes);
  }
  return descriptor;
}

// Null for no bytes, which cannot be mapped.
void* map(int descriptor, size_t bytes) {
  if (bytes == 0) {
    return nullptr;
  }
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (data == MAP_FAILED) {
    close(descriptor);
    refuse("mapping", bytes);
  }
  return data;
}

// What a shared storage owns besides the mapping.
struct Shared {
  int descriptor = 0;
  StorageImpl* before = nullptr;  // the memory it had, where an array or another library reads it
};

Shared* shared_of(const StorageImpl* storage) {
  return static_cast<Shared*>(storage->context);
}

void release_shared(StorageImpl* storage) {
  if (storage->data != nullptr) {
    munmap(storage->data, storage->bytes);
  }
  Shared* shared = shared_of(storage);
  close(shared->descriptor);
  if (shared->before != nullptr) {
    release(shared->before);
  }
  delete shared;
}

// A storage that takes over the memory of `storage`. Memory in the block of its header stays there.
StorageImpl* split_memory(StorageImpl* storage) {
  StorageImpl* owner = make_storage(0, storage->device);
  owner->data = storage->data;
  owner->bytes = storage->bytes;
  owner->context = storage->context;
  owner->release = storage->release;
  return owner;
}

void hold(StorageImpl* storage, Shared shared, void* data) {
  storage->data = data;
  storage->context = new Shared(shared);
  storage->release = release_shared;
  storage->resizable = false;
  if (checks_bounds && data != nullptr) {
    list_memory(data, storage->bytes);
  }
}

}  // namespace

bool is_shared(const StorageImpl* storage) {
  return storage->release == release_shared;
}

int share_memory(StorageImpl* storage) {
  if (is_shared(storage)) {
    return shared_of(storage)->descriptor;
  }
  if (storage->device.is_meta()) {
    fail(ErrorKind::Runtime, "share_memory_", "a meta storage has no bytes to share");
  }
  if (reach_of(storage) > storage->bytes) {
    fail(ErrorKind::Runtime, "share_memory_", "a storage of ", storage->bytes,
         " bytes cannot be shared while tensors may reach the ", reach_of(storage),
         " bytes that it had before resize_");
  }
  char* before = storage_data(storage);
  const int descriptor = create(storage->bytes);
  void* data = map(descriptor, storage->bytes);
  if (before != nullptr && storage->bytes != 0) {
    std::memcpy(data, before, storage->bytes);
  }
  if (checks_bounds && before != nullptr) {
    unlist_memory(before, storage->bytes);
  }
  StorageImpl* lent = nullptr;
  if (storage->release != nullptr && !storage->resizable) {
    lent = split_memory(storage);
  } else if (storage->release != nullptr) {
    storage->release(storage);
  }
  hold(storage, {descriptor, lent}, data);
  return descriptor;
}

StorageImpl* open_shared(int descriptor, size_t bytes) {
  const int own = dup(descriptor);
  if (own < 0) {
    refuse("opening", bytes);
  }
  void* data = map(own, bytes);
  StorageImpl* storage = make_storage(0, Device());
  if (checks_bounds) {
    unlist_memory(storage->data, 0);
  }
  storage->bytes = bytes;
  if (storage->release != nullptr) {
    storage->release(storage);
  }
  hold(storage, {own, nullptr}, data);
  return storage;
}

}  // namespace rushlight
