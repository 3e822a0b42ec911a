// Module functions over process-wide settings: threads, default dtype, promotion, memory.
#include <rushlight/memory.h>

#include "convert.h"
#include "kernels/gemm.h"
#include "module.h"
#include "ops/promotion.h"
#include "runtime/cpu.h"
#include "runtime/parallel.h"
#include "tensor/pending.h"

namespace rushlight::python {
namespace {

PyObject* get_num_threads(PyObject*, PyObject*) {
  return PyLong_FromLong(num_threads());
}

PyObject* set_threads(PyObject*, PyObject* count) {
  return guarded([&] {
    if (!PyLong_Check(count)) {
      fail(ErrorKind::Type, "", "set_num_threads expects an int, but got ", type_name(count));
    }
    int64_t wanted = int_of(count, "set_num_threads", "int");
    if (wanted < 1 || wanted > 1 << 20) {
      fail(ErrorKind::Runtime, "", "set_num_threads expects a positive integer");
    }
    set_num_threads(static_cast<int>(wanted));
    return py_none();
  });
}

PyObject* get_default(PyObject*, PyObject*) {
  return new_ref(dtype_object(default_dtype()));
}

PyObject* set_default(PyObject*, PyObject* dtype) {
  return guarded([&] {
    if (!is_dtype(dtype)) {
      fail(ErrorKind::Type, "",
           "invalid dtype object: only floating-point types are supported as "
           "the default type");
    }
    set_default_dtype(dtype_of(dtype, "set_default_dtype", "d"));
    return py_none();
  });
}

PyObject* promote_types(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"type1", "type2", nullptr};
  PyObject* a;
  PyObject* b;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:promote_types", const_cast<char**>(names), &a,
                                   &b)) {
    return nullptr;
  }
  return guarded([&] {
    // In order, so that the first wrong argument is the one named.
    DType first = dtype_of(a, "promote_types", "type1");
    DType second = dtype_of(b, "promote_types", "type2");
    return new_ref(dtype_object(promote(first, second)));
  });
}

PyObject* can_cast_types(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"from_", "to", nullptr};
  PyObject* a;
  PyObject* b;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:can_cast", const_cast<char**>(names), &a,
                                   &b)) {
    return nullptr;
  }
  return guarded([&] {
    return PyBool_FromLong(
        can_cast(dtype_of(a, "can_cast", "from_"), dtype_of(b, "can_cast", "to")));
  });
}

Value operand(PyObject* object) {
  Scalar number;
  if (is_tensor(object)) {
    return Value::borrow(tensor_of(object));
  }
  if (!to_number(object, &number)) {
    fail(ErrorKind::Type, "", "result_type(): arguments must be Tensor or Number, not ",
         type_name(object));
  }
  return Value(number);
}

// PyTorch names the operands by what they are: (tensor, other), (scalar, tensor), (scalar1,
// scalar2).
PyObject* result_type(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[][3] = {
      {"tensor", "other", nullptr}, {"scalar", "tensor", nullptr}, {"scalar1", "scalar2", nullptr}};
  const auto given = [&](const char* name) {
    return kwargs != nullptr && PyDict_GetItemString(kwargs, name) != nullptr;
  };
  const bool number = given("scalar") || (given("tensor") && PyTuple_GET_SIZE(args) == 1);
  const int form = given("scalar1") || given("scalar2") ? 2 : number ? 1 : 0;
  PyObject* a;
  PyObject* b;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:result_type", const_cast<char**>(names[form]),
                                   &a, &b)) {
    return nullptr;
  }
  return guarded([&] {
    Value values[] = {operand(a), operand(b)};
    Promotion promotion;
    promotion.add(values[0]);
    promotion.add(values[1]);
    return new_ref(dtype_object(promotion.result()));
  });
}

