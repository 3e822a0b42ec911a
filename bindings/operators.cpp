// Puts every operator of the table where Python looks for it.
#include <deque>
#include <map>
#include <mutex>

#include "module.h"
#include "op_function.h"
#include "ops/aliases.h"
#include "ops/derivative.h"

namespace rushlight::python {
namespace {

// Where the functions of a name prefix go.
struct Namespace {
  const char* prefix;
  const char* submodule;  // of _C
  const char* module;
};
constexpr Namespace kNamespaces[] = {
    {"special_", "_special", "rushlight.special"},
    {"linalg_", "_linalg", "rushlight.linalg"},
    {"fft_", "_fft", "rushlight.fft"},
};

std::deque<OverloadSet>& sets() {
  static std::deque<OverloadSet> list;  // never shrinks: callables point into it
  return list;
}
std::map<std::string, OverloadSet*>& functions() {
  static std::map<std::string, OverloadSet*> index;
  return index;
}
std::map<std::string, OverloadSet*>& methods() {
  static std::map<std::string, OverloadSet*> index;
  return index;
}

OverloadSet& set_for(std::map<std::string, OverloadSet*>& index, const std::string& name,
                     bool method) {
  OverloadSet*& found = index[name];
  if (found == nullptr) {
    found = &sets().emplace_back();
    found->name = name;
    found->method = method;
  }
  return *found;
}

// Whether `a` takes a tensor where `b`, alike before, takes a number.
bool prefers_tensor(const Signature& a, const Signature& b) {
  for (size_t i = 0; i < a.parameters.size() && i < b.parameters.size(); ++i) {
    const SchemaType of_a = a.parameters[i].argument->type;
    const SchemaType of_b = b.parameters[i].argument->type;
    if (of_a != of_b) {
      return of_a == SchemaType::Tensor && of_b == SchemaType::Scalar;
    }
  }
  return false;
}

// Tensors without dimensions could pass as numbers: the overload for tensors comes first.
void add_signature(OverloadSet& set, Signature signature) {
  auto at = set.signatures.begin();
  while (at != set.signatures.end() && !prefers_tensor(signature, *at)) {
    ++at;
  }
  set.signatures.insert(at, std::move(signature));
}

// `name` is the operator's own or an alias.
void add_faces(const Operator& op, const std::string& name,
               std::map<std::string, OverloadSet*>& nn) {
  if (op.variants & kInternal) {
    return;
  }
  if (op.variants & kFunction) {
    add_signature(set_for(functions(), name, false),
                  make_signature(op, Face::Function, Form::Functional));
  }
  if (op.variants & kNN) {
    add_signature(set_for(nn, name, false), make_signature(op, Face::Function, Form::Functional));
  }
  if (op.variants & kMethod) {
    add_signature(set_for(methods(), name, true),
                  make_signature(op, Face::Method, Form::Functional));
  }
  if (!(op.variants & kInplace)) {
    return;
  }
  // In-place forms are methods of Tensor even where the plain form is none (copy_, fill_).
  if (!(op.variants & kNN) || (op.variants & kMethod)) {
    add_signature(set_for(methods(), name + "_", true),
                  make_signature(op, Face::Method, Form::Inplace));
  }
  if (op.variants & (kFunction | kInplaceFunction)) {
    add_signature(set_for(functions(), name + "_", false),
                  make_signature(op, Face::Function, Form::Inplace));
  }
  if (op.variants & kNN) {
    add_signature(set_for(nn, name + "_", false),
                  make_signature(op, Face::Function, Form::Inplace));
  }
}

bool in_namespace(const std::string& name) {
  for (const Namespace& space : kNamespaces) {
    if (name.starts_with(space.prefix)) {
      return true;
    }
  }
  return false;
}

void add_alias(const Alias& alias, std::map<std::string, OverloadSet*>& nn) {
  for (const Operator* op : Table::instance().overloads(alias.name)) {
    if (!in_namespace(alias.alias)) {
      add_faces(*op, alias.alias, nn);
    } else if (op->variants & kFunction) {
      add_signature(set_for(functions(), alias.alias, false),
                    make_signature(*op, Face::Function, Form::Functional));
    }
  }
}

void add_function(PyObject* module, const OverloadSet& set) {
  for (const Namespace& space : kNamespaces) {
    if (set.name.starts_with(space.prefix)) {
      std::string name = set.name.substr(std::string(space.prefix).size());
      add_object(submodule(module, space.submodule), name.c_str(),
                 make_op_function(&set, name, space.module));
    }
  }
  add_object(submodule(module, "_VariableFunctions"), set.name.c_str(),
             make_op_function(&set, set.name, "rushlight"));
}

PyObject* face_names(const Operator& op) {
  Ref list = owned(PyList_New(0));
  constexpr std::pair<unsigned, const char*> kNames[] = {
      {kFunction, "function"},
      {kMethod, "method"},
      {kInplace, "inplace"},
      {kOut, "out"},
      {kNN, "nn"},
      {kNumbers, "numbers"},
      {kInternal, "internal"},
      {kNumberFirst, "number_first"},
      {kAllNumbers, "all_numbers"},
  };
  for (auto [bit, name] : kNames) {
    if (op.variants & bit) {
      Ref text = owned(PyUnicode_FromString(name));
      check(PyList_Append(list.get(), text.get()));
    }
  }
  return list.release();
}

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::Elementwise:
      return "elementwise";
    case Kind::Reduction:
      return "reduction";
    case Kind::View:
      return "view";
    case Kind::Kernel:
      return "kernel";
    case Kind::Composition:
      return "composition";
  }
  return "";
}

