// Python arguments to an operator's values: which overload fits, and what does not where none does.
#pragma once

#include <new>

#include "signature.h"

namespace rushlight::python {

// A call's arguments as vectorcall gives them.
struct Arguments {
  PyObject* const* items;
  Py_ssize_t positional;
  PyObject* keywords;  // tuple of str, or null; their values follow the positional items
  Py_ssize_t keyword_count() const { return keywords != nullptr ? PyTuple_GET_SIZE(keywords) : 0; }
  PyObject* keyword(Py_ssize_t i) const { return PyTuple_GET_ITEM(keywords, i); }
  PyObject* keyword_value(Py_ssize_t i) const { return items[positional + i]; }
};

// The values of one call, on the caller's stack. They borrow from the Python arguments.
class Frame {
 public:
  static constexpr int kMaxValues = 32;
  static constexpr int kMaxInts = 48;
  Frame() = default;
  Frame(const Frame&) = delete;
  ~Frame() { reset(); }

  void reset() {
    for (int i = 0; i < count_; ++i) {
      values()[i].~Value();
    }
    count_ = 0;
    ints_used_ = 0;
    out = nullptr;
    requires_grad = false;
  }
  // Makes the values, all None.
  void open(int count) {
    for (int i = 0; i < count; ++i) {
      new (values() + i) Value();
    }
    count_ = count;
  }
  Value* values() { return std::launder(reinterpret_cast<Value*>(storage_)); }
  // Room for `count` integers until reset; null where it is used up.
  int64_t* ints(Py_ssize_t count) {
    if (ints_used_ + count > kMaxInts) {
      return nullptr;
    }
    int64_t* room = ints_ + ints_used_;
    ints_used_ += static_cast<int>(count);
    return room;
  }

  PyObject* out = nullptr;  // the `out=` argument, borrowed
  bool requires_grad = false;

 private:
  alignas(Value) unsigned char storage_[kMaxValues * sizeof(Value)];
  int count_ = 0;
  int ints_used_ = 0;
  int64_t ints_[kMaxInts];
};

// Why a signature does not fit.
constexpr int kRequiresGrad = -2;  // a position: of requires_grad=, which is no parameter

struct Mismatch {
  enum class Kind { TooMany, Missing, WrongType, Unexpected, Twice } kind = Kind::Missing;
  const Parameter* parameter = nullptr;
  PyObject* object = nullptr;  // of the wrong type; or the keyword
  int position = -1;           // from 1; 0: given by keyword; kRequiresGrad
};

// Fills the frame where the arguments fit. Throws where they fit but a value is bad (a size that
// overflows, a wrong item inside a list).
bool match(const OverloadSet& set, const Signature& signature, const Arguments& arguments,
           Frame& frame, Mismatch& mismatch);

// The first signature that fits; Error(Type) as PyTorch words it where none does.
const Signature& choose(const OverloadSet& set, const Arguments& arguments, Frame& frame);

// The TypeError for a call that fits no signature.
[[noreturn]] void fail_call(const OverloadSet& set, const Arguments& arguments);

// One argument; false where the type does not fit. `varargs`: the items of an int[] start at
// `object` in the call's own array.
bool convert_argument(const OverloadSet& set, const Parameter& parameter, PyObject* object,
                      Frame& frame, Value& value);

}  // namespace rushlight::python
