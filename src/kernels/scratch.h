#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace rushlight {

// A block of memory that grows and is used again. Its contents do not survive a larger request.
class Scratch {
 public:
  // At least `count` elements, aligned to a cache line.
  template <typename T>
  T* get(int64_t count) {
    const size_t bytes = static_cast<size_t>(count) * sizeof(T);
    if (bytes > capacity_) {
      grow(bytes);
    }
    return reinterpret_cast<T*>(memory_.get());
  }

  static constexpr size_t kAlignment = 64;

 private:
  void grow(size_t bytes) {
    memory_.reset();
    capacity_ = 0;
    memory_.reset(static_cast<std::byte*>(::operator new(bytes, std::align_val_t{kAlignment})));
    capacity_ = bytes;
  }

  struct Release {
    void operator()(std::byte* memory) const {
      ::operator delete(memory, std::align_val_t{kAlignment});
    }
  };
  std::unique_ptr<std::byte, Release> memory_;
  size_t capacity_ = 0;
};

}  // namespace rushlight
