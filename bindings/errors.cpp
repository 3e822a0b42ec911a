// Exceptions both ways: the core's errors become Python's by kind, and a Python exception raised
// inside a callback crosses C++ frames unchanged.
#include <rushlight/error.h>

#include <new>

#include "convert.h"
#include "module.h"
#include "py.h"

namespace rushlight::python {
namespace {

PyObject* out_of_memory_error = nullptr;
PyObject* linalg_error = nullptr;

// Drops the reference wherever the last handle dies, on threads without the lock too. After the
// interpreter is gone there is nothing left to drop.
void drop_with_lock(PyObject* exception) {
  if (Py_IsInitialized()) {
    GilAcquire lock;
    Py_XDECREF(exception);
  }
}

PyObject* take_pending() {
#if PY_VERSION_HEX >= 0x030C0000
  return PyErr_GetRaisedException();
#else
  PyObject* type;
  PyObject* value;
  PyObject* traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (type == nullptr) {
    return nullptr;
  }
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback != nullptr) {
    PyException_SetTraceback(value, traceback);
    Py_DECREF(traceback);
  }
  Py_DECREF(type);
  return value;
#endif
}

std::string describe(PyObject* exception) {
  std::string text = type_name(exception);
  if (const Ref message{PyObject_Str(exception)}) {
    text += ": " + message_text(message.get());
  }
  PyErr_Clear();
  return text;
}

PyObject* exception_type(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Runtime:
    case ErrorKind::Internal:
      return PyExc_RuntimeError;
    case ErrorKind::Type:
      return PyExc_TypeError;
    case ErrorKind::Value:
      return PyExc_ValueError;
    case ErrorKind::Index:
      return PyExc_IndexError;
    case ErrorKind::Key:
      return PyExc_KeyError;
    case ErrorKind::Attribute:
      return PyExc_AttributeError;
    case ErrorKind::NotImplemented:
      return PyExc_NotImplementedError;
    case ErrorKind::ZeroDivision:
      return PyExc_ZeroDivisionError;
    case ErrorKind::Overflow:
      return PyExc_OverflowError;
    case ErrorKind::OutOfMemory:
      return out_of_memory_error;
    case ErrorKind::LinAlg:
      return linalg_error;
  }
  return PyExc_RuntimeError;
}

void emit_warning(const std::string& text) {
  if (!Py_IsInitialized()) {
    return;
  }
  GilAcquire lock;
  // A filter that turns warnings into errors makes this one an exception of the running call.
  if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) < 0) {
    throw PythonError();
  }
}

void fill(PyObject* module) {
  out_of_memory_error = check(PyErr_NewExceptionWithDoc(
      "rushlight.OutOfMemoryError", "Memory could not be had.", PyExc_RuntimeError, nullptr));
  linalg_error = check(PyErr_NewExceptionWithDoc(
      "rushlight._C._LinAlgError", "A matrix has not the property that a method needs.",
      PyExc_RuntimeError, nullptr));
  add_object(module, "OutOfMemoryError", new_ref(out_of_memory_error));
  add_object(module, "_LinAlgError", new_ref(linalg_error));
  set_warning_handler(emit_warning);
}

const Part part(Stage::Errors, fill);

void require_text(PyObject* object) {
  if (!PyUnicode_Check(object)) {
    PyErr_Format(PyExc_TypeError, "expected str, got %s", type_name(object).c_str());
    throw PythonError();
  }
}

}  // namespace

PythonError::PythonError() {
  PyObject* exception = take_pending();
  if (exception == nullptr) {
    PyErr_SetString(PyExc_SystemError, "a call failed without an exception");
    exception = take_pending();
  }
  text_ = std::make_shared<std::string>(describe(exception));
  exception_ = std::shared_ptr<PyObject>(exception, drop_with_lock);
}

void PythonError::restore() const {
#if PY_VERSION_HEX >= 0x030C0000
  PyErr_SetRaisedException(new_ref(exception_.get()));
#else
  PyObject* exception = exception_.get();
  PyErr_Restore(new_ref(reinterpret_cast<PyObject*>(Py_TYPE(exception))), new_ref(exception),
                PyException_GetTraceback(exception));
#endif
}

void translate_exception() noexcept {
  try {
    throw;
  } catch (const PythonError& error) {
    error.restore();
  } catch (const Error& error) {
    PyErr_SetString(exception_type(error.kind()), error.what());
  } catch (const std::bad_alloc&) {
    PyErr_SetString(out_of_memory_error, "out of memory");
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "an exception of an unknown C++ type");
  }
}

std::string_view text_of(PyObject* object) {
  require_text(object);
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(object, &size);
  if (text == nullptr) {
    throw PythonError();
  }
  return {text, static_cast<size_t>(size)};
}

std::string message_text(PyObject* object) {
  require_text(object);
  const Ref bytes = owned(PyUnicode_AsEncodedString(object, "utf-8", "backslashreplace"));
  return {PyBytes_AS_STRING(bytes.get()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.get()))};
}

PyObject* call_with(PyObject* function, PyObject* args, PyObject* kwargs) {
  if (kwargs == Py_None) {
    kwargs = nullptr;
  }
  if (kwargs != nullptr && !PyDict_Check(kwargs)) {
    PyErr_Format(PyExc_TypeError, "keyword arguments must be a dict, not %s",
                 type_name(kwargs).c_str());
    return nullptr;
  }
  const Ref items(args == nullptr ? PyTuple_New(0) : PySequence_Tuple(args));
  return items ? PyObject_Call(function, items.get(), kwargs) : nullptr;
}

std::string type_name(PyObject* object) {
  std::string name = Py_TYPE(object)->tp_name;
  constexpr std::string_view kPackage = "rushlight.";
  return name.starts_with(kPackage) ? "torch." + name.substr(kPackage.size()) : name;
}

}  // namespace rushlight::python
