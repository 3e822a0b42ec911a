#include "arguments.h"

#include "deprecated_overloads.h"

namespace rushlight::python {
namespace {

bool same_text(PyObject* a, PyObject* b) {
  return a == b ||
         (PyUnicode_GET_LENGTH(a) == PyUnicode_GET_LENGTH(b) && PyUnicode_Compare(a, b) == 0);
}

bool named(const Parameter& parameter, PyObject* keyword) {
  if (same_text(parameter.name, keyword)) {
    return true;
  }
  for (int i = 0; parameter.others[i] != nullptr; ++i) {
    if (same_text(parameter.others[i], keyword)) {
      return true;
    }
  }
  return false;
}

PyObject* out_name() {
  static PyObject* const name = PyUnicode_InternFromString("out");
  return name;
}
PyObject* requires_grad_name() {
  static PyObject* const name = PyUnicode_InternFromString("requires_grad");
  return name;
}

bool is_out(PyObject* object, const Signature& signature) {
  if (signature.op->schema.results.size() <= 1) {
    return is_tensor(object);
  }
  if (!PyTuple_Check(object) && !PyList_Check(object)) {
    return false;
  }
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
    if (!is_tensor(PySequence_Fast_GET_ITEM(object, i))) {
      return false;
    }
  }
  return PySequence_Fast_GET_SIZE(object) ==
         static_cast<Py_ssize_t>(signature.op->schema.results.size());
}

struct Matcher {
  const OverloadSet& set;
  const Signature& signature;
  const Arguments& arguments;
  Frame& frame;
  Mismatch& mismatch;

  bool no(Mismatch::Kind kind, const Parameter* parameter, PyObject* object, int position) {
    mismatch = {kind, parameter, object, position};
    return false;
  }

  bool convert(const Parameter& parameter, PyObject* object, int position) {
    if (convert_argument(set, parameter, object, frame, frame.values()[parameter.index])) {
      return true;
    }
    return no(Mismatch::Kind::WrongType, &parameter, object, position);
  }

  bool positional() {
    Py_ssize_t count = arguments.positional;
    Py_ssize_t last = signature.positional - 1;
    if (signature.varargs && count > last && fits_varargs(arguments.items[last])) {
      count = last;
    } else if (count > signature.positional) {
      return no(Mismatch::Kind::TooMany, nullptr, nullptr, 0);
    }
    for (Py_ssize_t i = 0; i < count; ++i) {
      int position = static_cast<int>(i) + (set.method ? 0 : 1);
      if (!convert(signature.parameters[i], arguments.items[i], position)) {
        return false;
      }
    }
    return count == arguments.positional || varargs(last);
  }

  static bool fits_varargs(PyObject* object) {
    return !PyTuple_Check(object) && !PyList_Check(object) && object != Py_None &&
           PyIndex_Check(object) && !PyBool_Check(object);
  }

  bool varargs(Py_ssize_t last) {
    const Parameter& parameter = signature.parameters[last];
    Ref list = owned(PyTuple_New(arguments.positional - last));
    for (Py_ssize_t i = last; i < arguments.positional; ++i) {
      PyTuple_SET_ITEM(list.get(), i - last, new_ref(arguments.items[i]));
    }
    return convert(parameter, list.get(), static_cast<int>(last) + (set.method ? 0 : 1));
  }

  // Which parameter a keyword names, or -1.
  int find(PyObject* keyword) const {
    for (size_t i = 0; i < signature.parameters.size(); ++i) {
      if (named(signature.parameters[i], keyword)) {
        return static_cast<int>(i);
      }
    }
    return -1;
  }

  // Whether another overload takes out= as a list of tensors: None then stands for its absence.
  bool set_names_out() const {
    for (const Signature& other : set.signatures) {
      for (const Parameter& parameter : other.parameters) {
        if (named(parameter, out_name())) {
          return true;
        }
      }
    }
    return false;
  }

  bool special_keyword(PyObject* keyword, PyObject* object) {
    if (signature.takes_out && same_text(keyword, out_name())) {
      if (object != Py_None && !is_out(object, signature)) {
        return no(Mismatch::Kind::WrongType, nullptr, object, 0);
      }
      frame.out = object == Py_None ? nullptr : object;
      return true;
    }
    if (object == Py_None && same_text(keyword, out_name()) && set_names_out()) {
      return true;
    }
    if (signature.takes_requires_grad && same_text(keyword, requires_grad_name())) {
      if (!PyBool_Check(object) && object != Py_None) {
        return no(Mismatch::Kind::WrongType, nullptr, object, kRequiresGrad);
      }
      frame.requires_grad = object == Py_True;
      return true;
    }
    return no(Mismatch::Kind::Unexpected, nullptr, keyword, 0);
  }

  bool keywords(uint64_t& given) {
    for (Py_ssize_t i = 0; i < arguments.keyword_count(); ++i) {
      PyObject* keyword = arguments.keyword(i);
      int at = find(keyword);
      if (at < 0) {
        if (!special_keyword(keyword, arguments.keyword_value(i))) {
          return false;
        }
        continue;
      }
      const Parameter& parameter = signature.parameters[at];
      if (given >> at & 1) {
        return no(Mismatch::Kind::Twice, &parameter, keyword, 0);
      }
      given |= uint64_t{1} << at;
      if (!convert(parameter, arguments.keyword_value(i), 0)) {
        return false;
      }
    }
    return true;
  }

  bool defaults(uint64_t given) {
    for (size_t i = 0; i < signature.parameters.size(); ++i) {
      if (given >> i & 1) {
        continue;
      }
      const Parameter& parameter = signature.parameters[i];
      if (!parameter.argument->has_default) {
        return no(Mismatch::Kind::Missing, &parameter, nullptr, 0);
      }
      fill_default(parameter.index);
    }
    return true;
  }

  void fill_default(int index) {
    const Value& value = signature.defaults[index];
    frame.values()[index] = value.tag() == Value::Tag::Ints     ? Value::borrow(value.ints())
                            : value.tag() == Value::Tag::String ? Value::borrow(value.text())
                                                                : value;
  }

  bool run() {
    frame.open(static_cast<int>(signature.op->schema.arguments.size()));
    if (!positional()) {
      return false;
    }
    Py_ssize_t count = std::min<Py_ssize_t>(arguments.positional, signature.positional);
    uint64_t given = (uint64_t{1} << count) - 1;
    return (arguments.keywords == nullptr || keywords(given)) && defaults(given) && some_tensor();
  }

  // Operators that take a number first need a tensor beside it.
  bool some_tensor() {
    if (!(signature.op->variants & kNumberFirst)) {
      return true;
    }
    const Value* values = frame.values();
    return !values[0].impl()->has(TensorImpl::kWrappedNumber) || values[1].is_tensor() ||
           no(Mismatch::Kind::WrongType, &signature.parameters[0], arguments.items[0], 1);
  }
};

}  // namespace

bool match(const OverloadSet& set, const Signature& signature, const Arguments& arguments,
           Frame& frame, Mismatch& mismatch) {
  return Matcher{set, signature, arguments, frame, mismatch}.run();
}

const Signature& choose(const OverloadSet& set, const Arguments& arguments, Frame& frame) {
  Mismatch mismatch;
  for (const Signature& signature : set.signatures) {
    if (match(set, signature, arguments, frame, mismatch)) {
      return signature;
    }
    frame.reset();
  }
  if (const Signature* deprecated = choose_deprecated(set, arguments, frame)) {
    return *deprecated;
  }
  fail_call(set, arguments);
}

}  // namespace rushlight::python
