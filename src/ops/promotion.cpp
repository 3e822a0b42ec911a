#include "ops/promotion.h"

namespace rushlight {
namespace {

int category(DType dtype) {
  return is_complex(dtype) ? 3 : is_floating(dtype) ? 2 : dtype == DType::Bool ? 0 : 1;
}

// `higher` decides, unless `lower` is of a higher category; a complex `lower` takes the precision
// of a floating `higher`.
DType combine(DType higher, bool has_higher, DType lower, bool has_lower) {
  if (!has_higher) {
    return lower;
  }
  if (!has_lower || category(higher) >= category(lower)) {
    return higher;
  }
  return is_complex(lower) && is_floating(higher) ? promote(higher, DType::Complex64) : lower;
}

}  // namespace

DType Promotion::result() const {
  if (!zero_dim_.any && !numbers_.any) {
    return dimensioned_.dtype;
  }
  DType low = combine(zero_dim_.dtype, zero_dim_.any, numbers_.dtype, numbers_.any);
  DType high = combine(dimensioned_.dtype, dimensioned_.any, low, zero_dim_.any || numbers_.any);
  return high;
}

}  // namespace rushlight
