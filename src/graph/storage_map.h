// Storage -> its number in a segment. Open addressing; emptied as a whole.
#pragma once

#include <rushlight/tensor.h>

#include <cstdint>
#include <vector>

namespace rushlight::graph {

class StorageMap {
 public:
  StorageMap() : slots_(64) {}
  int find(const StorageImpl* storage) const {
    for (size_t at = start(storage);; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at].storage == storage) {
        return slots_[at].number;
      }
      if (slots_[at].storage == nullptr) {
        return -1;
      }
    }
  }
  void insert(const StorageImpl* storage, int number) {
    if (2 * (used_ + 1) > slots_.size()) {
      grow();
    }
    ++used_;
    place({storage, number});
  }
  void clear() {
    if (used_ != 0) {
      slots_.assign(slots_.size(), Slot());
      used_ = 0;
    }
  }

 private:
  struct Slot {
    const StorageImpl* storage = nullptr;
    int number = -1;
  };
  size_t start(const StorageImpl* storage) const {
    return (reinterpret_cast<uintptr_t>(storage) >> 5) * 0x9E3779B97F4A7C15ull >> 32 &
           (slots_.size() - 1);
  }
  void place(Slot slot) {
    size_t at = start(slot.storage);
    while (slots_[at].storage != nullptr) {
      at = (at + 1) & (slots_.size() - 1);
    }
    slots_[at] = slot;
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.storage != nullptr) {
        place(slot);
      }
    }
  }

  std::vector<Slot> slots_;  // a power of two
  size_t used_ = 0;
};

}  // namespace rushlight::graph
