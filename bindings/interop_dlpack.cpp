// Tensors to and from other libraries by DLPack capsules, without a copy.
#include <cstring>
#include <memory>

#include "dlpack.h"
#include "from_data.h"
#include "graph/capture.h"
#include "module.h"

namespace rushlight::python {
namespace {

using dlpack::Code;
using dlpack::Managed;
using dlpack::ManagedVersioned;

constexpr const char* kName = "dltensor";
constexpr const char* kUsedName = "used_dltensor";
constexpr const char* kVersionedName = "dltensor_versioned";
constexpr const char* kUsedVersionedName = "used_dltensor_versioned";

dlpack::ElementType element_type(DType dtype) {
  const auto bits = static_cast<uint8_t>(8 * element_size(dtype));
  if (dtype == DType::BFloat16) {
    return {Code::BFloat, bits, 1};
  }
#define RUSHLIGHT_CODE(type, convert) \
  if (dtype == DType::type) {         \
    return {Code::type, bits, 1};     \
  }
  RUSHLIGHT_FLOAT8(RUSHLIGHT_CODE)
#undef RUSHLIGHT_CODE
  switch (info(dtype).category) {
    case DTypeCategory::Bool:
      return {Code::Bool, bits, 1};
    case DTypeCategory::Unsigned:
      return {Code::UInt, bits, 1};
    case DTypeCategory::Signed:
      return {Code::Int, bits, 1};
    case DTypeCategory::Float:
      return {Code::Float, bits, 1};
    case DTypeCategory::Complex:
      return {Code::Complex, bits, 1};
  }
  __builtin_unreachable();
}

DType dtype_of_element(dlpack::ElementType type) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const dlpack::ElementType candidate = element_type(dtype);
    if (candidate.code == type.code && candidate.bits == type.bits && type.lanes == 1) {
      return dtype;
    }
  }
  fail(ErrorKind::Runtime, "from_dlpack", "Unsupported DLPack dtype: code ",
       static_cast<int>(type.code), ", ", static_cast<int>(type.bits), " bits, ",
       static_cast<int>(type.lanes), " lanes");
}

// ---- Out -------------------------------------------------------------------------------------
template <typename M>
struct Exported {
  M managed{};
  Tensor tensor;
  IntList sizes;
  IntList strides;
};

template <typename M>
void delete_exported(M* managed) {
  delete static_cast<Exported<M>*>(managed->context);
}

template <typename M>
M* export_tensor(const Tensor& tensor) {
  auto out = std::make_unique<Exported<M>>();
  out->tensor = tensor;
  out->sizes = IntList(tensor.sizes());
  out->strides = IntList(tensor.strides());
  for (size_t i = 0; i < out->sizes.size(); ++i) {
    out->strides[i] = out->sizes[i] < 2 ? 1 : out->strides[i];
  }
  out->managed.context = out.get();
  out->managed.deleter = delete_exported<M>;
  graph::flush_capture("DLPack");  // who is lent the memory may write it
  void* data = tensor.data();
  lend_memory(tensor.storage());
  out->managed.view = {data,
                       {dlpack::kCpu, 0},
                       static_cast<int32_t>(tensor.dim()),
                       element_type(tensor.dtype()),
                       out->sizes.data(),
                       out->strides.data(),
                       0};
  return &out.release()->managed;
}

// Nobody took the capsule: the tensor goes with it.
template <typename M>
void drop_capsule(PyObject* capsule, const char* name) {
  if (PyCapsule_IsValid(capsule, name) != 0) {
    auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule, name));
    managed->deleter(managed);
  }
}

// A pair of numbers that the protocol defines; nothing is read of None.
void read_pair(PyObject* given, const char* name, int* first, int* second) {
  if (given == Py_None) {
    return;
  }
  if (!PyTuple_Check(given)) {
    fail(ErrorKind::Type, "__dlpack__", "argument '", name, "' must be a tuple of two ints, not ",
         type_name(given));
  }
  if (PyArg_ParseTuple(given, "ii", first, second) == 0) {
    throw PythonError();
  }
}

PyObject* method_dlpack(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
  PyObject* stream = Py_None;
  PyObject* max_version = Py_None;
  PyObject* dl_device = Py_None;
  PyObject* copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", const_cast<char**>(names),
                                   &stream, &max_version, &dl_device, &copy)) {
    return nullptr;
  }
  Tensor tensor = tensor_of(self);
  const bool no_stream = stream == Py_None || (PyLong_Check(stream) && PyLong_AsLong(stream) == -1);
  if (!no_stream && PyErr_Occurred() == nullptr) {
    PyErr_SetString(PyExc_AssertionError, "stream should be None on cpu.");
  }
  if (PyErr_Occurred() != nullptr) {
    return nullptr;
  }
  if (tensor.requires_grad()) {
    PyErr_SetString(PyExc_BufferError,
                    "Can't export tensors that require gradient, use tensor.detach()");
    return nullptr;
  }
  if (!tensor.is_cpu()) {
    PyErr_SetString(PyExc_BufferError, "Can't export tensors that have no memory (device meta)");
    return nullptr;
  }
  return guarded([&] {
    int type = dlpack::kCpu;
    int index = 0;
    read_pair(dl_device, "dl_device", &type, &index);
    if (type != dlpack::kCpu) {
      PyErr_Format(PyExc_BufferError, "cannot export a CPU tensor to DLPack device type %d", type);
      throw PythonError();
    }
    const bool copies = copy == Py_True;
    tensor = converted(tensor, std::nullopt, std::nullopt, copies);
    int major = 0;
    int minor = 0;
    read_pair(max_version, "max_version", &major, &minor);
    if (major < 1) {
      return check(PyCapsule_New(export_tensor<Managed>(tensor), kName,
                                 [](PyObject* capsule) { drop_capsule<Managed>(capsule, kName); }));
    }
    ManagedVersioned* managed = export_tensor<ManagedVersioned>(tensor);
    managed->version = {1, 0};
    managed->flags = copies ? dlpack::kCopied : 0;
    return check(PyCapsule_New(managed, kVersionedName, [](PyObject* capsule) {
      drop_capsule<ManagedVersioned>(capsule, kVersionedName);
    }));
  });
}

