#include "indexing.h"

#include <rushlight/generated/functions.h>

#include <limits>

#include "from_data.h"
#include "module.h"
#include "ops/invocation.h"

namespace rushlight::python {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kManyElements = 4096;  // from here on other Python threads may run meanwhile

bool is_integer(PyObject* object) {
  return PyLong_Check(object) && !PyBool_Check(object);
}

int64_t integer_of(PyObject* object) {
  int over = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object, &over);
  if (over != 0) {
    fail(ErrorKind::Value, "", "Overflow when unpacking long long");
  }
  if (value == -1 && PyErr_Occurred()) {
    throw PythonError();
  }
  return value;
}

Tensor select_at(const Tensor& tensor, int64_t dim, int64_t index, int64_t shown_dim) {
  const int64_t size = tensor.sizes()[static_cast<size_t>(dim)];
  if (index < -size || index >= size) {
    fail(ErrorKind::Index, "", "index ", index, " is out of bounds for dimension ", shown_dim,
         " with size ", size);
  }
  return select(tensor, dim, index);
}

// One bound of a slice: an integer, or anything with __index__ (0-dim tensors too).
int64_t bound_of(PyObject* object, int64_t missing) {
  if (object == Py_None) {
    return missing;
  }
  if (PyIndex_Check(object) == 0) {
    fail(ErrorKind::Type, "", "slice indices must be integers or None or have an __index__ method");
  }
  const Ref number = owned(PyNumber_Index(object));
  int over = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.get(), &over);
  if (over != 0) {
    return over > 0 ? kMost : -kMost;
  }
  return value;
}

Tensor slice_at(const Tensor& tensor, int64_t dim, PyObject* object) {
  auto* part = reinterpret_cast<PySliceObject*>(object);
  const int64_t step = bound_of(part->step, 1);
  if (step == 0) {
    fail(ErrorKind::Value, "", "slice step cannot be zero");
  }
  if (step < 0) {
    fail(ErrorKind::Value, "", "step must be greater than zero");
  }
  if (tensor.dim() == 0) {
    fail(ErrorKind::Index, "", "slice() cannot be applied to a 0-dim tensor.");
  }
  const int64_t start = bound_of(part->start, 0);
  const int64_t stop = bound_of(part->stop, kMost);
  if (step == 1 && start == 0 && stop == kMost) {
    return tensor;
  }
  return slice(tensor, dim, start, stop, step);
}

bool is_mask(const Tensor& index) {
  return index.dtype() == DType::Bool || index.dtype() == DType::UInt8;
}

// How many dimensions of the tensor an item stands for.
int64_t dimensions_of(PyObject* item) {
  if (item == Py_None || item == Py_Ellipsis || PyBool_Check(item)) {
    return 0;
  }
  if (is_tensor(item)) {
    return is_mask(tensor_of(item)) ? tensor_of(item).dim() : 1;
  }
  return 1;
}

[[noreturn]] void refuse(PyObject* item) {
  const char* full = Py_TYPE(item)->tp_name;
  fail(ErrorKind::Index, "",
       "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
       "indices (got ",
       full, ")");
}

// Applies items from left to right; `dim_` is the dimension of the view that the next one meets.
class Builder {
 public:
  Builder(const Tensor& self, int64_t specified)
      : view_(self), rank_(self.dim()), specified_(specified) {
    if (specified > rank_) {
      if (rank_ == 0) {
        fail(ErrorKind::Index, "",
             "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
             "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number");
      }
      fail(ErrorKind::Index, "", "too many indices for tensor of dimension ", rank_);
    }
  }

