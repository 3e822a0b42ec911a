// Orders of arguments that PyTorch deprecated and still takes: x.add_(alpha, other) and its kin.
#include "deprecated_overloads.h"

#include <algorithm>
#include <array>
#include <string>

#include "module.h"

namespace rushlight::python {
namespace {

// A call's new order, by positions in the old one, and what becomes a keyword.
using Names = std::array<const char*, 5>;

struct Order {
  Names names;  // operators, without the underscore of their in-place form
  bool method;  // of the form x.f(...) only; else of f(x, ...) only, or both
  bool both;
  Py_ssize_t count;
  std::array<int, 3> tensors;
  int tensor_count;
  std::array<std::pair<const char*, int>, 2> numbers;
  int number_count;
};

constexpr Names kProducts = {"addmm", "addmv", "addr", "addbmm", "baddbmm"};

constexpr std::array kOrders = {
    Order{{"add", "sub"}, false, true, 3, {0, 2}, 2, {{{"alpha", 1}}}, 1},
    Order{{"addcmul", "addcdiv"}, false, true, 4, {0, 2, 3}, 3, {{{"value", 1}}}, 1},
    Order{kProducts, false, false, 5, {1, 3, 4}, 3, {{{"beta", 0}, {"alpha", 2}}}, 2},
    Order{kProducts, false, false, 4, {1, 2, 3}, 3, {{{"beta", 0}}}, 1},
    Order{kProducts, true, false, 5, {0, 3, 4}, 3, {{{"beta", 1}, {"alpha", 2}}}, 2},
    Order{kProducts, true, false, 4, {0, 2, 3}, 3, {{{"beta", 1}}}, 1},
};

bool fits(const Order& order, const OverloadSet& set, const Arguments& arguments) {
  std::string_view name = set.name;
  if (name.back() == '_') {
    name.remove_suffix(1);
  }
  const bool named = std::any_of(order.names.begin(), order.names.end(), [&](const char* known) {
    return known != nullptr && name == known;
  });
  const bool face = order.both || order.method == set.method;
  if (!named || !face || arguments.positional != order.count) {
    return false;
  }
  for (int i = 0; i < order.tensor_count; ++i) {
    if (!is_tensor(arguments.items[order.tensors[static_cast<size_t>(i)]])) {
      return false;
    }
  }
  return true;
}

void warn(const OverloadSet& set) {
  const std::string text = "This overload of " + set.name +
                           " is deprecated. Consider using this one instead: " + set.name +
                           python_signature_text(set.signatures.front(), set.method);
  if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) < 0) {
    throw PythonError();
  }
}

}  // namespace

const Signature* choose_deprecated(const OverloadSet& set, const Arguments& arguments,
                                   Frame& frame) {
  for (const Order& order : kOrders) {
    if (!fits(order, set, arguments)) {
      continue;
    }
    std::vector<PyObject*> items;
    for (int i = 0; i < order.tensor_count; ++i) {
      items.push_back(arguments.items[order.tensors[static_cast<size_t>(i)]]);
    }
    const auto positional = static_cast<Py_ssize_t>(items.size());
    const Py_ssize_t given = arguments.keyword_count();
    Ref keywords = owned(PyTuple_New(given + order.number_count));
    for (Py_ssize_t i = 0; i < given; ++i) {
      PyTuple_SET_ITEM(keywords.get(), i, new_ref(arguments.keyword(i)));
      items.push_back(arguments.keyword_value(i));
    }
    for (int i = 0; i < order.number_count; ++i) {
      const auto& [name, position] = order.numbers[static_cast<size_t>(i)];
      PyTuple_SET_ITEM(keywords.get(), given + i, check(PyUnicode_InternFromString(name)));
      items.push_back(arguments.items[position]);
    }
    Mismatch mismatch;
    for (const Signature& signature : set.signatures) {
      if (match(set, signature, {items.data(), positional, keywords.get()}, frame, mismatch)) {
        warn(set);
        return &signature;
      }
      frame.reset();
    }
  }
  return nullptr;
}

}  // namespace rushlight::python
