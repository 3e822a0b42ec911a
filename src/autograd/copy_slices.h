// The node of a base whose view was written in place by another node.
#pragma once

#include "autograd/meta.h"

namespace rushlight::autograd {

// Its input is the gradient of the base after the write. The part that the view shows goes through
// the node of the write, and what comes back takes its place in the gradient of the base before.
class CopySlices final : public Node {
 public:
  // `edge` and `output`: which argument and result of `written` the view is.
  CopySlices(const Tensor& base, const Tensor& view, NodePtr written, uint32_t edge,
             uint32_t output);
  TensorList apply(TensorList&& gradients) override;
  std::string name() const override { return "CopySlices"; }
  uint32_t input_count() const override { return 1; }
  InputMetadata input(uint32_t) const override { return {base_sizes_, dtype_, device_}; }
  void release_saved() override;

 private:
  IntList base_sizes_;
  IntList base_strides_;
  IntList view_sizes_;
  IntList view_strides_;
  int64_t offset_;  // of the view in the base
  DType dtype_;
  Device device_;
  NodePtr written_;
  uint32_t written_edge_;
  uint32_t output_;
  std::vector<Edge> own_edges_;
};

}  // namespace rushlight::autograd
