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

// How many hold a pending storage of a tensor that is alone (its graph may); installed by the graph
// (src/graph).
extern uint32_t (*pending_holders)(StorageImpl* storage);
// How many hold the storage of a tensor that is alone.
inline uint32_t sole_holders(const Tensor& tensor) {
  return tensor.storage()->pending.load(std::memory_order_acquire)
             ? pending_holders(tensor.storage())
             : 1;
}

// Whether nobody else can see the tensor's memory.
inline bool is_sole_owner(const Tensor& tensor) {
  return tensor.impl()->references.load(std::memory_order_acquire) == 1 &&
         tensor.storage()->references.load(std::memory_order_acquire) == sole_holders(tensor);
}

}  // namespace rushlight::autograd
