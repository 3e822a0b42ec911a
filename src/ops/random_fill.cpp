#include "ops/random_fill.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "ops/elementwise.h"
#include "tensor/geometry.h"

namespace rushlight {
namespace {

// A number as PyTorch's messages write it.
std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", value);
  return text;
}

// The same elements with dimensions in the order of memory, the largest stride first.
Tensor in_memory_order(const Tensor& tensor) {
  std::vector<size_t> order(tensor.sizes().size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return tensor.strides()[a] > tensor.strides()[b]; });
  IntList sizes;
  IntList strides;
  for (const size_t d : order) {
    sizes.push_back(tensor.sizes()[d]);
    strides.push_back(tensor.strides()[d]);
  }
  return make_view(tensor, sizes, strides, tensor.storage_offset());
}

// The C++ type's name, which PyTorch's messages use for bounds.
std::string_view bound_type_name(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return "bool";
    case DType::UInt8:
      return "unsigned char";
    case DType::Int8:
      return "signed char";
    case DType::Int16:
      return "short";
    case DType::Int32:
      return "int";
    case DType::Int64:
      return "long";
    case DType::UInt16:
      return "unsigned short";
    case DType::UInt32:
      return "unsigned int";
    case DType::UInt64:
      return "unsigned long";
    case DType::Float16:
      return "c10::Half";
    case DType::BFloat16:
      return "c10::BFloat16";
    case DType::Float64:
      return "double";
    default:
      return "float";
  }
}

double largest_of(DType dtype) {
  switch (dtype) {
    case DType::Float16:
      return 65504;
    case DType::BFloat16:
      return 0x1.fep127;
    case DType::Float64:
      return std::numeric_limits<double>::max();
    default:
      return std::numeric_limits<float>::max();
  }
}

void check_uniform_bound(double value, std::string_view name, DType dtype) {
  const double most = largest_of(dtype);
  if (!(value >= -most && value <= most)) {
    fail(ErrorKind::Runtime, "", name, " is out of bounds for ", bound_type_name(dtype));
  }
}

struct IntegerBounds {
  int64_t least;
  int64_t most;
};

IntegerBounds integer_bounds(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return {0, 1};
    case DType::UInt8:
      return {0, 255};
    case DType::Int8:
      return {-128, 127};
    case DType::UInt16:
      return {0, 65535};
    case DType::Int16:
      return {-32768, 32767};
    case DType::UInt32:
      return {0, 0xffffffffLL};
    case DType::Int32:
      return {-0x80000000LL, 0x7fffffff};
    case DType::UInt64:
      return {0, std::numeric_limits<int64_t>::max()};
    default:
      return {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  }
}

int digits_of(DType dtype) {
  return dtype == DType::Float16    ? 11
         : dtype == DType::BFloat16 ? 8
         : dtype == DType::Float64  ? 53
                                    : 24;
}

void check_integer_bound(int64_t value, std::string_view name, DType dtype) {
  if (is_floating(dtype)) {
    const int digits = digits_of(dtype);
    const int64_t exact = int64_t{1} << digits;
    if (value < -exact || value > exact) {
      warn(cat(name, " is out of bounds [-(2^", digits, "), 2^", digits,
               "]. Due to precision limitations ", bound_type_name(dtype),
               " can support discrete uniform distribution only within this range."));
    }
    return;
  }
  const IntegerBounds bounds = integer_bounds(dtype);
  if (value < bounds.least || value > bounds.most) {
    fail(ErrorKind::Runtime, "", name, " is out of bounds for ", bound_type_name(dtype));
  }
}

}  // namespace

void fill_random(const Tensor& out, const std::optional<Generator>& generator, RandomFill fill) {
  if (out.is_meta() || out.numel() == 0) {
    return;
  }
  check_no_internal_overlap(out, "random");
  streams::State& state = (generator ? *generator : default_generator()).state();
  std::lock_guard lock(state.mutex);
  if (out.is_contiguous()) {
    return fill(out.data(), out.numel(), true, state);
  }
  const Tensor ordered = in_memory_order(out);
  if (ordered.is_contiguous()) {
    return fill(ordered.data(), ordered.numel(), false, state);
  }
  const Tensor block = make_tensor(ordered.sizes(), out.dtype());
  fill(block.data(), block.numel(), false, state);
  assign(ordered, block);
}

