// The reverse of views: gradients of partial views, and copies with a part replaced.
#include <rushlight/generated/functions.h>

#include <algorithm>

#include "kernels/copy.h"
#include "kernels/copy_add.h"
#include "kernels/element_type.h"
#include "ops/gradient.h"
#include "ops/operator.h"
#include "ops/views.h"
#include "tensor/geometry.h"

namespace rushlight {
namespace {

Tensor zeros_for(const Tensor& grad, IntArrayRef sizes) {
  return kernels::make_zeros(sizes, grad.dtype(), grad.device());
}

Tensor slice_back(const Tensor& grad, IntArrayRef sizes, int64_t dim, int64_t start, int64_t end,
                  int64_t step) {
  Tensor made = zeros_for(grad, sizes);
  kernels::copy(views::slice(made, dim, start, end, step), grad);
  return made;
}

Tensor select_back(const Tensor& grad, IntArrayRef sizes, int64_t dim, int64_t index) {
  Tensor made = zeros_for(grad, sizes);
  kernels::copy(views::select(made, dim, index), grad);
  return made;
}

Tensor diagonal_back(const Tensor& grad, IntArrayRef sizes, int64_t offset, int64_t dim1,
                     int64_t dim2) {
  Tensor made = zeros_for(grad, sizes);
  kernels::copy(views::diagonal(made, offset, dim1, dim2), grad);
  return made;
}

// Windows may share elements, so each position within the windows is added on its own.
Tensor unfold_back(const Tensor& grad, IntArrayRef sizes, int64_t dim, int64_t size, int64_t step) {
  Tensor made = zeros_for(grad, sizes);
  const Tensor windows = views::unfold(made, dim, size, step);
  if (step >= size) {
    kernels::copy(windows, grad);
    return made;
  }
  for (int64_t i = 0; i < size; ++i) {
    kernels::add_into(views::select(windows, -1, i), views::select(grad, -1, i));
  }
  return made;
}

// A geometry as as_strided takes it.
struct Placement {
  IntArrayRef sizes;
  IntArrayRef strides;
  int64_t offset;
};

bool may_overlap(const Placement& at) {
  IntList order;
  for (size_t d = 0; d < at.sizes.size(); ++d) {
    if (at.sizes[d] > 1) {
      order.push_back(static_cast<int64_t>(d));
    }
  }
  std::sort(order.begin(), order.end(),
            [&](int64_t a, int64_t b) { return at.strides[a] < at.strides[b]; });
  int64_t reach = 0;
  for (int64_t d : order) {
    if (at.strides[d] <= reach) {
      return true;
    }
    reach += (at.sizes[d] - 1) * at.strides[d];
  }
  return false;
}

// Adds `values` to the elements of `memory` that `at` names, each as often as it is named.
void add_placed(const Tensor& memory, const Placement& at, const Tensor& values) {
  if (!may_overlap(at)) {
    kernels::copy(make_view(memory, at.sizes, at.strides, at.offset), values);
    return;
  }
  const Tensor flat = kernels::as_contiguous(values);
  const size_t rank = at.sizes.size();
  const int64_t inner = rank == 0 ? 1 : at.sizes[rank - 1];
  const int64_t stride = rank == 0 ? 0 : at.strides[rank - 1];
  for (int64_t row = 0; row * inner < flat.numel(); ++row) {
    int64_t rest = row;
    int64_t offset = at.offset;
    for (size_t d = rank - (rank == 0 ? 0 : 1); d-- > 0;) {
      offset += rest % at.sizes[d] * at.strides[d];
      rest /= at.sizes[d];
    }
    for (int64_t i = 0; i < inner; ++i) {
      kernels::add_into(make_view(memory, {}, {}, offset + i * stride),
                        make_view(flat, {}, {}, flat.storage_offset() + row * inner + i));
    }
  }
}

void check_placement(const Placement& at) {
  if (at.sizes.size() != at.strides.size() || at.offset < 0 ||
      std::any_of(at.strides.begin(), at.strides.end(), [](int64_t s) { return s < 0; })) {
    fail(ErrorKind::Runtime, "as_strided", "sizes ", at.sizes, ", strides ", at.strides,
         " and storage offset ", at.offset, " do not fit each other");
  }
}

int64_t last_element(const Placement& at) {
  int64_t last = at.offset;
  for (size_t d = 0; d < at.sizes.size(); ++d) {
    last += std::max<int64_t>(at.sizes[d] - 1, 0) * at.strides[d];
  }
  return last;
}

// What `shown` reads of memory that holds `values` at `placed` and zeros elsewhere. Both offsets
// count from the same storage. Where `share`, elements that `shown` names several times are divided
// by how often.
Tensor move_placed(const Tensor& values, Placement placed, Placement shown, bool share) {
  check_placement(placed);
  check_placement(shown);
  const int64_t base = std::min(placed.offset, shown.offset);
  placed.offset -= base;
  shown.offset -= base;
  const int64_t length = std::max(last_element(placed), last_element(shown)) + 1;
  if (values.is_meta()) {
    return make_tensor(shown.sizes, values.dtype(), values.device());
  }
  const Tensor memory = kernels::make_zeros({length}, values.dtype());
  add_placed(memory, placed, values);
  if (share && may_overlap(shown)) {
    const Tensor counts = kernels::make_zeros({length}, values.dtype());
    add_placed(counts, shown, kernels::make_filled(shown.sizes, 1, values.dtype()));
    kernels::by_real_dtype(values.dtype(), "as_strided", [&]<typename T>(T) {
      T* sums = static_cast<T*>(memory.data());
      const T* times = static_cast<const T*>(counts.data());
      for (int64_t i = 0; i < length; ++i) {
        const auto count = kernels::load_value(times[i]);
        if (static_cast<double>(count) > 1) {
          sums[i] = kernels::store_value<T>(kernels::load_value(sums[i]) / count);
        }
      }
    });
  }
  return kernels::contiguous_copy(make_view(memory, shown.sizes, shown.strides, shown.offset));
}

Tensor as_strided_back(const Tensor& grad, IntArrayRef input_sizes, IntArrayRef input_strides,
                       int64_t input_offset, IntArrayRef stride, int64_t offset) {
  return move_placed(grad, {grad.sizes(), stride, offset},
                     {input_sizes, input_strides, input_offset}, true);
}

Tensor as_strided_read(const Tensor& self, IntArrayRef self_strides, int64_t self_offset,
                       IntArrayRef size, IntArrayRef stride, int64_t offset) {
  return move_placed(self, {self.sizes(), self_strides, self_offset}, {size, stride, offset},
                     false);
}

// A copy of `self` whose part `part(copy)` is replaced.
template <typename F>
Tensor with_part(const Tensor& self, const Tensor& src, std::string_view op, F&& part) {
  Tensor made = make_strided(self.sizes(), preserved_strides(self.sizes(), self.strides()),
                             self.dtype(), self.device());
  const Tensor target = part(made);
  if (target.sizes() != src.sizes()) {
    fail(ErrorKind::Runtime, op,
         "expected src to have a size equal to the slice of self. src size = ", src.sizes(),
         ", slice size = ", target.sizes());
  }
  kernels::copy(made, self);
  kernels::copy(target, src);
  return made;
}

Tensor as_strided_replace(const Tensor& self, const Tensor& src, IntArrayRef size,
                          IntArrayRef stride, std::optional<int64_t> offset) {
  // The copy has the layout of the storage that the strides refer to.
  const Tensor whole =
      make_view(self, {static_cast<int64_t>(self.storage()->bytes) / self.element_size()}, {1}, 0);
  const Tensor memory = kernels::contiguous_copy(whole);
  const Tensor target =
      views::as_strided(memory, size, stride, offset.value_or(self.storage_offset()));
  if (target.sizes() != src.sizes()) {
    fail(ErrorKind::Runtime, "as_strided_scatter",
         "expected src to have a size equal to the slice of self. src size = ", src.sizes(),
         ", slice size = ", target.sizes());
  }
  kernels::copy(target, src);
  return make_view(memory, self.sizes(), self.strides(), self.storage_offset());
}

Tensor zeros_like_src(Gradient& g) {
  return zeros(g.sizes(1), TensorOptions(g.grad().dtype()).device(g.grad().device()));
}

}  // namespace

RUSHLIGHT_OPERATORS(view_scatter) {
  op("slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, "
     "SymInt step) -> Tensor",
     kInternal)
      .doc("The gradient of slice.")
      .kernel(slice_back)
      .gradient("", [](Gradient& g) {
        g.set(0, slice(g.grad(), g.integer(2), g.integer(3), g.integer(4), g.integer(5)));
      });
  op("select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor",
     kInternal)
      .doc("The gradient of select.")
      .kernel(select_back)
      .gradient("", [](Gradient& g) { g.set(0, select(g.grad(), g.integer(2), g.integer(3))); });
  op("diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2) "
     "-> Tensor",
     kInternal)
      .doc("The gradient of diagonal.")
      .kernel(diagonal_back)
      .gradient("", [](Gradient& g) {
        g.set(0, diagonal(g.grad(), g.integer(2), g.integer(3), g.integer(4)));
      });
  op("unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor",
     kInternal)
      .doc("The gradient of unfold.")
      .kernel(unfold_back)
      .gradient("", [](Gradient& g) {
        g.set(0, unfold(g.grad(), g.integer(2), g.integer(3), g.integer(4)));
      });
  op("_as_strided_backward(Tensor grad, int[] input_sizes, int[] input_strides, int input_offset, "
     "int[] stride, int offset) -> Tensor",
     kInternal)
      .by_parts()
      .doc("The gradient of as_strided.")
      .kernel(as_strided_back)
      .gradient("", [](Gradient& g) {
        g.set(0, _as_strided_read(g.grad(), g.ints(2), g.integer(3), g.sizes(0), g.ints(4),
                                  g.integer(5)));
      });
  op("_as_strided_read(Tensor self, int[] self_strides, int self_offset, int[] size, int[] stride, "
     "int offset) -> Tensor",
     kInternal)
      .by_parts()
      .doc("What as_strided shows of memory that holds `self` with these strides.")
      .kernel(as_strided_read)
      .gradient("", [](Gradient& g) {
        g.set(0, _as_strided_backward(g.grad(), g.sizes(0), g.ints(1), g.integer(2), g.ints(4),
                                      g.integer(5)));
      });
  op("slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, "
     "SymInt step=1) -> Tensor",
     kFunction | kMethod | kOut)
      .doc("A copy of `self` with a slice of one dimension replaced by `src`.")
      .kernel([](const Tensor& self, const Tensor& src, int64_t dim, std::optional<int64_t> start,
                 std::optional<int64_t> end, int64_t step) {
        return with_part(self, src, "slice_scatter", [&](const Tensor& made) {
          return views::slice(made, dim, start, end, step);
        });
      })
      .gradient("", [](Gradient& g) {
        const auto start = g.is_none(3) ? std::nullopt : std::optional(g.integer(3));
        const auto end = g.is_none(4) ? std::nullopt : std::optional(g.integer(4));
        if (g.needs(0)) {
          g.set(0,
                slice_scatter(g.grad(), zeros_like_src(g), g.integer(2), start, end, g.integer(5)));
        }
        g.set(1, slice(g.grad(), g.integer(2), start, end, g.integer(5)));
      });
  op("select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor",
     kFunction | kMethod | kOut)
      .doc("A copy of `self` with one index of a dimension replaced by `src`.")
      .kernel([](const Tensor& self, const Tensor& src, int64_t dim, int64_t index) {
        return with_part(self, src, "select_scatter",
                         [&](const Tensor& made) { return views::select(made, dim, index); });
      })
      .gradient("", [](Gradient& g) {
        if (g.needs(0)) {
          g.set(0, select_scatter(g.grad(), zeros_like_src(g), g.integer(2), g.integer(3)));
        }
        g.set(1, select(g.grad(), g.integer(2), g.integer(3)));
      });
  op("diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
     kFunction | kMethod | kOut)
      .doc("A copy of `self` with a diagonal replaced by `src`.")
      .kernel(
          [](const Tensor& self, const Tensor& src, int64_t offset, int64_t dim1, int64_t dim2) {
            return with_part(self, src, "diagonal_scatter", [&](const Tensor& made) {
              return views::diagonal(made, offset, dim1, dim2);
            });
          })
      .gradient("", [](Gradient& g) {
        if (g.needs(0)) {
          g.set(0, diagonal_scatter(g.grad(), zeros_like_src(g), g.integer(2), g.integer(3),
                                    g.integer(4)));
        }
        g.set(1, diagonal(g.grad(), g.integer(2), g.integer(3), g.integer(4)));
      });
  op("as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, "
     "SymInt? storage_offset=None) -> Tensor",
     kFunction | kMethod | kOut)
      .doc("A copy of `self` with the elements that as_strided would show replaced by `src`.")
      .kernel(as_strided_replace)
      .gradient("self.layout", [](Gradient& g) {
        const Tensor self = g.tensor(0);
        const int64_t offset = g.is_none(4) ? self.storage_offset() : g.integer(4);
        const Tensor seen = _as_strided_read(g.grad(), self.strides(), self.storage_offset(),
                                             g.ints(2), g.ints(3), offset);
        g.set(1, seen);
        g.set(0, sub(g.grad(), _as_strided_backward(seen, self.sizes(), self.strides(),
                                                    self.storage_offset(), g.ints(3), offset)));
      });
}

}  // namespace rushlight
