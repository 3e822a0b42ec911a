#include "runtime/per_thread.h"

#include <atomic>
#include <utility>
#include <vector>

namespace rushlight::detail {
namespace {

struct Object {
  void* made = nullptr;
  void (*destroy)(void*) = nullptr;
};
using Objects = std::vector<Object>;

// A pointer without a destructor, so that it may be read at any time of a thread's end.
thread_local Objects* own_objects __attribute__((tls_model("initial-exec"))) = nullptr;

struct Owner {
  ~Owner() {
    Objects* objects = std::exchange(own_objects, nullptr);
    for (const Object& object : *objects) {
      if (object.made != nullptr) {
        object.destroy(object.made);
      }
    }
    delete objects;
  }
};

}  // namespace

size_t next_per_thread_slot() {
  static std::atomic<size_t> next = 0;
  return next.fetch_add(1);
}

void*& per_thread_object(size_t slot, void (*destroy)(void*)) {
  if (own_objects == nullptr) {
    own_objects = new Objects;
    // What asks again after the thread's objects are gone, from a destructor that runs later, gets
    // new ones that stay behind.
    thread_local Owner owner;
  }
  if (slot >= own_objects->size()) {
    own_objects->resize(slot + 1);
  }
  Object& object = (*own_objects)[slot];
  object.destroy = destroy;
  return object.made;
}

}  // namespace rushlight::detail
