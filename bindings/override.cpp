#include "override.h"

#include <vector>

#include "dispatch.h"
#include "module.h"

namespace rushlight::python {
namespace {

enum class Enabled : uint8_t { All, ModesOnly, Nothing };

// What every call tests; plain data, so that reading it needs no initialisation check.
struct OverrideState {
  int mode_count = 0;
  Enabled enabled = Enabled::All;
};
constinit thread_local OverrideState override_state __attribute__((tls_model("initial-exec")));

// A thread's modes, innermost last. Count and list change together.
class ModeStack {
 public:
  // Modes still on when a thread ends are left alone: the interpreter may be gone already.
  ~ModeStack() {
    for (Ref& mode : modes_) {
      mode.release();
    }
  }
  void push(Ref mode) {
    modes_.push_back(std::move(mode));
    ++override_state.mode_count;
  }
  Ref pop() {
    Ref mode = std::move(modes_.back());
    modes_.pop_back();
    --override_state.mode_count;
    return mode;
  }
  size_t size() const { return modes_.size(); }
  PyObject* at(size_t i) const { return modes_[i].get(); }

 private:
  std::vector<Ref> modes_;
};
thread_local ModeStack mode_stack;

PyObject* disabled_implementation = nullptr;
PyObject* door_name = nullptr;  // "__torch_function__"

PyObject* type_attribute(PyTypeObject* type) {
  return _PyType_Lookup(type, door_name);
}

// Types that are never asked.
bool is_builtin(PyTypeObject* type) {
  return type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type ||
         type == &PyUnicode_Type || type == &PyTuple_Type || type == &PyList_Type ||
         type == Py_TYPE(Py_None) || type == &PySlice_Type || type == &PyDict_Type ||
         type == Py_TYPE(Py_Ellipsis) || type == size_type;
}

bool overrides(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (type == tensor_type || is_builtin(type) || PyType_Check(object)) {
    return false;
  }
  meet_dispatch_class(type);
  PyObject* found = type_attribute(type);
  return found != nullptr && found != disabled_implementation;
}

// Adds an argument, before the first whose class it derives from; each class once.
void collect(PyObject* object, std::vector<Ref>& found) {
  if (!overrides(object)) {
    return;
  }
  size_t at = found.size();
  for (size_t i = 0; i < found.size(); ++i) {
    PyTypeObject* known = Py_TYPE(found[i].get());
    if (known == Py_TYPE(object)) {
      return;
    }
    if (at == found.size() && PyType_IsSubtype(Py_TYPE(object), known)) {
      at = i;
    }
  }
  found.insert(found.begin() + static_cast<std::ptrdiff_t>(at), Ref::share(object));
}

// Held: what one of them does when it is asked may drop the others from their list.
std::vector<Ref> overriding(PyObject* const* args, Py_ssize_t count) {
  std::vector<Ref> found;
  if (override_state.enabled != Enabled::All) {
    return found;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    collect(args[i], found);
    if (Items::are_in(args[i])) {
      const Items items(args[i]);
      for (Py_ssize_t k = 0; k < items.size(); ++k) {
        collect(items[k].get(), found);
      }
    }
  }
  return found;
}

struct Call {
  PyObject* function;
  Ref types;
  Ref args;
  Ref kwargs;
};

Ref types_of(const std::vector<Ref>& objects) {
  Ref types = owned(PyTuple_New(static_cast<Py_ssize_t>(objects.size())));
  for (size_t i = 0; i < objects.size(); ++i) {
    PyTuple_SET_ITEM(types.get(), static_cast<Py_ssize_t>(i),
                     new_ref(reinterpret_cast<PyObject*>(Py_TYPE(objects[i].get()))));
  }
  return types;
}

// While a mode handles a call it is off, so that it may call the function again.
class ModeStash {
 public:
  ModeStash() : mode_(mode_stack.pop()) {}
  ~ModeStash() { mode_stack.push(std::move(mode_)); }
  ModeStash(const ModeStash&) = delete;
  PyObject* get() const { return mode_.get(); }