PyObject* memory_statistics(PyObject*, PyObject*) {
  memory::Statistics now = memory::statistics();
  return Py_BuildValue("{sLsLsLsLsL}", "live_bytes", static_cast<long long>(now.live_bytes),
                       "cached_bytes", static_cast<long long>(now.cached_bytes), "peak_bytes",
                       static_cast<long long>(now.peak_bytes), "allocations",
                       static_cast<long long>(now.allocations), "system_allocations",
                       static_cast<long long>(now.system_allocations));
}

PyObject* memory_reset_peak(PyObject*, PyObject*) {
  memory::reset_peak();
  Py_RETURN_NONE;
}
PyObject* memory_empty_cache(PyObject*, PyObject*) {
  memory::empty_cache();
  Py_RETURN_NONE;
}
PyObject* memory_limit(PyObject*, PyObject*) {
  return PyLong_FromLongLong(memory::limit());
}
PyObject* memory_set_limit(PyObject*, PyObject* bytes) {
  return guarded([&] {
    memory::set_limit(int_of(bytes, "set_memory_limit", "bytes"));
    return py_none();
  });
}

PyObject* cpu_level(PyObject*, PyObject*) {
  return guarded([] {
    return PyUnicode_FromString(std::string(cpu_level_name(rushlight::cpu_level())).c_str());
  });
}

// In the order of MatmulPrecision.
constexpr const char* kPrecisions[] = {"highest", "split", "high", "medium"};

PyObject* get_precision(PyObject*, PyObject*) {
  return PyUnicode_FromString(kPrecisions[static_cast<int>(f32_matmul_precision())]);
}

PyObject* set_precision(PyObject*, PyObject* name) {
  return guarded([&] {
    for (int i = 0; i < 4; ++i) {
      if (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, kPrecisions[i]) == 0) {
        settle_captured("the precision of products");
        set_f32_matmul_precision(static_cast<MatmulPrecision>(i));
        return py_none();
      }
    }
    const std::string got = PyUnicode_Check(name) ? message_text(name) : type_name(name);
    fail(ErrorKind::Runtime, "", "no precision of matrix products: '", got, "'");
  });
}

template <typename F>
PyCFunction as_function(F function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}

PyMethodDef functions[] = {
    {"get_num_threads", get_num_threads, METH_NOARGS, "How many threads an operator may use."},
    {"set_num_threads", set_threads, METH_O,
     "set_num_threads(num)\n--\n\nSets how many threads an operator may use."},
    {"get_default_dtype", get_default, METH_NOARGS, "What float factories make."},
    {"set_default_dtype", set_default, METH_O,
     "set_default_dtype(d)\n--\n\nSets what float factories make."},
    {"promote_types", as_function(promote_types), METH_VARARGS | METH_KEYWORDS,
     "promote_types(type1, type2)\n--\n\nThe smallest dtype that both convert to."},
    {"can_cast", as_function(can_cast_types), METH_VARARGS | METH_KEYWORDS,
     "can_cast(from_, to)\n--\n\nWhether promotion rules allow the conversion."},
    {"result_type", as_function(result_type), METH_VARARGS | METH_KEYWORDS,
     "result_type(tensor, other)\nresult_type(scalar, tensor)\nresult_type(scalar1, scalar2)\n\n"
     "The dtype of arithmetic between two operands."},
    {"_memory_statistics", memory_statistics, METH_NOARGS, nullptr},
    {"_memory_reset_peak", memory_reset_peak, METH_NOARGS, nullptr},
    {"_memory_empty_cache", memory_empty_cache, METH_NOARGS, nullptr},
    {"_memory_limit", memory_limit, METH_NOARGS, nullptr},
    {"_memory_set_limit", memory_set_limit, METH_O, nullptr},
    {"_get_float32_matmul_precision", get_precision, METH_NOARGS, nullptr},
    {"_set_float32_matmul_precision", set_precision, METH_O, nullptr},
    {"_cpu_level", cpu_level, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

void fill(PyObject* module) {
  add_functions(module, functions);
}

const Part part(Stage::Rest, fill);

}  // namespace
}  // namespace rushlight::python
