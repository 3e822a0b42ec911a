// Products of groups of rows, columns or terms, each group with a matrix of its own: the experts of
// a mixture. Offsets say where groups end.
#include <rushlight/generated/functions.h>

#include "ops/operator.h"

namespace rushlight {
namespace {

constexpr const char* kOp = "_grouped_mm";

void check_factors(const Tensor& self, const Tensor& mat2) {
  const DType dtype = self.dtype();
  if (dtype != DType::Float32 && dtype != DType::BFloat16 && dtype != DType::Float16) {
    fail(ErrorKind::Runtime, kOp, "Expected mat_a to be Float32, BFloat16 or Float16 matrix, got ",
         dtype_name(dtype));
  }
  if (mat2.dtype() != dtype) {
    fail(ErrorKind::Runtime, kOp,
         "expected m1 and m2 to have the same dtype, but got: ", dtype_name(dtype),
         " != ", dtype_name(mat2.dtype()));
  }
  for (const Tensor* factor : {&self, &mat2}) {
    if (factor->dim() != 2 && factor->dim() != 3) {
      fail(ErrorKind::Runtime, kOp, factor == &self ? "mat_a" : "mat_b",
           " has to be 2 or 3d, but got sizes ", factor->sizes());
    }
  }
  if (self.size(-1) != mat2.size(-2)) {
    fail(ErrorKind::Runtime, kOp, "contraction dimension of mat_a and mat_b must match, got sizes ",
         self.sizes(), " and ", mat2.sizes());
  }
}

// What is cut into groups, and how many groups there are.
struct Plan {
  int64_t extent;
  int64_t groups;
  IntList sizes;  // of the result
};

Plan plan_of(const Tensor& self, const Tensor& mat2, const Tensor& offs) {
  const int64_t groups = offs.size(0);
  const int64_t rows = self.size(-2);
  const int64_t columns = mat2.size(-1);
  if (self.dim() == 2 && mat2.dim() == 2) {
    return {self.size(1), groups, {groups, rows, columns}};
  }
  const bool by_rows = self.dim() == 2;
  if ((by_rows ? mat2 : self).size(0) != groups) {
    fail(ErrorKind::Runtime, kOp, "matrix batch sizes have to match: ", groups,
         " offsets, but matrices of sizes ", self.sizes(), " and ", mat2.sizes());
  }
  return {by_rows ? rows : columns, groups, {rows, columns}};
}

std::vector<int64_t> ends_of(const Tensor& offs, int64_t extent) {
  std::vector<int64_t> ends;
  int64_t before = 0;
  for (int64_t i = 0; i < offs.size(0); ++i) {
    const int64_t end = select(offs, 0, i).item().to_int();
    if (end < before || end > extent) {
      fail(ErrorKind::Runtime, kOp, "argument 'offs': expected ends that do not fall, at most ",
           extent, ", but got ", end, " after ", before);
    }
    ends.push_back(end);
    before = end;
  }
  return ends;
}

Tensor grouped(const Tensor& self, const Tensor& mat2, const Tensor& offs) {
  const Plan plan = plan_of(self, mat2, offs);
  if (self.is_meta()) {
    return empty(plan.sizes, self.options());
  }
  TensorList parts;
  int64_t start = 0;
  for (int64_t group = 0; const int64_t end : ends_of(offs, plan.extent)) {
    const int64_t length = end - start;
    if (self.dim() == 2 && mat2.dim() == 2) {
      parts.push_back(mm(narrow(self, 1, start, length), narrow(mat2, 0, start, length)));
    } else if (self.dim() == 2) {
      parts.push_back(mm(narrow(self, 0, start, length), select(mat2, 0, group)));
    } else {
      parts.push_back(mm(select(self, 0, group), narrow(mat2, 1, start, length)));
    }
    start = end;
    ++group;
  }
  if (self.dim() == mat2.dim()) {
    return parts.empty() ? zeros(plan.sizes, self.options()) : stack(parts);
  }
  if (start < plan.extent) {  // past the last group: no matrix, so zeros
    IntList rest = plan.sizes;
    rest[self.dim() == 2 ? 0 : 1] = plan.extent - start;
    parts.push_back(zeros(rest, self.options()));
  }
  return cat(parts, self.dim() == 2 ? 0 : 1);
}

Tensor grouped_product(const Tensor& self, const Tensor& mat2, const Tensor& offs,
                       const Tensor& bias, std::optional<DType> wanted) {
  check_factors(self, mat2);
  const bool batches = self.dim() == 3 && mat2.dim() == 3;
  if (offs.defined() == batches) {
    fail(ErrorKind::Runtime, kOp,
         "Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d");
  }
  if (offs.defined() && (offs.dtype() != DType::Int32 || offs.dim() != 1)) {
    fail(ErrorKind::Runtime, kOp, "Offsets have to be int32, of one dimension, but got ",
         dtype_name(offs.dtype()), " of sizes ", offs.sizes());
  }
  if (bias.defined()) {
    fail(ErrorKind::Runtime, kOp, "Bias not supported yet");
  }
  if (wanted && *wanted != self.dtype()) {
    fail(ErrorKind::Runtime, kOp, "Grouped gemm output dtype must match `mat_a` dtype, ",
         dtype_name(self.dtype()), ", but got ", dtype_name(*wanted));
  }
  return batches ? bmm(self, mat2) : grouped(self, mat2, offs);
}

}  // namespace

RUSHLIGHT_OPERATORS(matmul_grouped) {
  op("_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, "
     "ScalarType? out_dtype=None) -> Tensor",
     kFunction)
      .doc(
          "Group by group, self @ mat2. Of (M, K) and (G, K, N), groups of rows; of (G, M, K) and "
          "(K, N), of columns; of (M, K) and (K, N), of terms, which gives (G, M, N). `offs` has "
          "the end of each group in int32; rows and columns past the last one are zeros. Of (G, M, "
          "K) and (G, K, N), without offsets, all of them.")
      .composition(grouped_product);
}

}  // namespace rushlight