 private:
  Ref mode_;
};

Ref ask(PyObject* owner, const Call& call) {
  return owned(PyObject_CallMethodObjArgs(owner, door_name, call.function, call.types.get(),
                                          call.args.get(), call.kwargs.get(), nullptr));
}

Ref ask_mode(const Call& call) {
  ModeStash mode;
  return ask(mode.get(), call);
}

[[noreturn]] void fail_unhandled(const Call& call) {
  const Ref overrides = owned(PyImport_ImportModule("rushlight.overrides"));
  Ref name = owned(PyObject_CallMethod(overrides.get(), "resolve_name", "O", call.function));
  if (name.get() == Py_None) {
    name = owned(PyObject_Repr(call.function));
  }
  std::string asked;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(call.types.get()); ++i) {
    const Ref type = owned(PyObject_Repr(PyTuple_GET_ITEM(call.types.get(), i)));
    asked += cat("\n\n  - tensor subclass ", message_text(type.get()));
  }
  fail(ErrorKind::Type, "", "Multiple dispatch failed for '", message_text(name.get()),
       "'; all __torch_function__ handlers returned NotImplemented:", asked);
}

PyObject* dispatch(const Call& call, const std::vector<Ref>& objects) {
  if (modes_active()) {
    Ref result = ask_mode(call);
    if (result.get() != Py_NotImplemented) {
      return result.release();
    }
  }
  for (const Ref& object : objects) {
    Ref result = ask(object.get(), call);
    if (result.get() != Py_NotImplemented) {
      return result.release();
    }
  }
  fail_unhandled(call);
}

}  // namespace

bool modes_active() {
  return override_state.mode_count > 0 && override_state.enabled != Enabled::Nothing;
}

bool has_override(PyObject* object) {
  return Py_TYPE(object) != tensor_type && override_state.enabled == Enabled::All &&
         overrides(object);
}

bool any_override(PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  if (modes_active()) {
    return true;
  }
  if (override_state.enabled != Enabled::All) {
    return false;
  }
  Py_ssize_t all = count + (keywords != nullptr ? PyTuple_GET_SIZE(keywords) : 0);
  for (Py_ssize_t i = 0; i < all; ++i) {
    PyObject* object = args[i];
    if (Py_TYPE(object) == tensor_type) {
      continue;
    }
    if (Items::are_in(object)) {
      for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(object); ++k) {
        if (overrides(PySequence_Fast_GET_ITEM(object, k))) {
          return true;
        }
      }
    } else if (overrides(object)) {
      return true;
    }
  }
  return false;
}

PyObject* call_override(PyObject* function, PyObject* const* args, Py_ssize_t count,
                        PyObject* keywords) {
  return guarded([&] {
    Py_ssize_t extra = keywords != nullptr ? PyTuple_GET_SIZE(keywords) : 0;
    const std::vector<Ref> objects = overriding(args, count + extra);
    Call call{function, types_of(objects), owned(PyTuple_New(count)), owned(PyDict_New())};
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyTuple_SET_ITEM(call.args.get(), i, new_ref(args[i]));
    }
    for (Py_ssize_t i = 0; i < extra; ++i) {
      check(PyDict_SetItem(call.kwargs.get(), PyTuple_GET_ITEM(keywords, i), args[count + i]));
    }
    return dispatch(call, objects);
  });
}

