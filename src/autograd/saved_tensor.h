// SavedTensor: a tensor kept for backward, with the version it had.
//
// An argument is kept as it is. A result is kept as another tensor over the same memory, so that
// node and result do not keep each other alive; unpacking it puts it back into the graph.
// Where saved-tensor hooks are active, what `pack` made is kept instead.
#pragma once

#include <cstdint>

#include "autograd/node.h"

namespace rushlight::autograd {

// Whether saving a tensor calls hooks, in this thread and now.
bool has_saved_tensor_hooks();

class SavedTensor {
 public:
  SavedTensor() = default;
  // `output`: which result of the node that saves it; -1 for an argument.
  explicit SavedTensor(const Tensor& tensor, int output = -1) { save(tensor, output); }
  SavedTensor(const SavedTensor& other) { share(other); }
  SavedTensor(SavedTensor&& other) noexcept { swap(other); }
  SavedTensor& operator=(const SavedTensor& other) {
    SavedTensor copy(other);
    swap(copy);
    return *this;
  }
  SavedTensor& operator=(SavedTensor&& other) noexcept {
    swap(other);
    return *this;
  }
  ~SavedTensor() { reset(); }

  void save(const Tensor& tensor, int output = -1);
  // Keeps how an argument lies in memory, as a meta tensor: no hook sees it, no write harms it.
  void save_layout(const Tensor& tensor);
  bool is_set() const { return state_ != State::Empty; }
  // `owner`: the node that saved it. Error(Runtime) where it was written since, or released.
  Tensor unpack(Node* owner) const;
  void reset();
  // Replaces what is kept by pack(tensor), as hooks active at the time of saving would have.
  void register_hooks(Node* owner, const SavedTensorHooks& hooks);

 private:
  enum class State : uint8_t { Empty, Argument, Result, Packed };
  struct Packed;
  void swap(SavedTensor& other) noexcept {
    std::swap(word_, other.word_);
    std::swap(version_, other.version_);
    std::swap(output_, other.output_);
    std::swap(state_, other.state_);
  }
  void share(const SavedTensor& other);
  void pack(const Tensor& tensor, const SavedTensorHooks& hooks);

  union Word {
    TensorImpl* tensor = nullptr;
    Packed* packed;
  } word_;
  uint32_t version_ = 0;
  int16_t output_ = -1;
  State state_ = State::Empty;
};

// Installed by the graph (src/graph): told of every tensor that is saved as it is while capture is
// open; null: nobody wants to know.
extern void (*note_saved)(const Tensor& tensor);

// Error(Runtime): the graph was walked before, and not retained.
[[noreturn]] void fail_released();

}  // namespace rushlight::autograd