  void apply(PyObject* item) {
    if (is_integer(item)) {
      return choose(integer_of(item));
    }
    if (PySlice_Check(item)) {
      view_ = slice_at(view_, dim_, item);
      ++dim_;
      ++shown_;
      return;
    }
    if (item == Py_Ellipsis) {
      const int64_t skipped = rank_ - specified_;
      dim_ += skipped;
      shown_ += skipped;
      specified_ = rank_;  // a second one stands for nothing
      return;
    }
    if (item == Py_None) {
      view_ = unsqueeze(view_, dim_);
      ++dim_;
      return;
    }
    if (PyBool_Check(item)) {
      return keep_or_drop(item == Py_True);
    }
    apply_other(item);
  }

  Subscript finish() {
    while (!indices_.empty() && !indices_.back().defined()) {
      indices_.pop_back();
    }
    return {std::move(view_), std::move(indices_)};
  }

 private:
  void choose(int64_t index) {
    view_ = select_at(view_, dim_, index, shown_);
    ++shown_;
  }

  // A single bool: a new dimension of size one or zero.
  void keep_or_drop(bool keep) {
    view_ = unsqueeze(view_, dim_);
    const Tensor mask = make_tensor({1}, DType::Bool);
    write_element(mask.data(), DType::Bool, keep);
    record(mask);
  }

  void apply_other(PyObject* item) {
    if (is_tensor(item)) {
      return apply_tensor(tensor_of(item));
    }
    if (PySequence_Check(item) && !PyDict_Check(item) && !is_numpy_scalar(item)) {
      return apply_tensor(index_from_sequence(item));
    }
    if (PyIndex_Check(item)) {
      const Ref number(PyNumber_Index(item));
      if (number) {
        return choose(integer_of(number.get()));
      }
      PyErr_Clear();
    }
    refuse(item);
  }

  void apply_tensor(const Tensor& index) {
    if (index.dim() == 0 && !is_mask(index) && is_integral(index.dtype(), false) &&
        !index.is_meta()) {
      return choose(index.item().to_int());
    }
    if (index.dim() == 0 && is_mask(index)) {
      return keep_or_drop(index.item().to_bool());
    }
    shown_ += is_mask(index) ? index.dim() : 1;
    record(index);
  }

  void record(Tensor index) {
    indices_.resize(static_cast<size_t>(dim_));
    indices_.push_back(std::move(index));
    ++dim_;
  }

  Tensor view_;
  TensorList indices_;
  int64_t rank_;
  int64_t specified_;
  int64_t dim_ = 0;
  int64_t shown_ = 0;  // the dimension of the tensor itself, for messages
};

// NumPy's old rule: a list stands for a tuple where it is short and holds more than numbers.
bool stands_for_tuple(PyObject* index) {
  if (is_tensor(index) || !PySequence_Check(index) || is_numpy_array(index)) {
    return false;
  }
  const Py_ssize_t size = PySequence_Size(index);
  if (size < 0) {
    PyErr_Clear();
    return false;
  }
  constexpr Py_ssize_t kMostDimensions = 32;
  if (size >= kMostDimensions) {
    return false;
  }
  for (Py_ssize_t i = 0; i < size; ++i) {
    const Ref item(PySequence_GetItem(index, i));
    if (!item) {
      PyErr_Clear();
      return false;
    }
    if (is_tensor(item.get()) || PySequence_Check(item.get()) || PySlice_Check(item.get()) ||
        item.get() == Py_Ellipsis || item.get() == Py_None) {
      warn(
          "Using a non-tuple sequence for multidimensional indexing is deprecated and will be "
          "changed in pytorch 2.9; use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will "
          "be interpreted as tensor index, x[torch.tensor(seq)], which will result either in an "
          "error or a different result");
      return true;
    }
  }
  return false;
}

PyObject* get_item(PyObject* self, PyObject* index) {
  return guarded([&] {
    const Tensor& tensor = tensor_of(self);
    if (is_integer(index) && tensor.dim() > 0) {
      return wrap(select_at(tensor, 0, integer_of(index), 0));
    }
    if (PySlice_Check(index)) {
      const Tensor part = slice_at(tensor, 0, index);
      return wrap(part.is_same(tensor) ? alias(tensor) : part);
    }
    Subscript found = apply_subscript(tensor, index);
    if (found.indices.empty()) {
      // Always a new tensor, even where nothing was taken away.
      return wrap(found.view.is_same(tensor) ? alias(tensor) : std::move(found.view));
    }
    Tensor result;
    {
      const GilRelease unlocked(found.view.numel() > kManyElements);
      result = rushlight::index(found.view, found.indices);
    }
    return wrap(std::move(result));
  });
}

