// Tensor's arithmetic slots, over the operator table's functions and methods.
#include <array>

#include "graph/capture.h"
#include "module.h"
#include "op_function.h"
#include "override.h"
#include "tensor_type.h"

namespace rushlight::python {
namespace {

// What a slot calls; found once, when the table's functions exist.
struct Target {
  const char* name;
  bool method;
  const OverloadSet* set = nullptr;
  PyObject* function = nullptr;  // what __torch_function__ is told
};

Target add{"add", true}, sub{"sub", true}, mul{"mul", true}, div_{"div", true};
Target floor_divide{"floor_divide", true}, remainder_{"remainder", true}, pow_{"pow", true};
Target matmul{"matmul", true}, bit_and{"bitwise_and", true}, bit_or{"bitwise_or", true};
Target bit_xor{"bitwise_xor", true}, shift_left{"bitwise_left_shift", true};
Target shift_right{"bitwise_right_shift", true};
Target add_in{"add_", true}, sub_in{"sub_", true}, mul_in{"mul_", true}, div_in{"div_", true};
Target floor_divide_in{"floor_divide_", true}, remainder_in{"remainder_", true};
Target pow_in{"pow_", true}, and_in{"bitwise_and_", true}, or_in{"bitwise_or_", true};
Target xor_in{"bitwise_xor_", true}, left_in{"bitwise_left_shift_", true};
Target right_in{"bitwise_right_shift_", true};
Target neg{"neg", true}, abs_{"abs", true}, invert{"bitwise_not", true};
Target reciprocal{"reciprocal", true}, rsub{"rsub", false}, rpow{"pow", false};
Target rfloor_divide{"floor_divide", false}, rremainder{"remainder", false};
Target rshift_left{"bitwise_left_shift", false}, rshift_right{"bitwise_right_shift", false};
Target lt{"lt", true}, le{"le", true}, eq{"eq", true}, ne{"ne", true}, gt{"gt", true};
Target ge{"ge", true};

Target* const kTargets[] = {
    &add,          &sub,
    &mul,          &div_,
    &floor_divide, &remainder_,
    &pow_,         &matmul,
    &bit_and,      &bit_or,
    &bit_xor,      &shift_left,
    &shift_right,  &add_in,
    &sub_in,       &mul_in,
    &div_in,       &floor_divide_in,
    &remainder_in, &pow_in,
    &and_in,       &or_in,
    &xor_in,       &left_in,
    &right_in,     &neg,
    &abs_,         &invert,
    &reciprocal,   &rsub,
    &rpow,         &rfloor_divide,
    &rremainder,   &rshift_left,
    &rshift_right, &lt,
    &le,           &eq,
    &ne,           &gt,
    &ge,
};

void find_targets(PyObject* module) {
  PyObject* functions = submodule(module, "_VariableFunctions");
  for (Target* target : kTargets) {
    target->set = target->method ? method_set(target->name) : function_set(target->name);
    if (target->set != nullptr) {
      PyObject* owner = target->method ? reinterpret_cast<PyObject*>(tensor_type) : functions;
      target->function = check(PyObject_GetAttrString(owner, target->name));
    }
  }
}

const Part part(Stage::Members, find_targets);

bool is_number(PyObject* object) {
  if (PyFloat_Check(object) || PyLong_Check(object) || PyComplex_Check(object)) {
    return true;
  }
  Scalar scalar;
  return to_number(object, &scalar);
}

bool is_operand(PyObject* object) {
  return is_tensor(object) || is_number(object);
}

PyObject* call(const Target& target, PyObject* const* args, Py_ssize_t count) {
  if (target.set == nullptr) {
    PyErr_Format(PyExc_NotImplementedError, "there is no operator %s", target.name);
    return nullptr;
  }
  return guarded([&] { return call_set(*target.set, {args, count, nullptr}); });
}

PyObject* not_implemented() {
  return new_ref(Py_NotImplemented);
}

// Both orders of a binary slot; `reversed(a, b)` computes a op b where only b is a tensor.
template <typename Reversed>
PyObject* binary(const Target& target, PyObject* a, PyObject* b, Reversed&& reversed) {
  PyObject* args[] = {a, b};
  if (target.function != nullptr && any_override(args, 2, nullptr)) {
    return call_override(target.function, args, 2, nullptr);
  }
  if (is_tensor(a)) {
    return is_operand(b) ? call(target, args, 2) : not_implemented();
  }
  return is_number(a) ? reversed(args) : not_implemented();
}

template <const Target& kTarget>
PyObject* commutative_slot(PyObject* a, PyObject* b) {
  return binary(kTarget, a, b, [](PyObject** args) {
    std::swap(args[0], args[1]);
    return call(kTarget, args, 2);
  });
}

template <const Target& kTarget, const Target& kFunction>
PyObject* ordered_slot(PyObject* a, PyObject* b) {
  return binary(kTarget, a, b, [](PyObject** args) { return call(kFunction, args, 2); });
}

PyObject* subtract_slot(PyObject* a, PyObject* b) {
  return binary(sub, a, b, [](PyObject** args) {
    if (rsub.set != nullptr) {
      std::swap(args[0], args[1]);
      return call(rsub, args, 2);
    }
    return call(sub, args, 2);  // the number becomes a tensor, weak in promotion
  });
}

PyObject* divide_slot(PyObject* a, PyObject* b) {
  return binary(div_, a, b, [](PyObject** args) -> PyObject* {
    Ref inverse(call(reciprocal, args + 1, 1));
    if (!inverse) {
      return nullptr;
    }
    PyObject* product[] = {inverse.get(), args[0]};
    return call(mul, product, 2);
  });
}

PyObject* power_slot(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) {
    return not_implemented();
  }
  return ordered_slot<pow_, rpow>(a, b);
}

PyObject* matmul_slot(PyObject* a, PyObject* b) {
  PyObject* args[] = {a, b};
  if (matmul.function != nullptr && any_override(args, 2, nullptr)) {
    return call_override(matmul.function, args, 2, nullptr);
  }
  return is_tensor(a) && is_tensor(b) ? call(matmul, args, 2) : not_implemented();
}

template <const Target& kTarget>
PyObject* inplace_slot(PyObject* a, PyObject* b) {
  PyObject* args[] = {a, b};
  if (kTarget.function != nullptr && any_override(args, 2, nullptr)) {
    return call_override(kTarget.function, args, 2, nullptr);
  }
  return is_tensor(a) && is_operand(b) ? call(kTarget, args, 2) : not_implemented();
}

PyObject* inplace_power_slot(PyObject* a, PyObject* b, PyObject*) {
  return inplace_slot<pow_in>(a, b);
}

template <const Target& kTarget>
PyObject* unary_slot(PyObject* self) {
  if (kTarget.function != nullptr && any_override(&self, 1, nullptr)) {
    return call_override(kTarget.function, &self, 1, nullptr);
  }
  return call(kTarget, &self, 1);
}

PyObject* invert_slot(PyObject* self) {
  DType dtype = tensor_of(self).dtype();
  if (!is_integral(dtype, true)) {
    PyErr_SetString(PyExc_TypeError,
                    "~ (operator.invert) is only implemented on integer and Boolean-type tensors");
    return nullptr;
  }
  return unary_slot<invert>(self);
}

PyObject* positive_slot(PyObject* self) {
  return new_ref(self);
}

PyObject* compare_slot(PyObject* a, PyObject* b, int op) {
  static const Target* const kByOp[] = {&lt, &le, &eq, &ne, &gt, &ge};
  const Target& target = *kByOp[op];
  PyObject* args[] = {a, b};
  if (target.function != nullptr && any_override(args, 2, nullptr)) {
    return call_override(target.function, args, 2, nullptr);
  }
  return is_operand(b) ? call(target, args, 2) : not_implemented();
}

// ---- One-element tensors as Python numbers ------------------------------------------------------

PyObject* item_object(PyObject* self, const char* kind) {
  const Tensor& tensor = tensor_of(self);
  if (tensor.numel() != 1) {
    fail(ErrorKind::Value, "",
         "only one element tensors can be converted to Python scalars: ", kind, "() got shape ",
         tensor.sizes());
  }
  return scalar_object(tensor.item());
}

// Calls type.__name__ through the override door where the tensor is of an overriding class.
template <typename F>
PyObject* guarded_slot(PyObject* self, const char* name, F&& function) {
  if (any_override(&self, 1, nullptr)) {
    Ref slot(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), name));
    return slot ? call_override(slot.get(), &self, 1, nullptr) : nullptr;
  }
  return guarded(function);
}

