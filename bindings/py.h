// What every file of the extension uses: references, errors on their way through C++, the lock.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>  // PyMemberDef, before Python 3.12

#include <concepts>
#include <exception>
#include <memory>
#include <string>
#include <utility>

namespace rushlight::python {

// An owning reference to a Python object, or nothing.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* owned) : object_(owned) {}  // takes over one reference
  static Ref share(PyObject* borrowed) {
    Py_XINCREF(borrowed);
    return Ref(borrowed);
  }
  Ref(const Ref& other) : object_(other.object_) { Py_XINCREF(object_); }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }
  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// Holds the interpreter's lock for a scope, from any thread.
class GilAcquire {
 public:
  GilAcquire() : state_(PyGILState_Ensure()) {}
  ~GilAcquire() { PyGILState_Release(state_); }
  GilAcquire(const GilAcquire&) = delete;

 private:
  PyGILState_STATE state_;
};

// Lets other Python threads run for a scope.
class GilRelease {
 public:
  explicit GilRelease(bool on = true) : state_(on ? PyEval_SaveThread() : nullptr) {}
  ~GilRelease() {
    if (state_ != nullptr) {
      PyEval_RestoreThread(state_);
    }
  }
  GilRelease(const GilRelease&) = delete;

 private:
  PyThreadState* state_;
};

// A Python exception on its way through C++ frames, across threads if need be: made from the
// pending one (which it clears), and made pending again by `restore`.
class PythonError : public std::exception {
 public:
  PythonError();
  const char* what() const noexcept override { return text_->c_str(); }
  void restore() const;

 private:
  std::shared_ptr<PyObject> exception_;
  std::shared_ptr<std::string> text_;
};

// The result of a C API call: throws PythonError where it failed.
inline PyObject* check(PyObject* result) {
  if (result == nullptr) {
    throw PythonError();
  }
  return result;
}
template <std::signed_integral T>
T check(T result) {
  if (result < 0) {
    throw PythonError();
  }
  return result;
}
inline Ref owned(PyObject* result) {
  return Ref(check(result));
}

// In a catch block: makes the C++ exception in flight the pending Python one, its type by
// ErrorKind.
void translate_exception() noexcept;

// One level of a walk over nested containers, which may hold themselves:
// PythonError(RecursionError) where there are too many.
class RecursionGuard {
 public:
  explicit RecursionGuard(const char* where) {
    if (Py_EnterRecursiveCall(where) != 0) {
      throw PythonError();
    }
  }
  ~RecursionGuard() { Py_LeaveRecursiveCall(); }
  RecursionGuard(const RecursionGuard&) = delete;
};

// Runs `function`; a C++ exception becomes a pending Python one and the result `failed`.
template <typename F, typename R = std::invoke_result_t<F>>
R guarded(F&& function, R failed = {}) noexcept {
  try {
    return function();
  } catch (...) {
    translate_exception();
    return failed;
  }
}
template <typename F>
int guarded_int(F&& function) noexcept {
  return guarded(std::forward<F>(function), -1);
}

// UTF-8 text of a str; PythonError(TypeError) for anything else. Lives as long as the object.
std::string_view text_of(PyObject* object);
// The same for messages: what UTF-8 cannot hold (a surrogate on its own) is written as an escape.
std::string message_text(PyObject* object);
// Calls function(*args, **kwargs) with what a user gave as these: any sequence, a dict or None.
// Either may be null. Null, with an exception set, where it failed.
PyObject* call_with(PyObject* function, PyObject* args, PyObject* kwargs);
// How error texts call an object's type: as PyTorch does, "Tensor", "torch.dtype", "int".
std::string type_name(PyObject* object);
inline PyObject* py_none() {
  Py_INCREF(Py_None);
  return Py_None;
}
inline PyObject* new_ref(PyObject* object) {
  Py_INCREF(object);
  return object;
}

}  // namespace rushlight::python
