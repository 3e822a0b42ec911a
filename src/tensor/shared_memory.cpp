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

int descriptor_of(const StorageImpl* storage) {
  return static_cast<int>(reinterpret_cast<intptr_t>(storage->context)) - 1;
}

void release_shared(StorageImpl* storage) {
  if (storage->data != nullptr) {
    munmap(storage->data, storage->bytes);
  }
  close(descriptor_of(storage));
}

void hold(StorageImpl* storage, int descriptor, void* data) {
  storage->data = data;
  storage->release = release_shared;
  storage->context = reinterpret_cast<void*>(static_cast<intptr_t>(descriptor) + 1);
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
    return descriptor_of(storage);
  }
  if (storage->device.is_meta()) {
    fail(ErrorKind::Runtime, "share_memory_", "a meta storage has no bytes to share");
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
  if (storage->release != nullptr) {
    storage->release(storage);
  }
  hold(storage, descriptor, data);
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
  hold(storage, own, data);
  return storage;
}

}  // namespace rushlight
