// The dispatch door. Calls reach it below autograd, so gradient rules are seen as well.
// Compositions go on: what they call is seen instead, unless the mode asks for whole operators
// (`_pre_dispatch`), or PyTorch has an operator of that name and nobody needs what is inside.
#include "dispatch.h"

#include <cctype>
#include <string_view>
#include <vector>

#include "dispatch_call.h"
#include "module.h"
#include "ops/elementwise.h"
#include "ops/operator.h"
#include "tensor/wrapper.h"

namespace rushlight::python {

std::atomic<bool> dispatch_classes_exist{false};

namespace {

PyObject* handler_name = nullptr;  // "__torch_dispatch__"
PyObject* whole_name = nullptr;    // "_pre_dispatch"
PyObject* disabled_handler = nullptr;

struct DispatchState {
  std::vector<Ref> modes;  // innermost last
  bool disabled = false;
  // Modes still on when a thread ends are left alone: the interpreter may be gone already.
  ~DispatchState() {
    for (Ref& mode : modes) {
      mode.release();
    }
  }
};
thread_local DispatchState dispatch_state;

bool door_open() {
  return (thread_state.doors & kDispatchDoor) != 0;
}
void open_door(bool open) {
  thread_state.doors =
      open ? thread_state.doors | kDispatchDoor : thread_state.doors & ~uint32_t{kDispatchDoor};
}

// While a mode handles a call it is off, so that it may call the function again.
class ModeStash {
 public:
  ModeStash() : mode_(std::move(dispatch_state.modes.back())) { dispatch_state.modes.pop_back(); }
  ~ModeStash() { dispatch_state.modes.push_back(std::move(mode_)); }
  ModeStash(const ModeStash&) = delete;
  PyObject* get() const { return mode_.get(); }

