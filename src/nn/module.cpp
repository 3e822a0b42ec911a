#include <rushlight/autograd.h>
#include <rushlight/generated/functions.h>
#include <rushlight/nn/module.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "nn/text.h"

namespace rushlight::nn {
namespace {

std::string joined(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : cat(prefix, ".", name);
}

// "a.b.weight" as "a.b" and "weight".
std::pair<std::string, std::string> split_path(const std::string& path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string::npos) {
    return {"", path};
  }
  return {path.substr(0, dot), path.substr(dot + 1)};
}

}  // namespace

void Module::check_name(const std::string& name, const char* kind) const {
  if (name.empty() || name.find('.') != std::string::npos) {
    fail(ErrorKind::Key, "", kind, " name ",
         name.empty() ? "can't be empty" : "can't contain \".\"", ", got: ", name);
  }
  auto taken = [&](const auto& list) {
    for (const auto& item : list) {
      if (item.first == name) {
        return true;
      }
    }
    return false;
  };
  bool buffer_taken = false;
  for (const NamedBuffer& buffer : buffers_) {
    buffer_taken = buffer_taken || buffer.name == name;
  }
  if (buffer_taken || taken(parameters_) || taken(children_)) {
    fail(ErrorKind::Key, "", "attribute '", name, "' already exists in ", name_);
  }
}

Tensor Module::register_parameter(const std::string& name, Tensor tensor, bool requires_grad) {
  check_name(name, "parameter");
  if (tensor.defined()) {
    tensor.requires_grad_(requires_grad);
  }
  parameters_.emplace_back(name, tensor);
  return tensor;
}

Tensor Module::register_buffer(const std::string& name, Tensor tensor, bool persistent) {
  check_name(name, "buffer");
  buffers_.push_back({name, tensor, persistent});
  return tensor;
}

std::shared_ptr<Module> Module::register_module(const std::string& name,
                                                std::shared_ptr<Module> module) {
  check_name(name, "module");
  if (module == nullptr) {
    fail(ErrorKind::Type, "register_module", "module '", name, "' is empty: construct it first");
  }
  children_.emplace_back(name, module);
  return module;
}

void Module::replace_module(const std::string& name, std::shared_ptr<Module> module) {
  for (auto& [own, child] : children_) {
    if (own == name && module != nullptr) {
      child = std::move(module);
      return;
    }
  }
  register_module(name, std::move(module));
}

void Module::replace_parameter(const std::string& name, const Tensor& tensor) {
  for (auto& [own, parameter] : parameters_) {
    if (own == name) {
      tensor.requires_grad_();
      parameter = tensor;
      return;
    }
  }
  register_parameter(name, tensor);
}

void Module::visit(const std::string& prefix, bool recurse, const Visit& visitor) const {
  visitor(prefix, *this);
  if (recurse) {
    for (const auto& [name, child] : children_) {
      child->visit(joined(prefix, name), true, visitor);
    }
  }
}

NamedTensors Module::named_parameters(bool recurse) const {
  NamedTensors found;
  std::unordered_set<const TensorImpl*> seen;
  visit("", recurse, [&](const std::string& prefix, const Module& module) {
    for (const auto& [name, tensor] : module.parameters_) {
      if (tensor.defined() && seen.insert(tensor.impl()).second) {
        found.emplace_back(joined(prefix, name), tensor);
      }
    }
  });
  return found;
}

std::vector<Tensor> Module::parameters(bool recurse) const {
  std::vector<Tensor> found;
  for (auto& [name, tensor] : named_parameters(recurse)) {
    found.push_back(tensor);
  }
  return found;
}

NamedTensors Module::named_buffers(bool recurse) const {
  NamedTensors found;
  std::unordered_set<const TensorImpl*> seen;
  visit("", recurse, [&](const std::string& prefix, const Module& module) {
    for (const NamedBuffer& buffer : module.buffers_) {
      if (buffer.tensor.defined() && seen.insert(buffer.tensor.impl()).second) {
        found.emplace_back(joined(prefix, buffer.name), buffer.tensor);
      }
    }
  });
  return found;
}

std::vector<Tensor> Module::buffers(bool recurse) const {
  std::vector<Tensor> found;
  for (auto& [name, tensor] : named_buffers(recurse)) {
    found.push_back(tensor);
  }
  return found;
}

std::vector<std::shared_ptr<Module>> Module::children() const {
  std::vector<std::shared_ptr<Module>> found;
  for (const auto& [name, child] : children_) {
    found.push_back(child);
  }
  return found;
}

std::vector<std::pair<std::string, std::shared_ptr<Module>>> Module::named_children() const {
  return children_;
}

std::vector<Module*> Module::modules(bool include_self) const {
  std::vector<Module*> found;
  visit("", true, [&](const std::string&, const Module& module) {
    if (include_self || &module != this) {
      found.push_back(const_cast<Module*>(&module));
    }
  });
  return found;
}

std::vector<std::pair<std::string, Module*>> Module::named_modules() const {
  std::vector<std::pair<std::string, Module*>> found;
  visit("", true, [&](const std::string& path, const Module& module) {
    found.emplace_back(path, const_cast<Module*>(&module));
  });
  return found;
}

Module& Module::get_submodule(const std::string& path) const {
  const Module* at = this;
  for (size_t begin = 0; !path.empty() && begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    const Module* next = nullptr;
    for (const auto& [child_name, child] : at->children_) {
      next = child_name == name ? child.get() : next;
    }
    if (next == nullptr) {
      fail(ErrorKind::Attribute, "get_submodule", at->name_, " has no module '", name, "' (path '",
           path, "')");
    }
    at = next;
    begin = end + 1;
  }
  return const_cast<Module&>(*at);
}

