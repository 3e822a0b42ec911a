// An object of each thread, made at its first use there.
//
// thread_local objects of this library take room from a block that the loader keeps for all
// libraries that are opened late, and that is small: what is not read at every operator's call
// lives here, behind one pointer.
#pragma once

#include <cstddef>

namespace rushlight {

namespace detail {
size_t next_per_thread_slot();
// Where the calling thread keeps the object of a slot; null until it is made. `destroy` is called
// on it when the thread ends.
void*& per_thread_object(size_t slot, void (*destroy)(void*));
}  // namespace detail

// Static objects only: slots are not given back.
template <typename T>
class PerThread {
 public:
  PerThread() : slot_(detail::next_per_thread_slot()) {}
  PerThread(const PerThread&) = delete;
  PerThread& operator=(const PerThread&) = delete;

  T& operator*() const {
    void*& object =
        detail::per_thread_object(slot_, [](void* made) { delete static_cast<T*>(made); });
    if (object == nullptr) {
      object = new T{};
    }
    return *static_cast<T*>(object);
  }
  T* operator->() const { return &**this; }

 private:
  size_t slot_;
};

}  // namespace rushlight
