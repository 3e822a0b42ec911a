#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace rushlight {

// A borrowed callable: two words, no allocation. The callable must outlive every call, which holds
// for a lambda written in the argument list of the function that takes the reference.
template <typename Signature>
class FunctionRef;

template <typename Result, typename... Args>
class FunctionRef<Result(Args...)> {
 public:
  template <typename F,
            typename = std::enable_if_t<!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
                                        std::is_invocable_r_v<Result, F&, Args...>>>
  FunctionRef(F&& callable)  // NOLINT(google-explicit-constructor): converting is the purpose
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* object, Args... args) -> Result {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
        }) {}

  Result operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  Result (*call_)(void*, Args...);
};

}  // namespace rushlight