int bool_slot(PyObject* self) {
  Ref result(guarded_slot(self, "__bool__", [&] {
    const Tensor& tensor = tensor_of(self);
    if (tensor.numel() != 1) {
      fail(ErrorKind::Runtime, "", "Boolean value of Tensor with ",
           tensor.numel() == 0 ? "no values" : "more than one value", " is ambiguous");
    }
    const graph::Reading reading("bool(tensor)");
    return PyBool_FromLong(tensor.item().to_bool());
  }));
  return result ? result.get() == Py_True : -1;
}

PyObject* int_slot(PyObject* self) {
  return guarded_slot(self, "__int__", [&] {
    const graph::Reading reading("int(tensor)");
    Ref item = owned(item_object(self, "int"));
    return check(PyNumber_Long(item.get()));
  });
}

PyObject* float_slot(PyObject* self) {
  return guarded_slot(self, "__float__", [&] {
    const graph::Reading reading("float(tensor)");
    Ref item = owned(item_object(self, "float"));
    return check(PyNumber_Float(item.get()));
  });
}

PyObject* index_slot(PyObject* self) {
  return guarded_slot(self, "__index__", [&] {
    const Tensor& tensor = tensor_of(self);
    if (tensor.numel() != 1 || !is_integral(tensor.dtype(), true)) {
      fail(ErrorKind::Type, "",
           "only integer tensors of a single element can be converted to an index");
    }
    const graph::Reading reading("a tensor as an index");
    return check(PyLong_FromLongLong(tensor.item().to_int()));
  });
}

