// Rows of a table by index.
#include <rushlight/generated/functions.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/copy.h"
#include "kernels/element_type.h"
#include "kernels/index.h"
#include "ops/gradient.h"
#include "ops/operator.h"
#include "ops/views.h"

namespace rushlight {
namespace {

void check_indices(const Tensor& indices) {
  if (indices.dtype() != DType::Int64 && indices.dtype() != DType::Int32) {
    fail(ErrorKind::Runtime, "",
         "Expected tensor for argument #1 'indices' to have one of the "
         "following scalar types: Long, Int; but got torch.",
         scalar_type_name(indices.dtype()),
         "Tensor instead (while checking arguments for embedding)");
  }
}

// Rows of a matrix at `offsets`, and the same number of rows of a contiguous matrix.
kernels::IndexSpace rows_at(const Tensor& matrix, const Tensor& offsets) {
  kernels::IndexSpace space;
  space.inner_sizes = {matrix.size(1)};
  space.base_inner = {matrix.stride(1)};
  space.dense_inner = {1};
  space.dense_index = matrix.size(1);
  space.count = offsets.numel();
  space.offsets = offsets.data_ptr<int64_t>();
  return space;
}

Tensor row_offsets(const Tensor& indices, const Tensor& matrix) {
  const Tensor values = kernels::index_values(indices);
  const Tensor offsets = kernels::make_zeros({values.numel()}, DType::Int64);
  kernels::add_offsets(
      offsets.data_ptr<int64_t>(), values.data_ptr<int64_t>(), values.numel(), matrix.stride(0),
      {matrix.size(0), 0, false, ErrorKind::Index, "embedding", kernels::IndexText::Embedding});
  return offsets;
}

Tensor embedding_rows(const Tensor& weight, const Tensor& indices, int64_t, bool, bool sparse) {
  if (weight.dim() != 2) {
    fail(ErrorKind::Runtime, "embedding", "'weight' must be 2-D, got ", weight.dim(), "-D");
  }
  check_indices(indices);
  if (sparse && weight.requires_grad() && thread_state.grad_mode) {
    fail(ErrorKind::NotImplemented, "embedding", "sparse gradients are not offered");
  }
  IntList sizes(indices.sizes());
  sizes.push_back(weight.size(1));
  Tensor made = make_tensor(sizes, weight.dtype(), weight.device());
  if (!made.is_meta() && !indices.is_meta() && made.numel() != 0) {
    const Tensor offsets = row_offsets(indices, weight);
    kernels::read_indexed(made, weight, rows_at(weight, offsets));
  }
  return made;
}

// Gradients of rows that were not looked up, or belong to padding, are zero. Rows are added in the
// order of the indices.
Tensor embedding_back(const Tensor& grad, const Tensor& indices, int64_t rows, int64_t padding,
                      bool scale_by_frequency) {
  IntList expected(indices.sizes());
  expected.push_back(grad.dim() == 0 ? 0 : grad.size(-1));
  if (!(grad.sizes() == expected)) {
    fail(ErrorKind::Runtime, "embedding_dense_backward", "expected grad_output of shape ",
         indices.sizes(), " and one more dimension, got ", grad.sizes());
  }
  const int64_t width = expected.back();
  const Tensor made = kernels::make_zeros({rows, width}, grad.dtype(), grad.device());
  if (made.is_meta() || made.numel() == 0) {
    return made;
  }
  const Tensor dense = kernels::as_contiguous(grad);
  const Tensor values = kernels::index_values(indices);
  const Tensor offsets = row_offsets(values, made);
  kernels::write_indexed(made, dense, rows_at(made, offsets), kernels::Update::Add);
  if (padding >= 0 && padding < rows) {
    kernels::zero(views::select(made, 0, padding));
  }
  if (scale_by_frequency) {
    const Tensor counts = kernels::make_zeros({rows, 1}, DType::Int64);
    for (int64_t i = 0; i < values.numel(); ++i) {
      ++counts.data_ptr<int64_t>()[values.data_ptr<int64_t>()[i]];
    }
    const DoorGuard guard(0, ~0U);
    div_(made, clamp_min(counts, 1));
  }
  return made;
}

// The p-norm of a line, in double precision.
double norm_of(const Tensor& line, double p) {
  double total = 0;
  kernels::by_real_dtype(line.dtype(), "embedding_renorm_", [&]<typename T>(T) {
    const T* values = static_cast<const T*>(line.data());
    for (int64_t i = 0; i < line.numel(); ++i) {
      const double size =
          std::abs(static_cast<double>(kernels::load_value(values[i * line.stride(0)])));
      total = std::isinf(p) ? std::max(total, size) : total + std::pow(size, p);
    }
  });
  return std::isinf(p) ? total : std::pow(total, 1 / p);
}

// Scales each row that is looked up, once, so that its norm is at most `max_norm`.
Tensor embedding_limit(const Tensor& self, const Tensor& indices, double max_norm,
                       double norm_type) {
  check_indices(indices);
  if (self.is_meta()) {
    return self;
  }
  const Tensor values = kernels::index_values(indices);
  const auto* row = values.data_ptr<int64_t>();
  kernels::check_index(row, values.numel(),
                       {self.size(0), 0, false, ErrorKind::Index, "embedding_renorm_",
                        kernels::IndexText::Embedding});
  std::vector<bool> done(static_cast<size_t>(self.size(0)), false);
  const DoorGuard guard(0, ~0U);
  for (int64_t i = 0; i < values.numel(); ++i) {
    if (done[static_cast<size_t>(row[i])]) {
      continue;
    }
    done[static_cast<size_t>(row[i])] = true;
    const Tensor line = views::select(self, 0, row[i]);
    const double length = norm_of(line, norm_type);
    if (length > max_norm) {
      mul_(line, Scalar(max_norm / (length + 1e-7)));
    }
  }
  self.bump_version();
  return self;
}

}  // namespace

RUSHLIGHT_OPERATORS(indexing_embedding) {
  op("embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, "
     "bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
     kFunction)
      .doc("The rows of `weight` at `indices`. The row `padding_idx` gets no gradient.")
      .kernel(embedding_rows)
      .gradient("indices", [](Gradient& g) {
        g.set(0, embedding_dense_backward(g.grad(), g.tensor(1), g.sizes(0)[0], g.integer(2),
                                          g.flag(3)));
      });
  op("embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> "
     "Tensor(a!)",
     kFunction)
      .doc("Scales the rows at `indices` down to a norm of `max_norm`, in place.")
      .kernel(embedding_limit)
      .not_differentiable();
  op("embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, "
     "SymInt padding_idx, bool scale_grad_by_freq) -> Tensor",
     kFunction)
      .doc("The gradient of embedding with respect to its table.")
      .kernel(embedding_back)
      .gradient("indices", [](Gradient& g) {
        const Tensor indices = g.tensor(1);
        const Tensor rows = embedding(g.grad(), indices, g.integer(3));
        const Tensor used = unsqueeze(ne(indices, g.integer(3)), -1);
        g.set(0, mul(rows, to(used, rows.dtype())));
      });
}

}  // namespace rushlight
