#include "autograd/copy_slices.h"

#include "autograd/operators.h"

namespace rushlight::autograd {

// Its edges are those of the node of the write, but that the one of the view goes on to the base's
// history.
CopySlices::CopySlices(const Tensor& base, const Tensor& view, NodePtr written, uint32_t edge,
                       uint32_t output)
    : base_sizes_(base.sizes()),
      base_strides_(base.strides()),
      view_sizes_(view.sizes()),
      view_strides_(view.strides()),
      offset_(view.storage_offset() - base.storage_offset()),
      dtype_(base.dtype()),
      device_(base.device()),
      written_(std::move(written)),
      written_edge_(edge),
      output_(output) {
  own_edges_.reserve(written_->edge_count());
  for (uint32_t i = 0; i < written_->edge_count(); ++i) {
    own_edges_.push_back(written_->edge(i));
  }
  own_edges_[written_edge_] = gradient_edge(base);
  edges_ = own_edges_.data();
  edge_count_ = static_cast<uint32_t>(own_edges_.size());
}

TensorList CopySlices::apply(TensorList&& gradients) {
  if (!gradients[0].defined()) {
    return TensorList(edge_count_);
  }
  Tensor whole = make_strided(base_sizes_, base_strides_, gradients[0].dtype(), device_);
  ops::copy_(whole, gradients[0]);
  Tensor part = ops::as_strided(whole, view_sizes_, view_strides_, offset_);
  TensorList taken(written_->input_count());
  taken[output_] = ops::clone(part);
  TensorList inner = written_->apply(std::move(taken));
  inner.resize(edge_count_);
  if (edge(written_edge_)) {
    if (inner[written_edge_].defined()) {
      ops::copy_(part, inner[written_edge_]);
    } else {
      ops::zero_(part);
    }
    inner[written_edge_] = std::move(whole);
  }
  return inner;
}

void CopySlices::release_saved() {
  written_->release_saved();
}

}  // namespace rushlight::autograd
