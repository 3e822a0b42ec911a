// The engine: walks a graph from its roots, later nodes first, and sums gradients on the way.
//
// Each call is one task, run by the calling thread; calls from different threads, and from hooks
// and backward functions inside a task, may share nodes. The order of summation is fixed by the
// graph: the same graph gives the same bits.
#pragma once

#include <functional>
#include <optional>

#include "autograd/node.h"

namespace rushlight::autograd {

struct BackwardOptions {
  bool retain_graph = false;
  bool create_graph = false;
  bool accumulate = true;     // into leaves; false: gradients of `inputs` are the result
  bool allow_unused = false;  // unused inputs have undefined gradients
};

// `inputs`: empty for all leaves. The result has one gradient an input where not accumulating.
RUSHLIGHT_API TensorList run_backward(const TensorList& outputs, const TensorList& gradients,
                                      const TensorList& inputs, const BackwardOptions& options);
// The same from and to edges, for those who hold nodes instead of tensors. `gradients`: one a root.
RUSHLIGHT_API TensorList run_graph(const std::vector<Edge>& roots, TensorList gradients,
                                   const std::vector<Edge>& inputs, const BackwardOptions& options);
// The edge of output `position` of a backward call: Error(Runtime) where it has no graph.
RUSHLIGHT_API Edge root_edge(const Tensor& output, size_t position);
// The edge of an input: Error(Runtime) where it does not require grad.
RUSHLIGHT_API Edge input_edge(const Tensor& input, bool accumulate);

// Installed by the graph (src/graph). Opens capture with the settings for this thread, where none
// is open: true, and the caller closes it; closing computes what was captured, or drops it. Where
// one is open already: false, and what was captured before backward may run now.
extern bool (*open_capture)(uint32_t settings);
extern void (*close_capture)(bool drop);

// The node that this thread runs; null outside backward.
RUSHLIGHT_API Node* running_node();
// Whether the running task uses the gradient along this edge.
bool is_edge_wanted(const Node& node, uint32_t edge);
// Whether the running task will run the node, or gives its gradient back.
RUSHLIGHT_API bool will_run(const Node& node);
// A number for the running task; 0 outside backward.
RUSHLIGHT_API uint64_t running_task();
// Whether the running task leaves nodes what they saved; true outside backward.
RUSHLIGHT_API bool keeps_graph();
// Runs `function` when the running task ends well. Error(Runtime) outside backward.
RUSHLIGHT_API void queue_callback(std::function<void()> function);

}  // namespace rushlight::autograd
