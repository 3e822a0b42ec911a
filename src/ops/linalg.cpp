#include "ops/linalg.h"

#include <rushlight/generated/functions.h>

#include <algorithm>

#include "kernels/copy.h"
#include "runtime/parallel.h"

namespace rushlight::matrices {

void check_matrix(const Tensor& a, std::string_view op, std::string_view name) {
  if (a.dim() < 2) {
    fail(ErrorKind::Runtime, "", op, ": The input tensor ", name,
         " must have at least 2 dimensions.");
  }
}

void check_square(const Tensor& a, std::string_view op, std::string_view name) {
  check_matrix(a, op, name);
  if (rows_of(a) != columns_of(a)) {
    fail(ErrorKind::Runtime, "", op, ": ", name,
         " must be batches of square matrices, but they are ", rows_of(a), " by ", columns_of(a),
         " matrices");
  }
}

void check_precision(const Tensor& a, std::string_view op) {
  const DType dtype = a.dtype();
  if (is_complex(dtype)) {
    fail(ErrorKind::NotImplemented, "", op, ": \"", op, "\" not implemented for '",
         scalar_type_name(dtype), "': expected a real matrix");
  }
  if (!is_floating(dtype)) {
    fail(ErrorKind::Runtime, "", op, ": Expected a floating point or complex tensor as input. Got ",
         scalar_type_name(dtype));
  }
  if (dtype != DType::Float32 && dtype != DType::Float64) {
    fail(ErrorKind::Runtime, "", op, ": Low precision dtypes not supported. Got ",
         scalar_type_name(dtype));
  }
}

void check_field(const Tensor& a, std::string_view op) {
  if (!a.is_complex()) {
    check_precision(a, op);
  }
}

void check_square_field(const Tensor& a, std::string_view op) {
  check_square(a, op);
  check_field(a, op);
}

void check_square_input(const Tensor& a, std::string_view op) {
  check_square(a, op);
  check_precision(a, op);
}

void check_same_dtype(const Tensor& a, const Tensor& b, std::string_view op, std::string_view first,
                      std::string_view second) {
  if (a.dtype() != b.dtype()) {
    fail(ErrorKind::Runtime, "", op, ": Expected ", first, " and ", second,
         " to have the same dtype, but found ", first, " of type ", scalar_type_name(a.dtype()),
         " and ", second, " of type ", scalar_type_name(b.dtype()), " instead");
  }
  if (!(a.device() == b.device())) {
    fail(ErrorKind::Runtime, "", op, ": Expected ", first, " and ", second,
         " to be on the same device, but found ", first, " on ", a.device().to_string(), " and ",
         second, " on ", b.device().to_string(), " instead");
  }
}

IntList batch_sizes(const Tensor& a, int64_t dims) {
  return IntList(a.sizes().first(static_cast<size_t>(a.dim() - dims)));
}

IntList with_tail(IntArrayRef batch, std::initializer_list<int64_t> tail) {
  IntList sizes(batch);
  for (int64_t size : tail) {
    sizes.push_back(size);
  }
  return sizes;
}

int64_t count_of(IntArrayRef batch) {
  int64_t count = 1;
  for (int64_t size : batch) {
    count *= size;
  }
  return count;
}

IntList common_batch(const Tensor& a, const Tensor& b, std::string_view op) {
  return broadcast_shapes(batch_sizes(a), batch_sizes(b), op);
}

Tensor expand_batch(const Tensor& a, IntArrayRef batch) {
  return expand(a, with_tail(batch, {rows_of(a), columns_of(a)}));
}

Tensor make_columns(IntArrayRef batch, int64_t rows, int64_t columns, const Tensor& like) {
  const IntList sizes = with_tail(batch, {rows, columns});
  IntList strides = contiguous_strides(sizes);
  strides[strides.size() - 2] = 1;
  strides[strides.size() - 1] = std::max<int64_t>(rows, 1);
  return make_strided(sizes, strides, like.dtype(), like.device());
}

Tensor copy_columns(const Tensor& a) {
  const Tensor made = make_columns(batch_sizes(a), rows_of(a), columns_of(a), a);
  if (!made.is_meta() && made.numel() != 0) {
    kernels::copy(made, a);
  }
  return made;
}

void for_each_matrix(int64_t count, double work, FunctionRef<void(int64_t)> body) {
  constexpr double kTask = 1 << 15;
  const int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(kTask / std::max(work, 1.0)));
  parallel_for(0, count, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      body(i);
    }
  });
}

void check_info(const Tensor& info, std::string_view op, std::string (*text)(int32_t)) {
  if (info.is_meta()) {
    return;
  }
  const Tensor flat = kernels::as_contiguous(info);
  const int32_t* codes = flat.data_ptr<int32_t>();
  for (int64_t i = 0; i < flat.numel(); ++i) {
    if (codes[i] == 0) {
      continue;
    }
    if (info.dim() == 0) {
      fail(ErrorKind::LinAlg, "", op, ": ", text(codes[i]));
    }
    fail(ErrorKind::LinAlg, "", op, ": (Batch element ", i, "): ", text(codes[i]));
  }
}

Tensor turned(const Tensor& a) {
  return transpose(conj(a), -2, -1);
}

Tensor mirrored(const Tensor& a) {
  const Tensor strict = tril(a, -1);
  if (!a.is_complex()) {
    return add(tril(a), turned(strict));
  }
  return add(add(strict, turned(strict)), diag_embed(real(diagonal(a, 0, -2, -1))));
}

Tensor turned_view(const Tensor& a) {
  IntList sizes(a.sizes());
  IntList strides(a.strides());
  std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
  std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
  return make_view(a, sizes, strides, a.storage_offset());
}

bool is_vector_for(const Tensor& a, IntArrayRef b) {
  return b.size() == 1 ||
         (static_cast<int64_t>(b.size()) == a.dim() - 1 && b == IntArrayRef(batch_sizes(a, 1)));
}

}  // namespace rushlight::matrices
