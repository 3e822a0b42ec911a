// gradient: derivatives of sampled functions by differences of neighbours.
#include <rushlight/generated/functions.h>

#include <algorithm>

#include "ops/operator.h"

namespace rushlight {
namespace {

constexpr std::string_view kName = "torch.gradient ";

// The distance of neighbours along a dimension: a number, or the coordinates of the samples.
struct Spacing {
  Scalar step = Scalar(1);
  Tensor coordinates;
};

IntList all_dims(const Tensor& self) {
  IntList dims;
  for (int64_t dim = 0; dim < self.dim(); ++dim) {
    dims.push_back(dim);
  }
  return dims;
}

IntList dims_of(const Tensor& self, std::optional<int64_t> dim) {
  return dim ? IntList{*dim} : all_dims(self);
}

IntList wrapped_dims(const Tensor& self, IntArrayRef given) {
  IntList dims;
  for (int64_t dim : given) {
    const int64_t at = wrap_dim(dim, self.dim(), "gradient");
    if (std::find(dims.begin(), dims.end(), at) != dims.end()) {
      fail(ErrorKind::Runtime, "", "dim ", at, " appears multiple times in the list of dims");
    }
    dims.push_back(at);
  }
  return dims;
}

void check_input(const Tensor& self, const IntList& dims, int64_t edge_order) {
  if (self.dtype() == DType::UInt8) {
    fail(ErrorKind::Runtime, "", kName, "does not support uint8 input.");
  }
  if (edge_order != 1 && edge_order != 2) {
    fail(ErrorKind::Runtime, "", kName, "only supports edge_order=1 and edge_order=2.");
  }
  for (int64_t dim : dims) {
    if (self.size(dim) < edge_order + 1) {
      fail(ErrorKind::Runtime, "", kName,
           "expected each dimension size to be at least edge_order+1");
    }
  }
}

void check_count(size_t spacings, size_t dims) {
  if (spacings != dims) {
    fail(ErrorKind::Runtime, "", kName,
         "expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have "
         "the same length, but got a spacing argument of length ",
         spacings, " and a dim argument of length ", dims, ".");
  }
}

// Samples `count` from `start` along a dimension.
Tensor part(const Tensor& self, int64_t dim, int64_t start, int64_t count) {
  return narrow(self, dim, start, count);
}

// With a step h between samples: (f(x + h) - f(x - h)) / 2h, and one-sided at the ends.
Tensor even_difference(const Tensor& self, int64_t dim, const Scalar& step, int64_t edge_order) {
  const int64_t size = self.size(dim);
  const auto at = [&](int64_t i) { return part(self, dim, i, 1); };
  const auto over_step = [&](const Tensor& x) { return div(x, step); };
  Tensor first;
  Tensor last;
  if (edge_order == 1) {
    first = over_step(sub(at(1), at(0)));
    last = over_step(sub(at(size - 1), at(size - 2)));
  } else {
    const auto one_sided = [&](int64_t end, int64_t next, int64_t third) {
      const Tensor ends = add(mul(at(end), Scalar(-1.5)), mul(at(third), Scalar(-0.5)));
      return over_step(add(ends, mul(at(next), Scalar(2))));
    };
    first = one_sided(0, 1, 2);
    last = neg(one_sided(size - 1, size - 2, size - 3));
  }
  const Tensor across = sub(part(self, dim, 2, size - 2), part(self, dim, 0, size - 2));
  return cat({first, div(over_step(across), Scalar(2)), last}, dim);
}

// The same with uneven steps: the derivative of the parabola through three samples.
Tensor uneven_difference(const Tensor& self, int64_t dim, const Tensor& coordinates,
                         int64_t edge_order) {
  const int64_t size = self.size(dim);
  if (coordinates.dim() != 1 || coordinates.numel() != size) {
    fail(ErrorKind::Runtime, "", kName, "expected coordinates of ", size,
         " samples along dimension ", dim, ", got a tensor of shape ", coordinates.sizes());
  }
  IntList shape(static_cast<size_t>(self.dim()), 1);
  shape[static_cast<size_t>(dim)] = size - 1;
  const Tensor steps = reshape(diff(coordinates), shape);
  const auto step = [&](int64_t i, int64_t count) { return part(steps, dim, i, count); };
  const auto at = [&](int64_t i, int64_t count) { return part(self, dim, i, count); };
  const auto inner = size - 2;
  const Tensor before = step(0, inner);
  const Tensor after = step(1, inner);
  const Tensor both = add(before, after);
  Tensor middle = mul(at(0, inner), div(neg(after), mul(before, both)));
  middle = add(middle, mul(at(1, inner), div(sub(after, before), mul(before, after))));
  middle = add(middle, mul(at(2, inner), div(before, mul(after, both))));
  Tensor first;
  Tensor last;
  if (edge_order == 1) {
    first = div(sub(at(1, 1), at(0, 1)), step(0, 1));
    last = div(sub(at(size - 1, 1), at(size - 2, 1)), step(size - 2, 1));
  } else {
    // At the end itself: `near` is the step beside it, `far` the next one.
    const auto one_sided = [&](const Tensor& near, const Tensor& far, int64_t end, int64_t next,
                               int64_t third) {
      const Tensor sum_of = add(near, far);
      Tensor made = mul(at(end, 1), neg(div(add(near, sum_of), mul(near, sum_of))));
      made = add(made, mul(at(next, 1), div(sum_of, mul(near, far))));
      return sub(made, mul(at(third, 1), div(near, mul(far, sum_of))));
    };
    first = one_sided(step(0, 1), step(1, 1), 0, 1, 2);
    last = neg(one_sided(step(size - 2, 1), step(size - 3, 1), size - 1, size - 2, size - 3));
  }
  return cat({first, middle, last}, dim);
}

TensorList gradient_along(const Tensor& self, IntArrayRef given,
                          const std::vector<Spacing>& spacing, int64_t edge_order) {
  const IntList dims = wrapped_dims(self, given);
  check_input(self, dims, edge_order);
  TensorList made;
  for (size_t i = 0; i < dims.size(); ++i) {
    made.push_back(spacing[i].coordinates.defined()
                       ? uneven_difference(self, dims[i], spacing[i].coordinates, edge_order)
                       : even_difference(self, dims[i], spacing[i].step, edge_order));
  }
  return made;
}

std::vector<Spacing> alike(size_t count, const Scalar& step) {
  return std::vector<Spacing>(count, Spacing{step, Tensor()});
}

std::vector<Spacing> by_number(const std::vector<Scalar>& steps, size_t dims) {
  check_count(steps.size(), dims);
  std::vector<Spacing> made;
  for (const Scalar& step : steps) {
    made.push_back({step, Tensor()});
  }
  return made;
}

std::vector<Spacing> by_coordinates(const Tensor& self, const TensorList& given, size_t dims) {
  check_count(given.size(), dims);
  std::vector<Spacing> made;
  for (const Tensor& coordinates : given) {
    if (coordinates.device() != self.device()) {
      fail(ErrorKind::Runtime, "", kName,
           "expected each tensor to be on the same device, but got devices ",
           self.device().to_string(), " and ", coordinates.device().to_string(), "!");
    }
    made.push_back({Scalar(1), coordinates});
  }
  return made;
}

}  // namespace

RUSHLIGHT_OPERATORS(finite_difference) {
  op("gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, int edge_order=1) "
     "-> Tensor[]",
     kFunction)
      .doc("Derivatives along each dimension, or one, of a function sampled at equal steps.")
      .composition([](const Tensor& self, std::optional<Scalar> spacing, std::optional<int64_t> dim,
                      int64_t edge_order) -> TensorList {
        const IntList dims = dims_of(self, dim);
        return gradient_along(self, dims, alike(dims.size(), spacing.value_or(Scalar(1))),
                              edge_order);
      });
  op("gradient.scalararray(Tensor self, *, Scalar spacing, int[] dim, int edge_order=1) "
     "-> Tensor[]",
     kFunction)
      .doc("Derivatives along some dimensions, sampled at equal steps.")
      .composition([](const Tensor& self, Scalar spacing, IntArrayRef dim,
                      int64_t edge_order) -> TensorList {
        return gradient_along(self, dim, alike(dim.size(), spacing), edge_order);
      });
  op("gradient.array(Tensor self, *, int[] dim, int edge_order=1) -> Tensor[]", kFunction)
      .doc("Derivatives along some dimensions, sampled at steps of 1.")
      .composition([](const Tensor& self, IntArrayRef dim, int64_t edge_order) -> TensorList {
        return gradient_along(self, dim, alike(dim.size(), Scalar(1)), edge_order);
      });
  op("gradient.scalarrayint(Tensor self, *, Scalar[] spacing, int? dim=None, int edge_order=1) "
     "-> Tensor[]",
     kFunction)
      .doc("Derivatives with a step for each dimension.")
      .composition([](const Tensor& self, const std::vector<Scalar>& spacing,
                      std::optional<int64_t> dim, int64_t edge_order) -> TensorList {
        const IntList dims = dims_of(self, dim);
        return gradient_along(self, dims, by_number(spacing, dims.size()), edge_order);
      });
  op("gradient.scalarrayarray(Tensor self, *, Scalar[] spacing, int[] dim, int edge_order=1) "
     "-> Tensor[]",
     kFunction)
      .doc("Derivatives along some dimensions with a step for each.")
      .composition([](const Tensor& self, const std::vector<Scalar>& spacing, IntArrayRef dim,
                      int64_t edge_order) -> TensorList {
        return gradient_along(self, dim, by_number(spacing, dim.size()), edge_order);
      });
  op("gradient.tensorarrayint(Tensor self, *, Tensor[] spacing, int? dim=None, int edge_order=1) "
     "-> Tensor[]",
     kFunction)
      .doc("Derivatives with coordinates of the samples along each dimension.")
      .composition([](const Tensor& self, const TensorList& spacing, std::optional<int64_t> dim,
                      int64_t edge_order) -> TensorList {
        const IntList dims = dims_of(self, dim);
        return gradient_along(self, dims, by_coordinates(self, spacing, dims.size()), edge_order);
      });
  op("gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, int edge_order=1) "
     "-> Tensor[]",
     kFunction)
      .doc("Derivatives along some dimensions with coordinates of the samples.")
      .composition([](const Tensor& self, const TensorList& spacing, IntArrayRef dim,
                      int64_t edge_order) -> TensorList {
        return gradient_along(self, dim, by_coordinates(self, spacing, dim.size()), edge_order);
      });
}

}  // namespace rushlight
