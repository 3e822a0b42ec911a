// Modules of modules. Names are Python's: "0", "1", ... in sequences and lists, keys in dicts.
#pragma once

#include <rushlight/nn/module.h>

namespace rushlight::nn {

// Modules one after the other.
class RUSHLIGHT_API SequentialImpl : public TensorModule {
 public:
  SequentialImpl() : TensorModule("Sequential") {}
  template <typename... Modules>
    requires(sizeof...(Modules) > 0)
  explicit SequentialImpl(Modules... modules) : SequentialImpl() {
    (push_back(std::move(modules)), ...);
  }
  void push_back(std::shared_ptr<TensorModule> module);
  void push_back(const std::string& name, std::shared_ptr<TensorModule> module);
  template <typename Holder>
    requires requires(const Holder& h) { h.ptr(); }
  void push_back(const Holder& holder) {
    push_back(std::static_pointer_cast<TensorModule>(holder.ptr()));
  }
  template <typename Holder>
    requires requires(const Holder& h) { h.ptr(); }
  void push_back(const std::string& name, const Holder& holder) {
    push_back(name, std::static_pointer_cast<TensorModule>(holder.ptr()));
  }
  size_t size() const { return chain_.size(); }
  bool is_empty() const { return chain_.empty(); }
  // Error(Index) past the end.
  std::shared_ptr<TensorModule> operator[](size_t i) const;
  Tensor forward(const Tensor& input) override;

 private:
  std::vector<std::shared_ptr<TensorModule>> chain_;
};
RUSHLIGHT_MODULE(Sequential);

class RUSHLIGHT_API ModuleListImpl : public Module {
 public:
  ModuleListImpl() : Module("ModuleList") {}
  template <typename... Modules>
    requires(sizeof...(Modules) > 0)
  explicit ModuleListImpl(Modules... modules) : ModuleListImpl() {
    (push_back(std::move(modules)), ...);
  }
  void push_back(std::shared_ptr<Module> module);
  size_t size() const { return children().size(); }
  bool is_empty() const { return size() == 0; }
  // Error(Index) past the end, Error(Type) where the module is of another class.
  template <typename M>
  M& at(size_t i) const {
    return cast<M>(module_at(i));
  }

  // Neighbours that print the same are printed once, with their count.
  std::string to_string() const override;

 private:
  std::shared_ptr<Module> module_at(size_t i) const;
};
RUSHLIGHT_MODULE(ModuleList);

class RUSHLIGHT_API ModuleDictImpl : public Module {
 public:
  ModuleDictImpl() : Module("ModuleDict") {}
  explicit ModuleDictImpl(
      const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& modules);
  // Replaces the module of that name where there is one.
  void insert(const std::string& key, std::shared_ptr<Module> module);
  bool contains(const std::string& key) const;
  std::vector<std::string> keys() const;
  size_t size() const { return children().size(); }
  // Error(Key) where there is none, Error(Type) where the module is of another class.
  template <typename M>
  M& at(const std::string& key) const {
    return cast<M>(module_at(key));
  }

 private:
  std::shared_ptr<Module> module_at(const std::string& key) const;
};
RUSHLIGHT_MODULE(ModuleDict);

class RUSHLIGHT_API ParameterListImpl : public Module {
 public:
  ParameterListImpl() : Module("ParameterList") {}
  explicit ParameterListImpl(const std::vector<Tensor>& values);
  void append(const Tensor& parameter);
  size_t size() const { return named_parameters(false).size(); }
  Tensor operator[](size_t i) const;  // Error(Index) past the end
};
RUSHLIGHT_MODULE(ParameterList);

class RUSHLIGHT_API ParameterDictImpl : public Module {
 public:
  ParameterDictImpl() : Module("ParameterDict") {}
  explicit ParameterDictImpl(const NamedTensors& parameters);
  void insert(const std::string& key, const Tensor& parameter);
  bool contains(const std::string& key) const;
  size_t size() const { return named_parameters(false).size(); }
  Tensor operator[](const std::string& key) const;  // Error(Key) where there is none
};
RUSHLIGHT_MODULE(ParameterDict);

}  // namespace rushlight::nn