Tensor Module::get_parameter(const std::string& path) const {
  const auto [owner, name] = split_path(path);
  const Module& module = get_submodule(owner);
  for (const auto& [own, tensor] : module.parameters_) {
    if (own == name) {
      return tensor;
    }
  }
  fail(ErrorKind::Attribute, "get_parameter", module.name_, " has no parameter '", name, "'");
}

Tensor Module::get_buffer(const std::string& path) const {
  const auto [owner, name] = split_path(path);
  const Module& module = get_submodule(owner);
  for (const NamedBuffer& buffer : module.buffers_) {
    if (buffer.name == name) {
      return buffer.tensor;
    }
  }
  fail(ErrorKind::Attribute, "get_buffer", module.name_, " has no buffer '", name, "'");
}

NamedTensors Module::state_dict(const std::string& prefix) const {
  NamedTensors state;
  visit("", true, [&](const std::string& path, const Module& module) {
    for (const auto& [name, tensor] : module.parameters_) {
      if (tensor.defined()) {
        state.emplace_back(cat(prefix, joined(path, name)), tensor.detach());
      }
    }
    for (const NamedBuffer& buffer : module.buffers_) {
      if (buffer.persistent && buffer.tensor.defined()) {
        state.emplace_back(cat(prefix, joined(path, buffer.name)), buffer.tensor.detach());
      }
    }
  });
  return state;
}

void Module::load_state_dict(const NamedTensors& state, bool strict, bool assign) {
  NoGradGuard no_grad;
  std::string faults;
  const NamedTensors own = state_dict();
  std::unordered_map<std::string, Tensor> given;
  for (const auto& [name, tensor] : state) {
    given[name] = tensor;
  }
  std::unordered_set<std::string> known;
  for (const auto& [name, target] : own) {
    known.insert(name);
    const auto value = given.find(name);
    if (value == given.end()) {
      faults += strict ? cat("\n\tMissing key(s) in state_dict: \"", name, "\".") : "";
    } else if (!(value->second.sizes() == target.sizes())) {
      faults += cat("\n\tsize mismatch for ", name, ": copying a param with shape ",
                    value->second.sizes(), " from checkpoint, the shape in current model is ",
                    target.sizes(), ".");
    }
  }
  for (const auto& [name, tensor] : state) {
    if (strict && known.count(name) == 0) {
      faults += cat("\n\tUnexpected key(s) in state_dict: \"", name, "\".");
    }
  }
  if (!faults.empty()) {
    fail(ErrorKind::Runtime, "", "Error(s) in loading state_dict for ", name_, ":", faults);
  }
  for (const auto& [name, value] : given) {
    if (known.count(name) == 0) {
      continue;
    }
    const auto [owner, leaf] = split_path(name);
    get_submodule(owner).take(leaf, value, assign);
  }
}

void Module::take(const std::string& name, const Tensor& value, bool assign) {
  const auto into = [&](const Tensor& target) {
    if (assign) {
      target.set_data(value.detach());
    } else {
      copy_(target, value);
    }
  };
  for (const auto& [own, tensor] : parameters_) {
    if (own == name) {
      into(tensor);
    }
  }
  for (const NamedBuffer& buffer : buffers_) {
    if (buffer.name == name) {
      into(buffer.tensor);
    }
  }
}

void Module::train(bool on) {
  training_ = on;
  for (const auto& [name, child] : children_) {
    child->train(on);
  }
}

void Module::zero_grad(bool set_to_none) {
  for (Tensor& parameter : parameters()) {
    if (!parameter.grad().defined()) {
      continue;
    }
    if (set_to_none) {
      parameter.set_grad(Tensor());
    } else {
      NoGradGuard no_grad;
      zero_(parameter.grad());
    }
  }
}

void Module::requires_grad_(bool on) {
  for (Tensor& parameter : parameters()) {
    parameter.requires_grad_(on);
  }
}

void Module::to(DType dtype) {
  if (!is_floating(dtype)) {
    fail(ErrorKind::Type, "to", "nn.Module.to only accepts floating point dtypes, but got desired ",
         "dtype=", dtype);
  }
  NoGradGuard no_grad;
  for (const auto& [name, tensor] : named_parameters()) {
    if (tensor.is_floating_point()) {
      tensor.set_data(rushlight::to(tensor.detach(), dtype));
    }
  }
  for (const auto& [name, tensor] : named_buffers()) {
    if (tensor.is_floating_point()) {
      tensor.set_data(rushlight::to(tensor.detach(), dtype));
    }
  }
}

void Module::to(Device device) {
  for (const NamedTensors& tensors : {named_parameters(), named_buffers()}) {
    for (const auto& [name, tensor] : tensors) {
      if (tensor.device() != device) {
        // The layers hold the same tensors, which cannot change their device.
        fail(ErrorKind::NotImplemented, "to", "cannot move '", name, "' from ",
             tensor.device().to_string(), " to ", device.to_string(),
             tensor.is_meta() ? ": Cannot copy out of meta tensor; no data!" : "");
      }
    }
  }
}

void Module::apply(const std::function<void(Module&)>& function) {
  for (const auto& [name, child] : children_) {
    child->apply(function);
  }
  function(*this);
}

std::string Module::to_string() const {
  std::string extra = extra_repr();
  std::string lines;
  for (const auto& [name, child] : children_) {
    lines += cat("\n  (", name, "): ", indented(child->to_string()));
  }
  if (lines.empty()) {
    return cat(name_, "(", extra, ")");
  }
  return cat(name_, "(", extra.empty() ? "" : "\n  ", extra, lines, "\n)");
}

}  // namespace rushlight::nn
