// Running one node: hooks before and after, checks of what it returns.
#pragma once

#include "autograd/node.h"

namespace rushlight::autograd {

// Tensor hooks on the node's incoming gradients, and grads that tensors asked to retain.
void run_input_hooks(Node& node, NodeExtra& extra, TensorList& gradients);

// The outgoing gradients, one an edge: shapes, dtypes and devices are those the edges lead to.
TensorList run_node(Node& node, TensorList incoming, bool keep_saved);

// Makes a gradient fit: sums what was broadcast, converts the dtype. `where` starts the error text.
void fit_gradient(Tensor& gradient, const InputMetadata& wanted, const std::string& where);

// Whether nobody else can see the tensor's memory.
inline bool is_sole_owner(const Tensor& tensor) {
  return tensor.impl()->references.load(std::memory_order_acquire) == 1 &&
         tensor.storage()->references.load(std::memory_order_acquire) == 1;
}

}  // namespace rushlight::autograd