const Tensor& random_output(Invocation& inv, IntArrayRef sizes, std::optional<DType> dtype,
                            DType fallback, Device device, IntArrayRef strides) {
  if (inv.results[0].is_tensor()) {
    const Tensor& out = inv.results[0].tensor();
    if (dtype && *dtype != out.dtype()) {
      fail(ErrorKind::Runtime, inv.op->name(), "dtype ", *dtype,
           " does not match dtype of out parameter (", out.dtype(), ")");
    }
    check_output(*inv.op, inv.form, out, sizes, out.dtype(), out.device());
    return out;
  }
  const DType made = dtype.value_or(fallback);
  inv.results[0] = Value(strides.empty() ? make_tensor(sizes, made, device)
                                         : make_strided(sizes, strides, made, device));
  return inv.results[0].tensor();
}

const Tensor& random_output_like(Invocation& inv) {
  const Tensor& self = inv.arguments[0].tensor();
  return random_output(inv, self.sizes(), std::nullopt, self.dtype(), self.device());
}

std::optional<Generator> generator_of(const Value& value) {
  return value.is_none() ? std::nullopt : std::optional<Generator>(value.generator());
}

void require_floating(DType dtype, std::string_view kernel) {
  if (!is_floating(dtype) || is_float8(dtype)) {
    fail(ErrorKind::NotImplemented, "", "\"", kernel, "\" not implemented for '",
         scalar_type_name(dtype), "'");
  }
}

void fill_uniform(const Tensor& out, double from, double to,
                  const std::optional<Generator>& generator) {
  const DType real = real_dtype(out.dtype());
  require_floating(real, "check_uniform_bounds");
  check_uniform_bound(from, "from", real);
  check_uniform_bound(to, "to", real);
  if (from > to) {
    fail(ErrorKind::Runtime, "",
         "uniform_ expects to return a [from, to) range, but found from=", number_text(from),
         " > to=", number_text(to));
  }
  if (to - from > largest_of(real)) {
    fail(ErrorKind::Runtime, "", "uniform_ expects to-from <= std::numeric_limits<",
         bound_type_name(real), ">::max(), but found to=", number_text(to),
         " and from=", number_text(from), " which result in to-from to exceed the limit");
  }
  const int parts = out.is_complex() ? 2 : 1;
  fill_random(out, generator, [&](void* data, int64_t count, bool, streams::State& state) {
    streams::uniform(data, real, count * parts, from, to, state);
  });
}

void fill_normal(const Tensor& out, double mean, double std,
                 const std::optional<Generator>& generator) {
  if (!(std >= 0)) {
    fail(ErrorKind::Runtime, "", "normal expects std >= 0.0, but found std ", number_text(std));
  }
  const DType real = real_dtype(out.dtype());
  require_floating(real, "normal_kernel_cpu");
  // A complex number's variance is shared by its two parts.
  const bool complex = out.is_complex();
  const double spread = complex ? std / std::sqrt(2.0) : std;
  fill_random(out, generator, [&](void* data, int64_t count, bool whole, streams::State& state) {
    streams::normal(data, real, complex ? 2 * count : count, mean, spread, whole, state);
  });
}

void fill_integers(const Tensor& out, int64_t from, std::optional<int64_t> to,
                   const std::optional<Generator>& generator) {
  const DType dtype = out.dtype();
  uint64_t range;
  if (to) {
    if (from >= *to) {
      fail(ErrorKind::Runtime, "",
           "random_ expects 'from' to be less than 'to', but got from=", from, " >= to=", *to);
    }
    check_integer_bound(from, "from", dtype);
    check_integer_bound(*to - 1, "to - 1", dtype);
    range = static_cast<uint64_t>(*to) - static_cast<uint64_t>(from);
  } else {
    check_integer_bound(from, "from", dtype);
    const int64_t most =
        is_floating(dtype) ? int64_t{1} << digits_of(dtype) : integer_bounds(dtype).most;
    range = static_cast<uint64_t>(most) - static_cast<uint64_t>(from) + 1;  // 0: all 2^64
  }
  fill_random(out, generator, [&](void* data, int64_t count, bool, streams::State& state) {
    streams::integers(data, dtype, count, range, from, state);
  });
}

void fill_bernoulli(const Tensor& out, double p, double on,
                    const std::optional<Generator>& generator) {
  if (!(p >= 0 && p <= 1)) {
    fail(ErrorKind::Runtime, "",
         "bernoulli_ expects p to be in [0, 1], but got p=", number_text(p));
  }
  fill_random(out, generator, [&](void* data, int64_t count, bool, streams::State& state) {
    streams::bernoulli(data, out.dtype(), count, p, on, state);
  });
}

}  // namespace rushlight
