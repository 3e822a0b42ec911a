// nn::Module: a tree of parameters, buffers and other modules, with names as in Python.
#pragma once

#include <rushlight/tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rushlight::nn {

// Name and tensor, in the order of registration: what state_dict gives and takes.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

class RUSHLIGHT_API Module : public std::enable_shared_from_this<Module> {
 public:
  explicit Module(std::string name = "Module") : name_(std::move(name)) {}
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const std::string& name() const { return name_; }

  // Error(Key) on an empty name, one with a dot, or one that is taken. Return what was given.
  Tensor register_parameter(const std::string& name, Tensor tensor, bool requires_grad = true);
  Tensor register_buffer(const std::string& name, Tensor tensor, bool persistent = true);
  std::shared_ptr<Module> register_module(const std::string& name, std::shared_ptr<Module> module);
  template <typename M>
  std::shared_ptr<M> register_module(const std::string& name, std::shared_ptr<M> module) {
    register_module(name, std::static_pointer_cast<Module>(module));
    return module;
  }
  template <typename Holder>
    requires requires(const Holder& h) { h.ptr(); }
  Holder register_module(const std::string& name, Holder holder) {
    register_module(name, std::static_pointer_cast<Module>(holder.ptr()));
    return holder;
  }

  // A tensor that is registered under two names is listed once, under the first.
  std::vector<Tensor> parameters(bool recurse = true) const;
  NamedTensors named_parameters(bool recurse = true) const;
  std::vector<Tensor> buffers(bool recurse = true) const;
  NamedTensors named_buffers(bool recurse = true) const;
  std::vector<std::shared_ptr<Module>> children() const;
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> named_children() const;
  std::vector<Module*> modules(bool include_self = true) const;  // depth first
  // With their dotted names, depth first; the module itself comes first, under "".
  std::vector<std::pair<std::string, Module*>> named_modules() const;
  // By dotted name; "" is the module itself. Error(Attribute) naming the part that is missing.
  Module& get_submodule(const std::string& path) const;
  Tensor get_parameter(const std::string& path) const;
  Tensor get_buffer(const std::string& path) const;

  // Parameters and persistent buffers by their dotted names; sharing memory with the module's.
  NamedTensors state_dict(const std::string& prefix = "") const;
  // Copies values by name; with `assign` the tensors become the module's own (their dtypes too).
  // Error(Runtime) listing missing and unexpected names (strict) and shapes that differ.
  void load_state_dict(const NamedTensors& state, bool strict = true, bool assign = false);

  virtual void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const { return training_; }
  void zero_grad(bool set_to_none = true);
  void requires_grad_(bool on = true);
  void to(DType dtype);  // floating parameters and buffers only
  // For programs that name their device: Error(NotImplemented) unless all tensors are there.
  void to(Device device);
  void apply(const std::function<void(Module&)>& function);
  virtual std::string extra_repr() const { return ""; }
  virtual std::string to_string() const;  // Python's repr

 protected:
  // For containers that may be refilled: puts `module` or `tensor` under `name`, new or not.
  void replace_module(const std::string& name, std::shared_ptr<Module> module);
  void replace_parameter(const std::string& name, const Tensor& tensor);
  // The module as an M; Error(Type) naming both where it is of another class.
  template <typename M>
  static M& cast(const std::shared_ptr<Module>& module) {
    M* found = dynamic_cast<M*>(module.get());
    if (found == nullptr) {
      fail(ErrorKind::Type, "at", "the module is a ", module->name(), ", not what was asked for");
    }
    return *found;
  }

 private:
  struct NamedBuffer {
    std::string name;
    Tensor tensor;
    bool persistent;
  };
  using Visit = std::function<void(const std::string& prefix, const Module& module)>;
  void visit(const std::string& prefix, bool recurse, const Visit& visit) const;
  void check_name(const std::string& name, const char* kind) const;
  void take(const std::string& name, const Tensor& value, bool assign);

  std::string name_;
  bool training_ = true;
  NamedTensors parameters_;
  std::vector<NamedBuffer> buffers_;
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> children_;
};

// A module from one tensor to another: what Sequential chains.
class RUSHLIGHT_API TensorModule : public Module {
 public:
  using Module::Module;
  virtual Tensor forward(const Tensor& input) = 0;
  Tensor operator()(const Tensor& input) { return forward(input); }
};

// How the elements of a loss become one.
enum class Reduction : uint8_t { None, Mean, Sum };

// A handle with the module's constructor: `nn::Linear linear(2, 3); linear(x)`. `Linear{nullptr}`
// is empty.
template <typename Impl>
class ModuleHolder {
 public:
  ModuleHolder()
    requires std::is_default_constructible_v<Impl>
      : impl_(std::make_shared<Impl>()) {}
  ModuleHolder(std::nullptr_t) {}
  ModuleHolder(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  template <typename First, typename... Rest>
    requires(std::is_constructible_v<Impl, First, Rest...> &&
             !std::is_base_of_v<ModuleHolder, std::decay_t<First>>)
  explicit ModuleHolder(First&& first, Rest&&... rest)
      : impl_(std::make_shared<Impl>(std::forward<First>(first), std::forward<Rest>(rest)...)) {}

  Impl* operator->() const { return get(); }
  Impl& operator*() const { return *get(); }
  const std::shared_ptr<Impl>& ptr() const { return impl_; }
  bool is_empty() const { return impl_ == nullptr; }
  explicit operator bool() const { return impl_ != nullptr; }
  operator std::shared_ptr<Module>() const { return impl_; }
  template <typename... Arguments>
  auto operator()(Arguments&&... arguments) const {
    return get()->forward(std::forward<Arguments>(arguments)...);
  }

 private:
  Impl* get() const {
    if (impl_ == nullptr) {
      fail(ErrorKind::Runtime, "nn", "an empty module holder was used; construct the module first");
    }
    return impl_.get();
  }
  std::shared_ptr<Impl> impl_;
};

}  // namespace rushlight::nn

// Declares the handle `Name` of the class `NameImpl`.
#define RUSHLIGHT_MODULE(Name)                                     \
  class Name : public ::rushlight::nn::ModuleHolder<Name##Impl> {  \
   public:                                                         \
    using ::rushlight::nn::ModuleHolder<Name##Impl>::ModuleHolder; \
  }

// An option of a layer or an optimizer: RUSHLIGHT_ARG(double, eps) = 1e-5. Set by eps(value), which
// returns the options, read by eps(). Options stand in the order of Python's parameters, under
// their names and with their defaults: tests/python/binding/test_layers_in_both.py compares.
#define RUSHLIGHT_ARG(Type, name)            \
 public:                                     \
  auto name(Type value) -> decltype(*this) { \
    name##_ = std::move(value);              \
    return *this;                            \
  }                                          \
  const Type& name() const {                 \
    return name##_;                          \
  }                                          \
  Type name##_
