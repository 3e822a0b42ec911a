// Counting into bins.
#include <rushlight/generated/functions.h>

#include <algorithm>
#include <cmath>

#include "kernels/copy.h"
#include "kernels/counting.h"
#include "ops/missing_gradient.h"
#include "ops/operator.h"

namespace rushlight {
namespace {

Tensor histc_of(const Tensor& self, int64_t bins, Scalar min, Scalar max) {
  if (!self.is_floating_point()) {
    fail(ErrorKind::NotImplemented, "", "\"histogram_cpu\" not implemented for '",
         scalar_type_name(self.dtype()), "'");
  }
  if (bins <= 0) {
    fail(ErrorKind::Runtime, "", "torch.histc(): bins must be > 0, but got ", bins);
  }
  double low = min.to_double();
  double high = max.to_double();
  if (self.is_meta()) {
    return make_tensor({bins}, self.dtype(), self.device());
  }
  const DoorGuard guard(0, ~0U);
  if (low == high && self.numel() != 0) {
    const auto [least, greatest] = aminmax(self);
    low = least.item().to_double();
    high = greatest.item().to_double();
  }
  if (low == high) {
    low -= 1;
    high += 1;
  }
  if (!std::isfinite(low) || !std::isfinite(high)) {
    fail(ErrorKind::Runtime, "", "torch.histc: range of [", low, ", ", high, "] is not finite");
  }
  if (low > high) {
    fail(ErrorKind::Runtime, "", "torch.histc: max must be larger than min");
  }
  return kernels::count_in_bins(self, bins, low, high);
}

// The messages of both operators name the general one.
constexpr std::string_view kName = "torch.histogramdd: ";

void check_input(const Tensor& self) {
  if (self.dtype() != DType::Float32 && self.dtype() != DType::Float64) {
    fail(ErrorKind::NotImplemented, "", "\"histogramdd\" not implemented for '",
         scalar_type_name(self.dtype()), "'");
  }
}

void check_weight(const Tensor& points, const Tensor& weight) {
  if (!weight.defined()) {
    return;
  }
  const IntArrayRef expected(points.sizes().data(), points.sizes().size() - 1);
  if (weight.sizes() != expected) {
    fail(ErrorKind::Runtime, "", kName,
         "if weight tensor is provided it should have the same shape as the input tensor excluding "
         "its innermost dimension, but got input with shape ",
         points.sizes(), " and weight with shape ", weight.sizes());
  }
  if (weight.dtype() != points.dtype()) {
    fail(ErrorKind::Runtime, "", kName,
         "if weight tensor is provided, input tensor and weight tensor should have the same dtype, "
         "but got input(",
         points.dtype(), "), and weight(", weight.dtype(), ")");
  }
}

void check_points(const Tensor& points, size_t dimensions) {
  if (points.dim() < 2) {
    fail(ErrorKind::Runtime, "", kName, "input tensor should have at least 2 dimensions");
  }
  if (points.size(-1) != static_cast<int64_t>(dimensions)) {
    fail(ErrorKind::Runtime, "",
         "histogramdd: The size of bins must be equal to the innermost dimension of the input.");
  }
}

// Where the bins of a dimension begin and end: as given, else the least and greatest coordinate.
std::pair<double, double> range_of(const Tensor& points, int64_t dim,
                                   const std::optional<std::vector<double>>& range) {
  double low = 0;
  double high = 1;
  if (range) {
    low = (*range)[static_cast<size_t>(2 * dim)];
    high = (*range)[static_cast<size_t>(2 * dim + 1)];
  } else if (points.numel() != 0) {
    const Tensor line = select(points, -1, dim);
    low = amin(line).item().to_double();
    high = amax(line).item().to_double();
  }
  if (!std::isfinite(low) || !std::isfinite(high)) {
    fail(ErrorKind::Runtime, "", kName, "dimension ", dim, "'s range [", low, ", ", high,
         "] is not finite");
  }
  if (low > high) {
    fail(ErrorKind::Runtime, "", kName, "min should not exceed max, but got min ", low, " max ",
         high, " for dimension ", dim);
  }
  return low == high ? std::pair(low - 0.5, high + 0.5) : std::pair(low, high);
}

TensorList even_edges(const Tensor& points, IntArrayRef bins,
                      const std::optional<std::vector<double>>& range) {
  check_points(points, bins.size());
  if (range && range->size() != 2 * bins.size()) {
    fail(ErrorKind::Runtime, "", kName, "for a ", bins.size(),
         "-dimensional histogram range should have ", 2 * bins.size(), " elements, but got ",
         range->size());
  }
  TensorList edges;
  for (size_t dim = 0; dim < bins.size(); ++dim) {
    if (bins[dim] <= 0) {
      fail(ErrorKind::Runtime, "", "torch.histogram(): bins must be > 0, but got ", bins[dim],
           " for dimension ", dim);
    }
    const auto [low, high] = range_of(points, static_cast<int64_t>(dim), range);
    edges.push_back(linspace(Scalar(low), Scalar(high), bins[dim] + 1, points.options()));
  }
  return edges;
}

void check_edges(const Tensor& points, const TensorList& edges) {
  check_points(points, edges.size());
  for (size_t dim = 0; dim < edges.size(); ++dim) {
    const Tensor& line = edges[dim];
    if (line.dim() != 1) {
      fail(ErrorKind::Runtime, "", kName, "bins tensor should have one dimension, but got ",
           line.dim(), " dimensions in the bins tensor for dimension ", dim);
    }
    if (line.dtype() != points.dtype()) {
      fail(ErrorKind::Runtime, "", kName,
           "input tensor and bins tensors should have the same dtype, but got input with dtype ",
           points.dtype(), " and bins for dimension ", dim, " with dtype ", line.dtype());
    }
    if (line.numel() < 2) {
      fail(ErrorKind::Runtime, "", "torch.histogram(): bins must be > 0, but got ",
           std::max<int64_t>(line.numel() - 1, 0), " for dimension ", dim);
    }
  }
}

std::vector<double> numbers_of(const Tensor& x) {
  const Tensor wide = contiguous(to(x, DType::Float64));
  const auto* data = static_cast<const double*>(wide.data());
  return {data, data + wide.numel()};
}

// The bin of a coordinate, of which the last holds its end too; -1 outside and for NaN.
int64_t bin_of(const std::vector<double>& edges, double x) {
  if (!(x >= edges.front() && x <= edges.back())) {
    return -1;
  }
  const auto above = std::upper_bound(edges.begin(), edges.end(), x) - edges.begin();
  return std::min<int64_t>(above, static_cast<int64_t>(edges.size()) - 1) - 1;
}

// The weights of the points in each cell, or their number.
Tensor counted(const Tensor& points, const TensorList& edges, const Tensor& weight) {
  IntList sizes;
  std::vector<std::vector<double>> lines;
  for (const Tensor& line : edges) {
    sizes.push_back(line.numel() - 1);
    lines.push_back(numbers_of(line));
  }
  const Tensor made = kernels::make_zeros(sizes, DType::Float64);
  const std::vector<double> values = numbers_of(points);
  const std::vector<double> weights = weight.defined() ? numbers_of(weight) : std::vector<double>();
  auto* cells = static_cast<double*>(made.data());
  const size_t dimensions = lines.size();
  for (size_t point = 0; point < values.size() / dimensions; ++point) {
    int64_t cell = 0;
    for (size_t dim = 0; dim < dimensions && cell >= 0; ++dim) {
      const int64_t bin = bin_of(lines[dim], values[point * dimensions + dim]);
      cell = bin < 0 ? -1 : cell * sizes[dim] + bin;
    }
    if (cell >= 0) {
      cells[cell] += weights.empty() ? 1.0 : weights[point];
    }
  }
  return made;
}

// The shares of the whole by the sizes of the cells.
Tensor densities(const Tensor& counts, const TensorList& edges) {
  Tensor made = div(counts, sum(counts));
  for (size_t dim = 0; dim < edges.size(); ++dim) {
    IntList shape(edges.size(), 1);
    shape[dim] = -1;
    made = div(made, reshape(diff(to(edges[dim], DType::Float64)), shape));
  }
  return made;
}

Tensor histogram_of(const Tensor& points, const TensorList& edges, const Tensor& weight,
                    bool density) {
  check_input(points);
  check_weight(points, weight);
  const Tensor counts = counted(points, edges, weight);
  return to(density ? densities(counts, edges) : counts, points.dtype());
}

// Points of one coordinate.
Tensor as_points(const Tensor& x) {
  return x.defined() ? reshape(x, {-1, 1}) : x;
}

std::tuple<Tensor, Tensor> histogram_edges(const Tensor& self, const Tensor& bins,
                                           const Tensor& weight, bool density) {
  const DoorGuard guard(0, ~0U);
  const Tensor points = as_points(self);
  check_edges(points, {bins});
  const Tensor flat = weight.defined() ? reshape(weight, {-1}) : weight;
  return {histogram_of(points, {bins}, flat, density), clone(bins)};
}

std::tuple<Tensor, Tensor> histogram_even(const Tensor& self, int64_t bins,
                                          const std::optional<std::vector<double>>& range,
                                          const Tensor& weight, bool density) {
  const DoorGuard guard(0, ~0U);
  check_input(self);
  const Tensor points = as_points(self);
  const TensorList edges = even_edges(points, {bins}, range);
  const Tensor flat = weight.defined() ? reshape(weight, {-1}) : weight;
  return {histogram_of(points, edges, flat, density), edges[0]};
}

std::tuple<Tensor, TensorList> cells_even(const Tensor& self, IntArrayRef bins,
                                          const std::optional<std::vector<double>>& range,
                                          const Tensor& weight, bool density) {
  const DoorGuard guard(0, ~0U);
  check_input(self);
  TensorList edges = even_edges(self, bins, range);
  Tensor made = histogram_of(self, edges, weight, density);
  return {made, std::move(edges)};
}

std::tuple<Tensor, TensorList> cells_alike(const Tensor& self, int64_t bins,
                                           const std::optional<std::vector<double>>& range,
                                           const Tensor& weight, bool density) {
  if (self.dim() < 2) {
    fail(ErrorKind::Runtime, "", kName, "input tensor should have at least 2 dimensions");
  }
  return cells_even(self, IntList(static_cast<size_t>(self.size(-1)), bins), range, weight,
                    density);
}

std::tuple<Tensor, TensorList> cells_edges(const Tensor& self, const TensorList& bins,
                                           const std::optional<std::vector<double>>&,
                                           const Tensor& weight, bool density) {
  const DoorGuard guard(0, ~0U);
  check_edges(self, bins);
  return {histogram_of(self, bins, weight, density), bins};
}

}  // namespace

RUSHLIGHT_OPERATORS(histogram) {
  op("histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
     kFunction | kMethod | kOut | kLeafOut)
      .doc("How many elements lie in each of `bins` equal bins between min and max.")
      .kernel(histc_of)
      .not_differentiable();
  op("histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) "
     "-> (Tensor hist, Tensor bin_edges)",
     kFunction | kMethod | kOut)
      .doc("How many elements lie between neighbouring edges, of which the last counts too.")
      .kernel(histogram_edges)
      .gradient("", missing_gradient);
  op("histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, "
     "bool density=False) -> (Tensor hist, Tensor bin_edges)",
     kFunction | kMethod | kOut)
      .doc("How many elements lie in each of `bins` equal bins, and where those begin and end.")
      .kernel(histogram_even)
      .gradient("", missing_gradient);
  op("histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, "
     "bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
     kFunction)
      .doc("How many points (..., D) lie in each cell of a grid of equal cells.")
      .kernel(cells_even)
      .not_differentiable();
  op("histogramdd.int_bins(Tensor self, int bins, float[]? range=None, Tensor? weight=None, "
     "bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
     kFunction)
      .doc("The same with as many cells in each dimension.")
      .kernel(cells_alike)
      .not_differentiable();
  op("histogramdd.TensorList_bins(Tensor self, Tensor[] bins, float[]? range=None, "
     "Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
     kFunction)
      .doc("The same between given edges.")
      .kernel(cells_edges)
      .not_differentiable();
}

}  // namespace rushlight
