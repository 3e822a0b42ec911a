// Compilation: functions whose operators are captured, fused and run together.
//
//   auto fast = rushlight::compile([](const Tensor& x) { return relu(x * 2 + 1).sum(); });
//   Tensor y = fast(x);
//
// The function runs at every call, so it may do anything. What needs a tensor's value inside (item,
// data_ptr, printing) computes what was captured so far. Results have the bits that they have
// without compilation, and gradients are captured when backward reaches them. See docs/compile.md.
#pragma once

#include <rushlight/error.h>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace rushlight {

struct CompileOptions {
  // How much of what autograd saves is kept for backward: 1 keeps all but what costs no time, 0
  // what cannot be made again cheaply; between, what saves most memory for its time is made again.
  // Error(Runtime) where it is neither.
  double activation_memory_budget = 1;
  // Error(Runtime) where a tensor's value is needed before the function has returned.
  bool fullgraph = false;
};

// While it lives, operators of this thread are captured. Where capture is on already, it does
// nothing.
class RUSHLIGHT_API Capture {
 public:
  explicit Capture(const CompileOptions& options = {});
  ~Capture();  // computes what is left; errors are dropped where one is on its way already
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  // Computes what is left. Errors of operators are thrown here.
  void close();

 private:
  bool open_;
};

template <typename F>
auto compile(F function, const CompileOptions& options = {}) {
  return [function = std::move(function), options](auto&&... arguments) mutable {
    Capture capture(options);
    if constexpr (std::is_void_v<decltype(function(
                      std::forward<decltype(arguments)>(arguments)...))>) {
      function(std::forward<decltype(arguments)>(arguments)...);
      capture.close();
    } else {
      auto result = function(std::forward<decltype(arguments)>(arguments)...);
      capture.close();
      return result;
    }
  };
}

}  // namespace rushlight