// The table as Python data, for stubs, reference pages and tests.
PyObject* operator_table(PyObject*, PyObject*) {
  return guarded([] {
    Ref list = owned(PyList_New(0));
    for (const auto& op : Table::instance().operators()) {
      Ref faces = owned(face_names(*op));
      Ref row = owned(Py_BuildValue(
          "{ss ss ss ss ss ss sO si si}", "name", op->schema.name.c_str(), "overload",
          op->schema.overload.c_str(), "schema", op->schema.text.c_str(), "family",
          op->family.c_str(), "doc", op->doc.c_str(), "kind", kind_name(op->kind), "faces",
          faces.get(), "differentiable", static_cast<int>(op->differentiable), "opens",
          static_cast<int>(op->kind == Kind::Composition || op->seen_as != nullptr)));
      check(PyList_Append(list.get(), row.get()));
    }
    return list.release();
  });
}

// The overloads that a name in rushlight.ops.aten has, and their form: add_ is add in place.
std::pair<std::vector<const Operator*>, Form> named_overloads(std::string_view name) {
  std::vector<const Operator*> found = Table::instance().overloads(name);
  if (!found.empty() || !name.ends_with('_')) {
    return {std::move(found), Form::Functional};
  }
  for (const Operator* op : Table::instance().overloads(name.substr(0, name.size() - 1))) {
    if (op->variants & kInplace) {
      found.push_back(op);
    }
  }
  return {std::move(found), Form::Inplace};
}

PyObject* overload_names(PyObject*, PyObject* name) {
  return guarded([&] {
    Ref list = owned(PyList_New(0));
    for (const Operator* op : named_overloads(text_of(name)).first) {
      const std::string& overload = op->schema.overload;
      Ref text = owned(PyUnicode_FromString(overload.empty() ? "default" : overload.c_str()));
      check(PyList_Append(list.get(), text.get()));
    }
    return list.release();
  });
}

