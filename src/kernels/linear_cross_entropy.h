// The cross entropy of the scores input * weight^T + bias, in tiles: the scores of all rows and
// classes never exist together.
//
// Results have the same bits for any number of threads. Half types are computed in f32 and rounded
// once. Operands are borrowed; results must not overlap operands or each other. Arrays "of the
// compute type" are f64 for f64 and else f32.
#pragma once

#include <rushlight/dtype.h>

#include <cstdint>

#include "kernels/gemm.h"

namespace rushlight {

struct LinearCrossEntropy {
  DType dtype;  // of input, weight and bias: f32, f64, f16, bf16
  int64_t rows;
  int64_t features;
  int64_t classes;
  MatrixRef input;   // rows x features
  MatrixRef weight;  // classes x features
  const void* bias = nullptr;
  int64_t bias_stride = 1;
  // Either the class of each row or, rows x classes, its wanted distribution in a dtype that
  // converts to the compute type by widening.
  const int64_t* target = nullptr;
  MatrixRef probabilities = {};
  const void* class_weight = nullptr;  // of the compute type, contiguous
  int64_t ignore_index = -100;         // rows with this target neither cost nor learn
  double smoothing = 0;
  // Distance between neighbouring rows in `target` and in all arrays below with a value a row.
  int64_t row_step = 1;
};

// With d the wanted distribution (smoothed, times the class weights) of a row and W its total:
// loss = W * logsumexp - sum of d * score, 0 for ignored rows. Both of the compute type.
void linear_cross_entropy_forward(const LinearCrossEntropy& problem, void* loss, void* logsumexp);

// Which gradients are wanted, and of what: the sum over rows of
//   loss_gradient * loss + logsumexp_gradient * logsumexp + square_scale * logsumexp^2,
// the last over rows that are not ignored. The gradients by row are of the compute type; without
// them, each is `loss_scale`, or 0.
struct LinearCrossEntropyGradients {
  const void* loss_gradient = nullptr;
  const void* logsumexp_gradient = nullptr;
  double loss_scale = 0;
  double square_scale = 0;
  void* input = nullptr;         // of the compute type, contiguous rows x features; added to
  MutableMatrixRef weight = {};  // classes x features of `dtype`, unit column stride; overwritten
  void* bias = nullptr;          // of `dtype`; overwritten
  int64_t bias_stride = 1;
};

// The gradients from what the forward pass gave, by computing the scores again.
void linear_cross_entropy_backward(const LinearCrossEntropy& problem, const void* logsumexp,
                                   const LinearCrossEntropyGradients& gradients);

// Both at once, for f32 and f64: holds the scores of a few rows, at most kHeldScores bytes, which
// saves a product. Only where `can_fuse`; the gradients by row must be null.
void linear_cross_entropy_fused(const LinearCrossEntropy& problem, void* loss, void* logsumexp,
                                const LinearCrossEntropyGradients& gradients);
bool can_fuse(const LinearCrossEntropy& problem);
inline constexpr int64_t kHeldScores = 40 << 20;

}  // namespace rushlight