PyObject* method_dlpack_device(PyObject* self, PyObject*) {
  return guarded([&] {
    if (!tensor_of(self).is_cpu()) {
      fail(ErrorKind::Value, "", "Unknown device type meta for Dlpack");
    }
    return check(Py_BuildValue("(ii)", dlpack::kCpu, 0));
  });
}

// ---- In --------------------------------------------------------------------------------------
template <typename M>
void release_imported(StorageImpl* storage) {
  auto* managed = static_cast<M*>(storage->context);
  if (managed->deleter == nullptr) {
    return;
  }
  // The other library's deleter may need the interpreter.
  if (!Py_IsInitialized()) {
    return;
  }
  const GilAcquire lock;
  managed->deleter(managed);
}

template <typename M>
Tensor import_tensor(M* managed) {
  const dlpack::View& view = managed->view;
  if (view.device.type != dlpack::kCpu) {
    fail(ErrorKind::Runtime, "from_dlpack", "Unsupported device_type: ", view.device.type);
  }
  if (view.rank < 0 || (view.rank > 0 && view.sizes == nullptr)) {
    fail(ErrorKind::Runtime, "from_dlpack", "the capsule's shape is not valid");
  }
  const IntArrayRef sizes(view.sizes, static_cast<size_t>(view.rank));
  checked_numel(sizes, "from_dlpack");
  const IntList strides = view.strides == nullptr
                              ? contiguous_strides(sizes)
                              : IntList(IntArrayRef(view.strides, static_cast<size_t>(view.rank)));
  for (const int64_t stride : strides) {
    if (stride < 0) {
      fail(ErrorKind::Runtime, "from_dlpack",
           "tensors with negative strides are not currently supported, got strides ", strides);
    }
  }
  return make_foreign(static_cast<char*>(view.data) + view.byte_offset, sizes, strides,
                      dtype_of_element(view.type), release_imported<M>, managed);
}

PyObject* from_capsule(PyObject*, PyObject* capsule) {
  return guarded([&] {
    if (PyCapsule_IsValid(capsule, kVersionedName) != 0) {
      auto* managed = static_cast<ManagedVersioned*>(PyCapsule_GetPointer(capsule, kVersionedName));
      if (managed->version.major > 1) {
        fail(ErrorKind::Runtime, "from_dlpack", "DLPack version ", managed->version.major, ".",
             managed->version.minor, " is not supported: 1.x is");
      }
      if ((managed->flags & dlpack::kReadOnly) != 0) {
        warn(
            "The DLPack capsule's memory is read-only, and PyTorch does not support non-writable "
            "tensors: writing to this tensor will result in undefined behavior.");
      }
      Tensor tensor = import_tensor(managed);
      check(PyCapsule_SetName(capsule, kUsedVersionedName));
      return wrap(std::move(tensor));
    }
    if (PyCapsule_IsValid(capsule, kName) != 0) {
      auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, kName));
      Tensor tensor = import_tensor(managed);
      check(PyCapsule_SetName(capsule, kUsedName));
      return wrap(std::move(tensor));
    }
    fail(
        ErrorKind::Runtime, "",
        "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only "
        "once, so you might have already constructed a tensor from it once.");
  });
}

PyMethodDef functions[] = {
    {"_from_dlpack", from_capsule, METH_O, "A tensor over a DLPack capsule's memory."},
    {nullptr, nullptr, 0, nullptr},
};
PyMethodDef methods[] = {
    {"__dlpack__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(method_dlpack)),
     METH_VARARGS | METH_KEYWORDS,
     "__dlpack__(*, stream=-1, max_version=None, dl_device=None, copy=None)\n--\n\n"
     "The tensor as a DLPack capsule over the same memory."},
    {"__dlpack_device__", method_dlpack_device, METH_NOARGS, "DLPack's device type and index."},
    {nullptr, nullptr, 0, nullptr},
};

void fill(PyObject* module) {
  add_functions(module, functions);
  add_tensor_methods(methods);
}

const Part part(Stage::Members, fill);

}  // namespace
}  // namespace rushlight::python
