#include <rushlight/shape.h>

namespace rushlight {

int64_t checked_multiply(int64_t a, int64_t b, std::string_view op) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) {
    fail(ErrorKind::Runtime, op, "size overflows 64 bits: ", a, " * ", b);
  }
  return product;
}

int64_t checked_add(int64_t a, int64_t b, std::string_view op) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) {
    fail(ErrorKind::Runtime, op, "size overflows 64 bits: ", a, " + ", b);
  }
  return sum;
}

int64_t checked_numel(IntArrayRef sizes, std::string_view op) {
  bool empty = false;
  for (int64_t size : sizes) {
    if (size < 0) {
      fail(ErrorKind::Runtime, op, "Trying to create tensor with negative dimension ", size, ": ",
           sizes);
    }
    empty = empty || size == 0;
  }
  if (empty) {
    return 0;
  }
  int64_t numel = 1;
  for (int64_t size : sizes) {
    if (__builtin_mul_overflow(numel, size, &numel)) {
      fail(ErrorKind::Runtime, op, "the number of elements of size ", sizes, " overflows 64 bits");
    }
  }
  return numel;
}

IntList contiguous_strides(IntArrayRef sizes) {
  IntList strides;
  strides.resize(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= sizes[i] > 1 ? sizes[i] : 1;
  }
  return strides;
}

IntList broadcast_shapes(IntArrayRef a, IntArrayRef b, std::string_view op) {
  const size_t rank = std::max(a.size(), b.size());
  IntList shape(rank, 1);
  // From the last dimension on, so that an error names the one that PyTorch names.
  for (size_t i = 0; i < rank; ++i) {
    const int64_t mine = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t theirs = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (mine != theirs && mine != 1 && theirs != 1) {
      fail(ErrorKind::Runtime, op, "The size of tensor a (", mine,
           ") must match the size of tensor b (", theirs, ") at non-singleton dimension ",
           static_cast<int64_t>(rank - 1 - i), "; got shapes ", a, " and ", b);
    }
    shape[rank - 1 - i] = mine == 1 ? theirs : mine;
  }
  return shape;
}

int64_t wrap_dim(int64_t dim, int64_t rank, std::string_view op) {
  int64_t range = rank == 0 ? 1 : rank;
  if (dim < -range || dim >= range) {
    fail(ErrorKind::Index, op, "Dimension out of range (expected to be in range of [", -range, ", ",
         range - 1, "], but got ", dim, ")");
  }
  return dim < 0 ? dim + range : dim;
}

}  // namespace rushlight
