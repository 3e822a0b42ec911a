// The one way in: every operator call, from C++ or Python, is an Invocation that passes the doors.
//
// Doors are tried in the order of the enum; each is open only when somebody asked for it. A closed
// row costs one test of a thread-local word.
#pragma once

#include <rushlight/value.h>

#include <cstdint>
#include <functional>
#include <initializer_list>

namespace rushlight {

class Operator;

enum class Form : uint8_t { Functional, Inplace, Out };

struct Invocation {
  const Operator* op;
  Form form;
  uint8_t argument_count;
  uint8_t result_count;
  Value* arguments;
  Value* results;  // Inplace: results[0] is the written argument; Out: the given tensors
};

enum Door : uint32_t {
  kOverrideDoor = 1 << 0,  // __torch_function__ modes and C++ interceptors
  kAutocastDoor = 1 << 1,
  kProfileDoor = 1 << 2,    // records name, shapes, time, bytes
  kAutogradDoor = 1 << 3,   // open while grad mode is on
  kTransformDoor = 1 << 4,  // vmap, jvp
  kDispatchDoor = 1 << 5,   // __torch_dispatch__
  kCaptureDoor = 1 << 6,    // compile
};
inline constexpr int kDoorCount = 7;

// What a door does: handle the call wholly, or pass it on with `pass(inv, door)`.
using DoorFunction = void (*)(Invocation& inv);
void install_door(Door door, DoorFunction function);
// Goes on with the doors after `door`.
void pass(Invocation& inv, Door door);

struct ThreadState {
  uint32_t doors = kAutogradDoor;
  bool grad_mode = true;
  bool inference_mode = false;
  bool anomaly_mode = false;
  uint32_t capture = 0;  // the settings of the open capture (src/graph/capture.h); 0: none
};
extern thread_local ThreadState thread_state __attribute__((tls_model("initial-exec")));

// Closes or opens doors for a scope.
class DoorGuard {
 public:
  DoorGuard(uint32_t open, uint32_t close) : saved_(thread_state.doors) {
    thread_state.doors = (saved_ | open) & ~close;
  }
  ~DoorGuard() { thread_state.doors = saved_; }
  DoorGuard(const DoorGuard&) = delete;

 private:
  uint32_t saved_;
};

// Runs an invocation through the open doors.
RUSHLIGHT_API void invoke(Invocation& inv);

// Runs the body on its device, past all doors: what the last door does. Handles out= and in-place
// forms of bodies that do not write outputs themselves, and bumps versions of what was written.
void run_body(Invocation& inv);

// Whether any tensor argument (lists too) requires grad.
bool any_requires_grad(const Invocation& inv);

// What generated C++ functions call.
RUSHLIGHT_API Tensor call(const Operator& op, std::initializer_list<Value> arguments);
RUSHLIGHT_API void call_many(const Operator& op, std::initializer_list<Value> arguments,
                             Value* results, int count);
RUSHLIGHT_API void call_inplace(const Operator& op, std::initializer_list<Value> arguments);
RUSHLIGHT_API void call_out(const Operator& op, std::initializer_list<Value> arguments,
                            std::initializer_list<Tensor> outputs);

// Calls `visit` for each defined tensor among the values, those in lists too.
template <typename F>
void for_each_tensor(const Value* values, int count, F&& visit) {
  for (int i = 0; i < count; ++i) {
    if (values[i].is_tensor()) {
      visit(values[i].tensor());
    } else if (values[i].tag() == Value::Tag::Tensors) {
      for (const Tensor& tensor : values[i].tensors()) {
        if (tensor.defined()) {
          visit(tensor);
        }
      }
    }
  }
}

}  // namespace rushlight