template <typename F>
PyType_Slot slot(int id, F function) {
  return {id, reinterpret_cast<void*>(function)};
}

}  // namespace

std::span<const PyType_Slot> number_slots() {
  static const PyType_Slot list[] = {
      slot(Py_nb_add, commutative_slot<add>),
      slot(Py_nb_subtract, subtract_slot),
      slot(Py_nb_multiply, commutative_slot<mul>),
      slot(Py_nb_true_divide, divide_slot),
      slot(Py_nb_floor_divide, ordered_slot<floor_divide, rfloor_divide>),
      slot(Py_nb_remainder, ordered_slot<remainder_, rremainder>),
      slot(Py_nb_power, power_slot),
      slot(Py_nb_matrix_multiply, matmul_slot),
      slot(Py_nb_and, commutative_slot<bit_and>),
      slot(Py_nb_or, commutative_slot<bit_or>),
      slot(Py_nb_xor, commutative_slot<bit_xor>),
      slot(Py_nb_lshift, ordered_slot<shift_left, rshift_left>),
      slot(Py_nb_rshift, ordered_slot<shift_right, rshift_right>),
      slot(Py_nb_inplace_add, inplace_slot<add_in>),
      slot(Py_nb_inplace_subtract, inplace_slot<sub_in>),
      slot(Py_nb_inplace_multiply, inplace_slot<mul_in>),
      slot(Py_nb_inplace_true_divide, inplace_slot<div_in>),
      slot(Py_nb_inplace_floor_divide, inplace_slot<floor_divide_in>),
      slot(Py_nb_inplace_remainder, inplace_slot<remainder_in>),
      slot(Py_nb_inplace_power, inplace_power_slot),
      slot(Py_nb_inplace_and, inplace_slot<and_in>),
      slot(Py_nb_inplace_or, inplace_slot<or_in>),
      slot(Py_nb_inplace_xor, inplace_slot<xor_in>),
      slot(Py_nb_inplace_lshift, inplace_slot<left_in>),
      slot(Py_nb_inplace_rshift, inplace_slot<right_in>),
      slot(Py_nb_negative, unary_slot<neg>),
      slot(Py_nb_absolute, unary_slot<abs_>),
      slot(Py_nb_positive, positive_slot),
      slot(Py_nb_invert, invert_slot),
      slot(Py_nb_bool, bool_slot),
      slot(Py_nb_int, int_slot),
      slot(Py_nb_float, float_slot),
      slot(Py_nb_index, index_slot),
      slot(Py_tp_richcompare, compare_slot),
  };
  return list;
}

}  // namespace rushlight::python