// Leading dimensions of size one say nothing in an assignment.
Tensor without_leading_ones(const Tensor& value) {
  size_t first = 0;
  while (first < value.sizes().size() && value.sizes()[first] == 1) {
    ++first;
  }
  return first == 0 ? value : reshape(value, value.sizes().subspan(first));
}

void check_expands(const Tensor& value, const Tensor& target) {
  const int64_t extra = target.dim() - value.dim();
  for (int64_t i = 0; i < value.dim() && extra >= 0; ++i) {
    const int64_t size = value.sizes()[static_cast<size_t>(i)];
    const int64_t wanted = target.sizes()[static_cast<size_t>(i + extra)];
    if (size != wanted && size != 1) {
      fail(ErrorKind::Runtime, "", "The expanded size of the tensor (", wanted,
           ") must match the existing size (", size, ") at non-singleton dimension ", i + extra,
           ".  Target sizes: ", target.sizes(), ".  Tensor sizes: ", value.sizes());
    }
  }
}

void write_tensor(const Subscript& target, const Tensor& value) {
  const Tensor source = without_leading_ones(value);
  if (target.indices.empty()) {
    check_expands(source, target.view);
  }
  const GilRelease unlocked(target.view.numel() > kManyElements);
  if (target.indices.empty()) {
    copy_(target.view, source);
  } else {
    index_put_(target.view, target.indices, source);
  }
}

void write_number(const Subscript& target, const Scalar& number) {
  const GilRelease unlocked(target.view.numel() > kManyElements);
  if (target.indices.empty()) {
    fill_(target.view, number);
  } else {
    index_put_(target.view, target.indices, full({}, number, target.view.options()));
  }
}

int set_item(PyObject* self, PyObject* index, PyObject* value) {
  return guarded_int([&] {
    const Tensor& tensor = tensor_of(self);
    Scalar number;
    const bool from_tensor = is_tensor(value);
    if (!from_tensor && !to_number(value, &number)) {
      fail(ErrorKind::Type, "", "can't assign a ", Py_TYPE(value)->tp_name, " to a torch.",
           scalar_type_name(tensor.dtype()), "Tensor");
    }
    if (index == Py_False) {
      return 0;
    }
    const Subscript target = is_integer(index) && tensor.dim() > 0
                                 ? Subscript{select_at(tensor, 0, integer_of(index), 0), {}}
                                 : apply_subscript(tensor, index);
    if (from_tensor) {
      write_tensor(target, tensor_of(value));
    } else {
      write_number(target, number);
    }
    return 0;
  });
}

void fill(PyObject*) {
  subscript_hook = get_item;
  assign_subscript_hook = set_item;
}

const Part part(Stage::Members, fill);

}  // namespace

Subscript apply_subscript(const Tensor& self, PyObject* index) {
  Ref items;
  if (PyTuple_Check(index)) {
    items = Ref::share(index);
  } else if (stands_for_tuple(index)) {
    items = owned(PySequence_Tuple(index));
  } else {
    items = owned(PyTuple_Pack(1, index));
  }
  const Py_ssize_t count = PyTuple_GET_SIZE(items.get());
  int64_t specified = 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    specified += dimensions_of(PyTuple_GET_ITEM(items.get(), i));
  }
  Builder builder(self, specified);
  for (Py_ssize_t i = 0; i < count; ++i) {
    builder.apply(PyTuple_GET_ITEM(items.get(), i));
  }
  return builder.finish();
}

}  // namespace rushlight::python
