// How Python calls an operator: its schema in Python's order and names.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "convert.h"
#include "ops/operator.h"

namespace rushlight::python {

struct Parameter {
  PyObject* name;       // interned
  PyObject* others[4];  // NumPy's names for it, null-ended
  const Argument* argument;
  int index;     // among the operator's arguments
  bool numbers;  // a tensor that may be given as a number
};

// One overload in one face: function, method, or in-place form.
struct Signature {
  const Operator* op = nullptr;
  Form form = Form::Functional;
  std::vector<Parameter> parameters;  // by position first, then keyword-only
  int positional = 0;                 // how many may be given by position
  bool varargs = false;               // the last of these is int[]: its items may come one by one
  bool takes_out = false;
  bool takes_requires_grad = false;
  std::vector<Value> defaults;          // by operator argument; borrows from the schema
  PyTypeObject* result_type = nullptr;  // named tuple, where the results have names
  PyTypeObject* out_type = nullptr;     // the same where out= is given
};

// All overloads of one Python callable.
struct OverloadSet {
  std::string name;
  bool method = false;
  ErrorKind misfit = ErrorKind::Type;  // what a call that fits no signature raises
  std::vector<Signature> signatures;
};

enum class Face : uint8_t {
  Function,  // `self` is called `input`
  Method,    // self comes first and is given by Python
  Operator,  // rushlight.ops.aten: the schema as it is
};

Signature make_signature(const Operator& op, Face face, Form form);

// "(Tensor input, int dim, bool keepdim = False, *, Tensor out = None)"
std::string signature_text(const Signature& signature, bool method);
// "(input, dim, keepdim=False, *, out=None)", as Python's help says it. `merged`: together with the
// overload that it extends, so that the keywords which it adds may be left out.
std::string python_signature_text(const Signature& signature, bool method, bool merged = false);
// Whether an overload is `base` with further keywords that None stands for (rounding_mode, out).
bool extends(const Signature& signature, const Signature& base);
// What error texts call a parameter's type: "Tensor", "Number", "tuple of ints".
std::string parameter_type(const Argument& argument);

// The named tuple type of an operator's results, or of those of its out= form; null where they have
// no names.
PyTypeObject* return_type(const Operator& op, bool out);

}  // namespace rushlight::python
