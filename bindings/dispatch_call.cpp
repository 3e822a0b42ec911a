#include "dispatch_call.h"

#include <algorithm>
#include <compare>
#include <map>
#include <tuple>

#include "convert.h"
#include "dispatch.h"

namespace rushlight::python {
namespace {

// How a call is one of an overload of PyTorch's that the table's entry stands for as well.
struct CallKind {
  uint32_t numbers = 0;  // bit i: argument i, a tensor in the schema, is a number
  int dims = 2;          // of overloads named "dims": 0 none are given, 1 one is, 2 otherwise
  auto operator<=>(const CallKind&) const = default;
};

// rushlight.ops.aten.name.overload of an operator in a form; kept for ever.
PyObject* function_of(const Operator& op, Form form, CallKind kind) {
  static std::map<std::tuple<const Operator*, Form, CallKind>, PyObject*> known;
  PyObject*& found = known[{&op, form, kind}];
  if (found == nullptr) {
    constexpr const char* kForms[] = {"functional", "inplace", "out"};
    Ref module = owned(PyImport_ImportModule("rushlight._ops"));
    Ref numbers = owned(PyList_New(0));
    for (size_t i = 0; i < op.schema.arguments.size(); ++i) {
      if (i < 32 && (kind.numbers >> i & 1) != 0) {
        Ref name = owned(PyUnicode_FromString(op.schema.arguments[i].name.c_str()));
        check(PyList_Append(numbers.get(), name.get()));
      }
    }
    found = check(
        PyObject_CallMethod(module.get(), "overload_of", "sssOi", op.schema.name.c_str(),
                            op.schema.overload.empty() ? "default" : op.schema.overload.c_str(),
                            kForms[static_cast<int>(form)], numbers.get(), kind.dims));
  }
  return found;
}

Ref argument_object(const Value& value) {
  if (value.tag() != Value::Tag::Tensors) {
    return owned(to_python(value));
  }
  Ref tuple = owned(wrap_tuple(value.tensors()));
  return owned(PySequence_List(tuple.get()));
}

// The number that stands in the place of a tensor, where PyTorch has an overload of numbers: as it
// was given, or as the operand that was made of it. None where there is none.
Value number_in_place(const Operator& op, const Argument& declared, const Value& value) {
  const unsigned special = op.variants & (kNumbers | kAllNumbers | kInternal);
  if (declared.type != SchemaType::Tensor || declared.list || special != kNumbers) {
    return {};
  }
  if (!value.is_tensor()) {
    return value;
  }
  const TensorImpl* impl = value.impl();
  if (!impl->has(TensorImpl::kWrappedNumber) || impl->device.is_meta()) {
    return {};
  }
  const DoorGuard unseen(0, kDispatchDoor);
  return Value(value.tensor().item());
}

bool is_default(PyObject* given, const Argument& declared) {
  if (!declared.has_default) {
    return false;
  }
  Ref otherwise = argument_object(declared.default_value);
  if (given == otherwise.get()) {
    return true;
  }
  return Py_TYPE(given) == Py_TYPE(otherwise.get()) && !is_tensor(given) &&
         check(PyObject_RichCompareBool(given, otherwise.get(), Py_EQ)) == 1;
}

}  // namespace

DispatchCall describe(const Invocation& inv) {
  Ref list = owned(PyList_New(0));
  Ref kwargs = owned(PyDict_New());
  Py_ssize_t needed = 0;
  CallKind kind;
  for (int i = 0; i < inv.argument_count; ++i) {
    const Argument& declared = inv.op->schema.arguments[static_cast<size_t>(i)];
    const Value number = number_in_place(*inv.op, declared, inv.arguments[i]);
    const bool is_number = number.tag() != Value::Tag::None && i < 32;
    kind.numbers |= is_number ? uint32_t{1} << i : 0;
    Ref object = argument_object(is_number ? number : inv.arguments[i]);
    bool by_default = is_default(object.get(), declared);
    if (declared.keyword_only) {
      if (!by_default) {
        check(PyDict_SetItemString(kwargs.get(), declared.name.c_str(), object.get()));
      }
      continue;
    }
    check(PyList_Append(list.get(), object.get()));
    needed = by_default ? needed : PyList_GET_SIZE(list.get());
  }
  check(PyList_SetSlice(list.get(), needed, PyList_GET_SIZE(list.get()), nullptr));
  if (inv.op->schema.overload == "dims") {
    kind.dims = needed == 1 ? 0 : 2;
    PyObject* dims = needed > 1 ? PyList_GET_ITEM(list.get(), 1) : Py_None;
    if (PySequence_Check(dims) && PySequence_Size(dims) == 1) {
      kind.dims = 1;
      check(PyList_SetItem(list.get(), 1, check(PySequence_GetItem(dims, 0))));
    }
  }
  if (inv.form == Form::Out) {
    Ref out;
    if (inv.result_count == 1) {
      out = owned(to_python(inv.results[0]));
    } else {
      out = owned(PyTuple_New(inv.result_count));
      for (int i = 0; i < inv.result_count; ++i) {
        PyTuple_SET_ITEM(out.get(), i, check(to_python(inv.results[i])));
      }
    }
    check(PyDict_SetItemString(kwargs.get(), "out", out.get()));
  }
  return {function_of(*inv.op, inv.form, kind), owned(PyList_AsTuple(list.get())),
          std::move(kwargs)};
}

void DispatchClasses::add_object(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (!has_dispatch(type) || std::ranges::find(types_, type) != types_.end()) {
    return;
  }
  auto at = std::ranges::find_if(
      types_, [&](PyTypeObject* known) { return PyType_IsSubtype(type, known); });
  types_.insert(at, type);
}

void DispatchClasses::add_all(PyObject* object) {
  const RecursionGuard deeper(" while looking for tensors in arguments");
  if (Items::are_in(object)) {
    const Items items(object);
    for (Py_ssize_t i = 0; i < items.size(); ++i) {
      add_all(items[i].get());
    }
  } else if (PyDict_Check(object)) {
    PyObject* key;
    PyObject* value;
    for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &value);) {
      add_all(value);
    }
  } else {
    add_object(object);
  }
}

Ref DispatchClasses::tuple() const {
  Ref made = owned(PyTuple_New(static_cast<Py_ssize_t>(types_.size())));
  for (size_t i = 0; i < types_.size(); ++i) {
    PyTuple_SET_ITEM(made.get(), static_cast<Py_ssize_t>(i),
                     new_ref(reinterpret_cast<PyObject*>(types_[i])));
  }
  return made;
}

DispatchClasses classes_of(const Invocation& inv) {
  DispatchClasses found;
  auto visit = [&](const Tensor& tensor) {
    if (tensor.impl()->python != nullptr) {
      found.add_object(static_cast<PyObject*>(tensor.impl()->python));
    }
  };
  for_each_tensor(inv.arguments, inv.argument_count, visit);
  if (inv.form == Form::Out) {
    for_each_tensor(inv.results, inv.result_count, visit);
  }
  return found;
}

}  // namespace rushlight::python
