#include <rushlight/nn/container.h>

#include "nn/text.h"

namespace rushlight::nn {
namespace {

void check_index(const char* container, size_t i, size_t size) {
  if (i >= size) {
    fail(ErrorKind::Index, container, "index ", i, " is out of range: there are ", size);
  }
}

}  // namespace

void SequentialImpl::push_back(std::shared_ptr<TensorModule> module) {
  push_back(std::to_string(chain_.size()), std::move(module));
}

void SequentialImpl::push_back(const std::string& name, std::shared_ptr<TensorModule> module) {
  register_module(name, std::static_pointer_cast<Module>(module));
  chain_.push_back(std::move(module));
}

std::shared_ptr<TensorModule> SequentialImpl::operator[](size_t i) const {
  check_index("Sequential", i, chain_.size());
  return chain_[i];
}

Tensor SequentialImpl::forward(const Tensor& input) {
  Tensor x = input;
  for (const std::shared_ptr<TensorModule>& module : chain_) {
    x = module->forward(x);
  }
  return x;
}

void ModuleListImpl::push_back(std::shared_ptr<Module> module) {
  register_module(std::to_string(size()), std::move(module));
}

std::shared_ptr<Module> ModuleListImpl::module_at(size_t i) const {
  const std::vector<std::shared_ptr<Module>> list = children();
  check_index("ModuleList", i, list.size());
  return list[i];
}

std::string ModuleListImpl::to_string() const {
  const std::vector<std::shared_ptr<Module>> listed = children();
  if (listed.empty()) {
    return cat(name(), "()");
  }
  std::string lines;
  for (size_t begin = 0, end = 0; begin < listed.size(); begin = end) {
    const std::string text = listed[begin]->to_string();
    for (end = begin + 1; end < listed.size() && listed[end]->to_string() == text; ++end) {
    }
    const std::string place = end == begin + 1 ? std::to_string(begin) : cat(begin, "-", end - 1);
    const std::string count = end == begin + 1 ? "" : cat(end - begin, " x ");
    lines += cat("\n  (", place, "): ", count, indented(text));
  }
  return cat(name(), "(", lines, "\n)");
}

ModuleDictImpl::ModuleDictImpl(
    const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& modules)
    : ModuleDictImpl() {
  for (const auto& [key, module] : modules) {
    insert(key, module);
  }
}

void ModuleDictImpl::insert(const std::string& key, std::shared_ptr<Module> module) {
  replace_module(key, std::move(module));
}

bool ModuleDictImpl::contains(const std::string& key) const {
  for (const auto& [own, module] : named_children()) {
    if (own == key) {
      return true;
    }
  }
  return false;
}

std::vector<std::string> ModuleDictImpl::keys() const {
  std::vector<std::string> found;
  for (const auto& [key, module] : named_children()) {
    found.push_back(key);
  }
  return found;
}

std::shared_ptr<Module> ModuleDictImpl::module_at(const std::string& key) const {
  for (const auto& [own, module] : named_children()) {
    if (own == key) {
      return module;
    }
  }
  fail(ErrorKind::Key, "ModuleDict", "no module '", key, "'");
}

ParameterListImpl::ParameterListImpl(const std::vector<Tensor>& values) : ParameterListImpl() {
  for (const Tensor& value : values) {
    append(value);
  }
}

void ParameterListImpl::append(const Tensor& parameter) {
  register_parameter(std::to_string(size()), parameter);
}

Tensor ParameterListImpl::operator[](size_t i) const {
  const NamedTensors list = named_parameters(false);
  check_index("ParameterList", i, list.size());
  return list[i].second;
}

ParameterDictImpl::ParameterDictImpl(const NamedTensors& parameters) : ParameterDictImpl() {
  for (const auto& [key, parameter] : parameters) {
    insert(key, parameter);
  }
}

void ParameterDictImpl::insert(const std::string& key, const Tensor& parameter) {
  replace_parameter(key, parameter);
}

bool ParameterDictImpl::contains(const std::string& key) const {
  for (const auto& [own, parameter] : named_parameters(false)) {
    if (own == key) {
      return true;
    }
  }
  return false;
}

Tensor ParameterDictImpl::operator[](const std::string& key) const {
  for (const auto& [own, parameter] : named_parameters(false)) {
    if (own == key) {
      return parameter;
    }
  }
  fail(ErrorKind::Key, "ParameterDict", "no parameter '", key, "'");
}

}  // namespace rushlight::nn
