// What flex attention does to tiles of scores, as compiled kernels.
#pragma once

#include <functional>

#include "kernels/attention.h"
#include "ops/flex_function.h"

namespace rushlight {

// The score function and the mask of one call, applied to tiles.
class FlexModifier final : public AttentionModifier {
 public:
  FlexModifier(DType compute, const FlexFunction& score, const FlexFunction& mask);

  // Prepares `gradients`. `sums`: for each captured tensor whose gradient is wanted, (groups, its
  // sizes...) of the compute type, contiguous and zero; undefined for others.
  void prepare_gradients(const TensorList& sums, int64_t groups);

  void scores(const AttentionPlace& at, bool partial, void* tile, int64_t stride) const override;
  bool reads_scores() const override { return kernels_.reads_scores; }
  void gradients(const AttentionPlace& at, bool partial, const void* scores, void* gradients,
                 int64_t stride, int64_t group) const override;
  int64_t groups() const override { return groups_; }

 private:
  enum Kind : int { kWhole, kPartial };
  // By kind; null where there is nothing to do.
  struct Kernels {
    loop::KernelFunction apply[2] = {};
    loop::KernelFunction differentiate[2] = {};
    loop::KernelFunction add_up[2] = {};
    bool reads_scores = false;
  };
  static Kernels known(const std::string& key, const std::function<Kernels()>& make);
  loop::Kernel empty_kernel(std::string name, loop::AxisKind axes) const;
  FlexPlace place() const;
  loop::Expr hide(Kind kind, loop::Expr value, double otherwise) const;
  loop::KernelFunction score_kernel(Kind kind) const;
  loop::KernelFunction gradient_kernel(Kind kind, bool* reads_scores) const;
  loop::KernelFunction sums_kernel(Kind kind, const TensorList& sums, bool* reads_scores) const;
  void run(loop::KernelFunction kernel, const AttentionPlace& at, int64_t queries,
           const void* first, void* second, int64_t stride, int64_t group) const;

  DType compute_;
  const FlexFunction& score_;
  const FlexFunction& mask_;
  TensorList captures_;
  std::vector<std::vector<int64_t>> strides_;
  TensorList sums_;
  std::vector<std::vector<int64_t>> sum_strides_;
  int64_t groups_ = 0;
  // Whole rows of a tile, with the columns that stand for no query, make whole vectors; but those
  // columns must not reach beyond captured tensors.
  bool whole_rows_;
  std::string key_;
  Kernels kernels_;
};

// Evaluates a function for all (query, key) of one (batch, head) into `out`, of `dtype`, rows of
// queries: positions from `query` and `key` on.
class FlexEvaluator {
 public:
  FlexEvaluator(const FlexFunction& function, DType dtype);
  void run(int64_t batch, int64_t head, int64_t query, int64_t queries, int64_t key, int64_t keys,
           void* out, int64_t row_stride) const;

 private:
  TensorList captures_;
  std::vector<std::vector<int64_t>> strides_;
  loop::KernelFunction kernel_;
};

}  // namespace rushlight