// One overload ("*": all of them) under its schema's own names, for rushlight.ops.aten, with the
// schema's text; None where there is none.
PyObject* operator_overload(PyObject*, PyObject* args) {
  const char* name;
  const char* overload;
  if (!PyArg_ParseTuple(args, "ss", &name, &overload)) {
    return nullptr;
  }
  return guarded([&] {
    std::string wanted = std::string(overload) == "default" ? "" : overload;
    OverloadSet set;
    set.misfit = ErrorKind::Runtime;
    auto [overloads, form] = named_overloads(name);
    for (const Operator* op : overloads) {
      if (wanted == "*" || op->schema.overload == wanted) {
        set.name = wanted == "*" ? name : op->schema.full_name();
        set.signatures.push_back(make_signature(*op, Face::Operator, form));
      }
    }
    std::string full = wanted.empty() ? std::string(name) : cat(name, ".", wanted);
    const Operator* gradient = set.signatures.empty() ? find_gradient_operator(full) : nullptr;
    if (gradient != nullptr) {
      set.name = full;
      Signature& made =
          set.signatures.emplace_back(make_signature(*gradient, Face::Operator, Form::Functional));
      for (Parameter& parameter : made.parameters) {
        const Argument& declared = *parameter.argument;
        parameter.numbers = declared.type == SchemaType::Tensor && !declared.list;
      }
    }
    if (set.signatures.empty()) {
      return py_none();
    }
    static std::mutex lock;
    std::unique_lock<std::mutex> guard(lock);
    const OverloadSet& kept = sets().emplace_back(std::move(set));
    guard.unlock();
    return check(Py_BuildValue("Ns", make_op_function(&kept, kept.name, "rushlight.ops.aten"),
                               kept.signatures[0].op->schema.text.c_str()));
  });
}

PyObject* operator_alias_pairs(PyObject*, PyObject*) {
  return guarded([] {
    Ref pairs = owned(PyList_New(0));
    for (const Alias& alias : operator_aliases()) {
      Ref pair = owned(Py_BuildValue("(ss)", alias.alias, alias.name));
      if (PyList_Append(pairs.get(), pair.get()) != 0) {
        throw PythonError();
      }
    }
    return pairs.release();
  });
}

PyMethodDef table_functions[] = {
    {"_operator_table", operator_table, METH_NOARGS, "Every operator, as a list of dicts."},
    {"_operator_aliases", operator_alias_pairs, METH_NOARGS,
     "Other names of operators, with theirs."},
    {"_overload_names", overload_names, METH_O, "The overloads of an operator's name."},
    {"_operator_overload", operator_overload, METH_VARARGS,
     "The callable and the schema of one overload."},
    {nullptr, nullptr, 0, nullptr},
};

void fill(PyObject* module) {
  static std::map<std::string, OverloadSet*> nn;
  for (const auto& op : Table::instance().operators()) {
    add_faces(*op, op->schema.name, nn);
  }
  for (const Alias& alias : operator_aliases()) {
    add_alias(alias, nn);
  }
  for (const char* name : {"_VariableFunctions", "_nn", "_special", "_linalg", "_fft"}) {
    submodule(module, name);
  }
  for (const auto& [name, set] : functions()) {
    add_function(module, *set);
  }
  for (const auto& [name, set] : nn) {
    add_object(submodule(module, "_nn"), name.c_str(),
               make_op_function(set, name, "rushlight._C._nn"));
  }
  for (const auto& [name, set] : methods()) {
    add_object(reinterpret_cast<PyObject*>(tensor_type), name.c_str(),
               make_op_function(set, "Tensor." + name, "rushlight"));
  }
  add_functions(module, table_functions);
}

const Part part(Stage::Operators, fill);

const OverloadSet* find(const std::map<std::string, OverloadSet*>& index, const std::string& name) {
  auto found = index.find(name);
  return found == index.end() ? nullptr : found->second;
}

}  // namespace

const OverloadSet* method_set(const std::string& name) {
  return find(methods(), name);
}
const OverloadSet* function_set(const std::string& name) {
  return find(functions(), name);
}

}  // namespace rushlight::python