namespace {

// A class whose __torch_function__ is this function takes part in calls as a plain tensor.
PyObject* disabled(PyObject*, PyObject* args) {
  PyObject* function;
  PyObject* types;
  PyObject* call_args = nullptr;
  PyObject* kwargs = nullptr;
  if (!PyArg_ParseTuple(args, "OO|OO", &function, &types, &call_args, &kwargs)) {
    return nullptr;
  }
  Enabled saved = override_state.enabled;
  override_state.enabled = Enabled::ModesOnly;
  PyObject* result = call_with(function, call_args, kwargs);
  override_state.enabled = saved;
  return result;
}

PyObject* has_torch_function(PyObject*, PyObject* objects) {
  return guarded([&] {
    const Ref tuple = owned(PySequence_Tuple(objects));
    return PyBool_FromLong(
        any_override(PySequence_Fast_ITEMS(tuple.get()), PyTuple_GET_SIZE(tuple.get()), nullptr));
  });
}

PyObject* has_torch_function_unary(PyObject*, PyObject* object) {
  return PyBool_FromLong(any_override(&object, 1, nullptr));
}

PyObject* has_torch_function_variadic(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return PyBool_FromLong(any_override(args, count, nullptr));
}

// handle(function, relevant arguments, args, kwargs): what torch.overrides.handle_torch_function
// is.
PyObject* handle_torch_function(PyObject*, PyObject* args) {
  PyObject* function;
  PyObject* relevant;
  PyObject* call_args;
  PyObject* kwargs;
  if (!PyArg_ParseTuple(args, "OOO!O!", &function, &relevant, &PyTuple_Type, &call_args,
                        &PyDict_Type, &kwargs)) {
    return nullptr;
  }
  return guarded([&] {
    const Ref tuple = owned(PySequence_Tuple(relevant));
    const std::vector<Ref> objects =
        overriding(PySequence_Fast_ITEMS(tuple.get()), PyTuple_GET_SIZE(tuple.get()));
    return dispatch({function, types_of(objects), Ref::share(call_args), Ref::share(kwargs)},
                    objects);
  });
}

PyObject* overloaded_args(PyObject*, PyObject* relevant) {
  return guarded([&] {
    const Ref tuple = owned(PySequence_Tuple(relevant));
    Ref found = owned(PyList_New(0));
    for (const Ref& object :
         overriding(PySequence_Fast_ITEMS(tuple.get()), PyTuple_GET_SIZE(tuple.get()))) {
      check(PyList_Append(found.get(), object.get()));
    }
    return found.release();
  });
}

PyObject* push_mode(PyObject*, PyObject* mode) {
  mode_stack.push(Ref::share(mode));
  Py_RETURN_NONE;
}

PyObject* pop_mode(PyObject*, PyObject*) {
  if (mode_stack.size() == 0) {
    PyErr_SetString(PyExc_RuntimeError, "there is no function mode to leave");
    return nullptr;
  }
  return mode_stack.pop().release();
}

PyObject* mode_count(PyObject*, PyObject*) {
  return PyLong_FromSize_t(mode_stack.size());
}

PyObject* mode_at(PyObject*, PyObject* index) {
  size_t at = PyLong_AsSize_t(index);
  if (PyErr_Occurred()) {
    return nullptr;
  }
  if (at >= mode_stack.size()) {
    PyErr_SetString(PyExc_IndexError, "no function mode there");
    return nullptr;
  }
  return new_ref(mode_stack.at(at));
}

PyObject* get_enabled(PyObject*, PyObject*) {
  return PyLong_FromLong(static_cast<long>(override_state.enabled));
}

// 0: all overrides; 1: modes only; 2: none. Returns what it was.
PyObject* set_enabled(PyObject*, PyObject* state) {
  long value = PyLong_AsLong(state);
  if (PyErr_Occurred()) {
    return nullptr;
  }
  long saved = static_cast<long>(override_state.enabled);
  override_state.enabled = static_cast<Enabled>(value < 0 || value > 2 ? 0 : value);
  return PyLong_FromLong(saved);
}

template <typename F>
PyCFunction as_function(F function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}

PyMethodDef functions[] = {
    {"_disabled_torch_function_impl", disabled, METH_VARARGS,
     "As a class's __torch_function__: its tensors count as plain ones."},
    {"_has_torch_function", has_torch_function, METH_O, nullptr},
    {"_has_torch_function_unary", has_torch_function_unary, METH_O, nullptr},
    {"_has_torch_function_variadic", as_function(has_torch_function_variadic), METH_FASTCALL,
     nullptr},
    {"_handle_torch_function", handle_torch_function, METH_VARARGS, nullptr},
    {"_get_overloaded_args", overloaded_args, METH_O, nullptr},
    {"_push_on_torch_function_stack", push_mode, METH_O, nullptr},
    {"_pop_torch_function_stack", pop_mode, METH_NOARGS, nullptr},
    {"_len_torch_function_stack", mode_count, METH_NOARGS, nullptr},
    {"_get_function_stack_at", mode_at, METH_O, nullptr},
    {"_get_torch_function_state", get_enabled, METH_NOARGS, nullptr},
    {"_set_torch_function_state", set_enabled, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

void fill(PyObject* module) {
  door_name = check(PyUnicode_InternFromString("__torch_function__"));
  add_functions(module, functions);
  disabled_implementation = check(PyObject_GetAttrString(module, "_disabled_torch_function_impl"));
}

const Part part(Stage::Types, fill);

}  // namespace
}  // namespace rushlight::python
