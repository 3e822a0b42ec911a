#include "op_function.h"

#include <algorithm>
#include <array>

#include "module.h"
#include "ops/invocation.h"
#include "override.h"

namespace rushlight::python {
namespace {

constexpr int kMaxResults = 8;
// Below this many elements a call is over before another thread could use the lock.
constexpr int64_t kReleaseElements = 16384;

PyTypeObject* function_type = nullptr;
PyTypeObject* method_type = nullptr;

OpFunction* as_function(PyObject* self) {
  return reinterpret_cast<OpFunction*>(self);
}

bool is_large(const Invocation& inv) {
  int64_t elements = 0;
  auto count = [&](const Tensor& tensor) { elements += tensor.numel(); };
  for_each_tensor(inv.arguments, inv.argument_count, count);
  if (elements == 0) {
    return true;  // a factory: its size is not known here
  }
  return elements > kReleaseElements;
}

void set_outputs(PyObject* out, Invocation& inv) {
  if (is_tensor(out)) {
    inv.results[0] = Value(tensor_of(out));
    return;
  }
  // A list may have changed since it was found to fit.
  const TensorList outputs = tensors_of(out, inv.op->name().c_str(), "out");
  if (outputs.size() != inv.result_count) {
    fail(ErrorKind::Type, "", inv.op->name(), "(): argument 'out' must have ",
         static_cast<int>(inv.result_count), " tensors, not ", outputs.size());
  }
  for (int i = 0; i < inv.result_count; ++i) {
    inv.results[i] = Value(outputs[static_cast<size_t>(i)]);
  }
}

PyObject* result_tuple(const Signature& signature, const Invocation& inv) {
  PyTypeObject* type = inv.form == Form::Out ? signature.out_type : signature.result_type;
  Ref tuple = owned(type != nullptr ? PyStructSequence_New(type) : PyTuple_New(inv.result_count));
  for (int i = 0; i < inv.result_count; ++i) {
    PyObject* item = check(to_python(inv.results[i]));
    if (type != nullptr) {
      PyStructSequence_SetItem(tuple.get(), i, item);
    } else {
      PyTuple_SET_ITEM(tuple.get(), i, item);
    }
  }
  return tuple.release();
}

PyObject* run(const Signature& signature, Frame& frame) {
  const Operator& op = *signature.op;
  std::array<Value, kMaxResults> results;
  Invocation inv{&op,
                 signature.form,
                 static_cast<uint8_t>(op.schema.arguments.size()),
                 static_cast<uint8_t>(op.schema.results.size()),
                 frame.values(),
                 results.data()};
  if (inv.form == Form::Inplace) {
    results[0] = Value(frame.values()[op.inplace_argument].tensor());
  } else if (frame.out != nullptr) {
    inv.form = Form::Out;
    set_outputs(frame.out, inv);
  }
  {
    GilRelease release(is_large(inv));
    invoke(inv);
  }
  if (inv.result_count == 1) {
    if (!results[0].is_tensor()) {
      return to_python(results[0]);
    }
    if (frame.requires_grad) {
      results[0].tensor().requires_grad_(true);
    }
    return wrap(results[0].take_tensor());
  }
  return inv.result_count == 0 ? py_none() : result_tuple(signature, inv);
}

PyObject* op_vectorcall(PyObject* self, PyObject* const* args, size_t count, PyObject* keywords) {
  Py_ssize_t positional = PyVectorcall_NARGS(count);
  if (any_override(args, positional, keywords)) {
    return call_override(self, args, positional, keywords);
  }
  return guarded([&] { return call_set(*as_function(self)->set, {args, positional, keywords}); });
}

PyObject* bind(PyObject* self, PyObject* object, PyObject*) {
  return object == nullptr || object == Py_None ? new_ref(self) : PyMethod_New(self, object);
}

PyObject* op_repr(PyObject* self) {
  OpFunction* function = as_function(self);
  const char* format = Py_TYPE(self) == method_type ? "<method '%s' of 'rushlight.Tensor' objects>"
                                                    : "<built-in function %s>";
  return PyUnicode_FromFormat(format, function->set->name.c_str());
}

PyObject* get_name(PyObject* self, void*) {
  return PyUnicode_FromString(as_function(self)->set->name.c_str());
}
PyObject* get_qualname(PyObject* self, void*) {
  return new_ref(as_function(self)->qualname);
}
PyObject* get_module(PyObject* self, void*) {
  return new_ref(as_function(self)->module);
}

PyObject* get_doc(PyObject* self, void*) {
  const OverloadSet& set = *as_function(self)->set;
  std::string_view name = set.name;
  for (std::string_view prefix : {"special_", "linalg_", "fft_"}) {
    if (name.substr(0, prefix.size()) == prefix) {
      name.remove_prefix(prefix.size());  // of rushlight.special, ...
    }
  }
  std::string text;
  const std::vector<Signature>& all = set.signatures;
  for (const Signature& signature : all) {
    const auto extended = [&](const Signature& other) { return extends(signature, other); };
    const auto extending = [&](const Signature& other) { return extends(other, signature); };
    if (std::any_of(all.begin(), all.end(), extending)) {
      continue;  // told together with the overload that has more keywords
    }
    const auto base = std::find_if(all.begin(), all.end(), extended);
    const bool merged = base != all.end();
    const std::string& schema = (merged ? *base : signature).op->schema.text;
    const size_t arrow = schema.rfind("-> ");
    text += cat(name, python_signature_text(signature, set.method, merged), " -> ",
                arrow == std::string::npos ? "" : schema.substr(arrow + 3), "\n");
  }
  return PyUnicode_FromString((text + "\n" + set.signatures.front().op->doc).c_str());
}

PyObject* op_reduce(PyObject* self, PyObject*) {
  return new_ref(as_function(self)->qualname);
}
PyObject* op_self(PyObject* self, PyObject*) {
  return new_ref(self);
}

PyMethodDef op_methods[] = {
    {"__reduce__", op_reduce, METH_NOARGS, nullptr},
    {"__copy__", op_self, METH_NOARGS, nullptr},
    {"__deepcopy__", op_self, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef op_properties[] = {
    {"__name__", get_name, nullptr, nullptr, nullptr},
    {"__qualname__", get_qualname, nullptr, nullptr, nullptr},
    {"__module__", get_module, nullptr, nullptr, nullptr},
    {"__doc__", get_doc, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMemberDef op_members[] = {
    {"__vectorcalloffset__", 19 /* T_PYSSIZET */, offsetof(OpFunction, vectorcall), 1, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyTypeObject* make_type(const char* name, bool method) {
  std::vector<PyType_Slot> slots = {
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_repr, reinterpret_cast<void*>(op_repr)},
      {Py_tp_methods, op_methods},
      {Py_tp_getset, op_properties},
      {Py_tp_members, op_members},
  };
  unsigned flags =
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  if (method) {
    slots.push_back({Py_tp_descr_get, reinterpret_cast<void*>(bind)});
    flags |= Py_TPFLAGS_METHOD_DESCRIPTOR;
  }
  slots.push_back({0, nullptr});
  PyType_Spec spec = {name, sizeof(OpFunction), 0, flags, slots.data()};
  return reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&spec)));
}

void fill(PyObject*) {
  function_type = make_type("rushlight._C.op_function", false);
  method_type = make_type("rushlight._C.op_method", true);
}

const Part part(Stage::Types, fill);

}  // namespace

PyObject* make_op_function(const OverloadSet* set, const std::string& qualname,
                           const std::string& module) {
  OpFunction* function = PyObject_New(OpFunction, set->method ? method_type : function_type);
  if (function == nullptr) {
    throw PythonError();
  }
  function->vectorcall = op_vectorcall;
  function->set = set;
  function->qualname = check(PyUnicode_FromString(qualname.c_str()));
  function->module = check(PyUnicode_InternFromString(module.c_str()));
  return reinterpret_cast<PyObject*>(function);
}

PyObject* call_set(const OverloadSet& set, const Arguments& arguments) {
  Frame frame;
  return run(choose(set, arguments, frame), frame);
}

}  // namespace rushlight::python