 private:
  Ref mode_;
};

// ---- Asking -------------------------------------------------------------------------------------

Ref ask(PyObject* owner, const DispatchCall& call, PyObject* types) {
  return owned(PyObject_CallMethodObjArgs(owner, handler_name, call.function, types,
                                          call.args.get(), call.kwargs.get(), nullptr));
}

[[noreturn]] void fail_unhandled(const DispatchCall& call, PyObject* types) {
  Ref name = owned(PyObject_Str(call.function));
  Ref asked = owned(PyObject_Repr(types));
  fail(ErrorKind::Type, "",
       cat("Multiple dispatch failed for '", message_text(name.get()),
           "'; all __torch_dispatch__ handlers returned NotImplemented: ",
           message_text(asked.get())));
}

// What a handler does is not recorded and not autocast: those doors have been passed. A whole
// composition has not been recorded yet.
Ref ask_all(const DispatchCall& call, const DispatchClasses& classes, bool record) {
  DoorGuard below(0, record ? 0 : kAutogradDoor | kAutocastDoor);
  Ref types = classes.tuple();
  if (!dispatch_state.modes.empty()) {
    ModeStash mode;
    open_door(!dispatch_state.modes.empty() || dispatch_classes_exist);
    Ref result = ask(mode.get(), call, types.get());
    if (result.get() != Py_NotImplemented) {
      return result;
    }
  }
  for (PyTypeObject* type : classes.types()) {
    Ref result = ask(reinterpret_cast<PyObject*>(type), call, types.get());
    if (result.get() != Py_NotImplemented) {
      return result;
    }
  }
  fail_unhandled(call, types.get());
}

Value result_value(const Operator& op, const Argument& declared, PyObject* object) {
  if (object == Py_None) {
    return {};
  }
  if (declared.type == SchemaType::Tensor) {
    if (declared.list) {
      return Value(tensors_of(object, op.name().c_str(), "the result of __torch_dispatch__"));
    }
    return Value(require_tensor(object, op.name().c_str(), "the result of __torch_dispatch__"));
  }
  Scalar number;
  if (declared.list || !to_number(object, &number)) {
    fail(ErrorKind::Type, "", op.name(), "(): __torch_dispatch__ must give a number, not ",
         type_name(object));
  }
  return Value(number);
}

void take_results(Invocation& inv, PyObject* result) {
  const std::vector<Argument>& declared = inv.op->schema.results;
  if (inv.form != Form::Functional || inv.result_count == 0) {
    return;  // written where it is
  }
  if (inv.result_count == 1) {
    inv.results[0] = result_value(*inv.op, declared[0], result);
    return;
  }
  const Ref list =
      owned(PySequence_Fast(result, "__torch_dispatch__ must give a tuple of results"));
  const Items items(list.get());
  if (items.size() != inv.result_count) {
    fail(ErrorKind::Runtime, "", inv.op->name(), "(): __torch_dispatch__ gave ",
         static_cast<int64_t>(items.size()), " results, the operator has ",
         static_cast<int>(inv.result_count));
  }
  for (int i = 0; i < inv.result_count; ++i) {
    inv.results[i] = result_value(*inv.op, declared[static_cast<size_t>(i)], items[i].get());
  }
}

// ---- The door -----------------------------------------------------------------------------------

bool wants_whole() {
  if (dispatch_state.modes.empty()) {
    return false;
  }
  GilAcquire lock;
  return _PyType_Lookup(Py_TYPE(dispatch_state.modes.back().get()), whole_name) == Py_True;
}

// Whether a tensor of the call has a Python object, which alone can be of a class.
bool any_with_object(const Invocation& inv) {
  bool found = false;
  auto visit = [&](const Tensor& tensor) { found = found || tensor.impl()->python != nullptr; };
  for_each_tensor(inv.arguments, inv.argument_count, visit);
  if (inv.form == Form::Out) {
    for_each_tensor(inv.results, inv.result_count, visit);
  }
  return found;
}

// Whether somebody is there to see the call.
bool is_asked(const Invocation& inv) {
  if (!dispatch_state.modes.empty()) {
    return true;
  }
  if (!any_with_object(inv)) {
    return false;
  }
  GilAcquire lock;
  return !classes_of(inv).types().empty();
}

// What an in-place or out= form gives in the end, as a call that is seen.
void write_result(const Invocation& inv, const Tensor& made) {
  const Tensor target = inv.results[0].tensor();
  if (made.is_same(target)) {
    return;
  }
  if (inv.form == Form::Out && !(target.sizes() == made.sizes())) {
    check_output(*inv.op, inv.form, target, made.sizes(), made.dtype(), made.device());
  }
  static const Operator& copy = find_operator("copy");
  call_inplace(copy, {Value(target), Value(made), Value(false)});
}

// A composition's calls are seen; what it writes in the end is a call too.
void open_composition(Invocation& inv) {
  if (inv.form == Form::Functional || inv.result_count != 1 || !inv.results[0].is_tensor()) {
    pass(inv, kDispatchDoor);
    return;
  }
  Value fresh;
  Invocation functional = inv;
  functional.form = Form::Functional;
  functional.results = &fresh;
  pass(functional, kDispatchDoor);
  write_result(inv, fresh.tensor());
}

// A kernel of which the modes of other libraries expect the parts.
void open_kernel(Invocation& inv) {
  Value fresh;
  Invocation functional = inv;
  functional.form = Form::Functional;
  functional.results = &fresh;
  inv.op->seen_as->run(*inv.op, functional);
  if (inv.form == Form::Functional) {
    inv.results[0] = std::move(fresh);
  } else {
    write_result(inv, fresh.tensor());
  }
}

// "MaxBackward1" is the node of max: letters and digits are the same up to "Backward".
bool is_node_of(std::string_view node, std::string_view name) {
  size_t at = 0;
  for (char letter : name) {
    if (letter == '_') {
      continue;
    }
    if (at == node.size() || std::tolower(static_cast<unsigned char>(node[at])) != letter) {
      return false;
    }
    ++at;
  }
  return node.substr(at).starts_with("Backward");
}

// Whether somebody keeps or maps what a composition calls: then that has to be seen.
bool is_followed_inside(const Invocation& inv) {
  return (thread_state.grad_mode && any_requires_grad(inv)) ||
         (thread_state.doors & kTransformDoor) != 0;
}

// A composition whose result has a node of its own name is one operator in PyTorch.
bool stays_whole(const Invocation& inv) {
  const char* node = inv.op->node_of(inv);
  return node != nullptr && is_node_of(node, inv.op->name()) && !is_followed_inside(inv);
}

// Shows what a call is made of. False: it is to be shown itself.
bool open_call(Invocation& inv) {
  const bool composition = inv.op->kind == Kind::Composition;
  if (inv.op->seen_as != nullptr && !(composition && is_followed_inside(inv))) {
    open_kernel(inv);
    return true;
  }
  if (composition && !stays_whole(inv)) {
    open_composition(inv);
    return true;
  }
  return false;
}

void dispatch_door(Invocation& inv) {
  if (dispatch_state.disabled || !is_asked(inv)) {
    // Nor does anybody see what a composition calls with these tensors: it need not be opened
    // because a class with a handler exists.
    DoorGuard unseen(0, kDispatchDoor);
    pass(inv, kDispatchDoor);
    return;
  }
  if (!wants_whole() && open_call(inv)) {
    return;
  }
  GilAcquire lock;
  Ref result = ask_all(describe(inv), classes_of(inv), inv.op->kind == Kind::Composition);
  take_results(inv, result.get());
}

// The number of a tensor whose class answers for it, or that a mode is asked for.
bool answer_number(const Tensor& tensor, Scalar* number) {
  if (!door_open() || dispatch_state.disabled) {
    return false;
  }
  if (dispatch_state.modes.empty() && tensor.impl()->python == nullptr) {
    return false;
  }
  GilAcquire lock;
  Ref object = owned(wrap(tensor));
  if (dispatch_state.modes.empty() && !has_dispatch(Py_TYPE(object.get()))) {
    return false;
  }
  Ref module = owned(PyImport_ImportModule("rushlight._ops"));
  Ref given = owned(PyObject_CallMethod(module.get(), "read_number", "O", object.get()));
  if (!to_number(given.get(), number)) {
    fail(ErrorKind::Type, "", "__torch_dispatch__ must give a number for _local_scalar_dense, not ",
         type_name(given.get()));
  }
  return true;
}

const bool installed = [] {
  install_door(kDispatchDoor, dispatch_door);
  item_hook = answer_number;
  return true;
}();

// ---- The face -----------------------------------------------------------------------------------

// dispatch(func, args, kwargs): what modes and classes make of a call; NotImplemented where none is
// asked. For operators that are written in Python.
PyObject* dispatch(PyObject*, PyObject* given) {
  PyObject* function;
  PyObject* args;
  PyObject* kwargs;
  if (!PyArg_ParseTuple(given, "OO!O!", &function, &PyTuple_Type, &args, &PyDict_Type, &kwargs)) {
    return nullptr;
  }
  return guarded([&] {
    if (!door_open() || dispatch_state.disabled) {
      return new_ref(Py_NotImplemented);
    }
    DispatchClasses classes;
    classes.add_all(args);
    classes.add_all(kwargs);
    if (dispatch_state.modes.empty() && classes.types().empty()) {
      return new_ref(Py_NotImplemented);
    }
    return ask_all({function, Ref::share(args), Ref::share(kwargs)}, classes, false).release();
  });
}

PyObject* is_open(PyObject*, PyObject*) {
  return PyBool_FromLong(door_open());
}

PyObject* push_mode(PyObject*, PyObject* mode) {
  dispatch_state.modes.push_back(Ref::share(mode));
  open_door(true);
  Py_RETURN_NONE;
}

PyObject* pop_mode(PyObject*, PyObject*) {
  if (dispatch_state.modes.empty()) {
    PyErr_SetString(PyExc_RuntimeError, "there is no dispatch mode to leave");
    return nullptr;
  }
  Ref mode = std::move(dispatch_state.modes.back());
  dispatch_state.modes.pop_back();
  open_door(!dispatch_state.modes.empty() || dispatch_classes_exist);
  return mode.release();
}

PyObject* mode_count(PyObject*, PyObject*) {
  return PyLong_FromSize_t(dispatch_state.modes.size());
}

PyObject* mode_at(PyObject*, PyObject* index) {
  size_t at = PyLong_AsSize_t(index);
  if (PyErr_Occurred()) {
    return nullptr;
  }
  if (at >= dispatch_state.modes.size()) {
    PyErr_SetString(PyExc_IndexError, "no dispatch mode there");
    return nullptr;
  }
  return new_ref(dispatch_state.modes[at].get());
}

// Whether handlers are asked in this thread; returns whether they were.
PyObject* set_enabled(PyObject*, PyObject* on) {
  bool saved = !dispatch_state.disabled;
  int wanted = PyObject_IsTrue(on);
  if (wanted < 0) {
    return nullptr;
  }
  dispatch_state.disabled = wanted == 0;
  return PyBool_FromLong(saved);
}

// A class whose __torch_dispatch__ is this one has no say: its tensors count as plain ones.
PyObject* disabled(PyObject*, PyObject* given) {
  PyObject* function;
  PyObject* types;
  PyObject* args = nullptr;
  PyObject* kwargs = nullptr;
  if (!PyArg_ParseTuple(given, "OO|OO", &function, &types, &args, &kwargs)) {
    return nullptr;
  }
  bool saved = dispatch_state.disabled;
  dispatch_state.disabled = true;
  PyObject* result = call_with(function, args, kwargs);
  dispatch_state.disabled = saved;
  return result;
}

// make_wrapper(cls, data, device): a tensor of the class with data's sizes, strides and dtype and
// without memory. `data` is a meta tensor of which nobody else knows.
PyObject* make_wrapper(PyObject*, PyObject* given) {
  PyObject* type;
  PyObject* data;
  PyObject* device;
  if (!PyArg_ParseTuple(given, "O!OO", &PyType_Type, &type, &data, &device)) {
    return nullptr;
  }
  return guarded([&] {
    auto* cls = reinterpret_cast<PyTypeObject*>(type);
    if (!has_dispatch(cls)) {
      fail(ErrorKind::Runtime, "", cls->tp_name,
           " must define __torch_dispatch__: its tensors have no memory of their own");
    }
    const Tensor& shape = require_tensor(data, "_make_wrapper_subclass", "data");
    Device wanted;
    if (!to_device(device, &wanted)) {
      fail(ErrorKind::Type, "",
           "_make_wrapper_subclass(): argument 'device' must be torch.device, not ",
           type_name(device));
    }
    Tensor made = make_view(shape, shape.sizes(), shape.strides(), shape.storage_offset());
    made.impl()->device = wanted;
    return wrap_as(cls, std::move(made));
  });
}

PyMethodDef functions[] = {
    {"_dispatch", dispatch, METH_VARARGS, nullptr},
    {"_dispatch_is_open", is_open, METH_NOARGS, nullptr},
    {"_push_on_torch_dispatch_stack", push_mode, METH_O, nullptr},
    {"_pop_torch_dispatch_stack", pop_mode, METH_NOARGS, nullptr},
    {"_len_torch_dispatch_stack", mode_count, METH_NOARGS, nullptr},
    {"_get_dispatch_stack_at", mode_at, METH_O, nullptr},
    {"_set_dispatch_enabled", set_enabled, METH_O, nullptr},
    {"_disabled_torch_dispatch_impl", disabled, METH_VARARGS,
     "As a class's __torch_dispatch__: its tensors count as plain ones."},
    {"_make_wrapper", make_wrapper, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

void fill(PyObject* module) {
  handler_name = check(PyUnicode_InternFromString("__torch_dispatch__"));
  whole_name = check(PyUnicode_InternFromString("_pre_dispatch"));
  add_functions(module, functions);
  disabled_handler = check(PyObject_GetAttrString(module, "_disabled_torch_dispatch_impl"));
}

const Part part(Stage::Types, fill);

}  // namespace

bool has_dispatch(PyTypeObject* type) {
  if (type == tensor_type || !PyType_IsSubtype(type, tensor_type)) {
    return false;
  }
  PyObject* found = _PyType_Lookup(type, handler_name);
  return found != nullptr && found != disabled_handler;
}

void note_dispatch_class(PyTypeObject* type) {
  if (has_dispatch(type)) {
    dispatch_classes_exist = true;
    open_door(true);
  }
}

void settle_dispatch_class(PyTypeObject* type) {
  if (tensor_type == nullptr || !has_dispatch(type)) {
    return;
  }
  Ref name = owned(PyUnicode_InternFromString("__torch_function__"));
  if (_PyType_Lookup(type, name.get()) == _PyType_Lookup(tensor_type, name.get())) {
    Ref disabled =
        owned(PyObject_GetAttrString(extension_module(), "_disabled_torch_function_impl"));
    check(PyObject_SetAttr(reinterpret_cast<PyObject*>(type), name.get(), disabled.get()));
  }
}

}  // namespace rushlight::python
