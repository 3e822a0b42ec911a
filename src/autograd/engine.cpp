#include "autograd/engine.h"

#include <exception>
#include <thread>

#include "autograd/graph_task.h"
#include "autograd/meta.h"
#include "autograd/node_run.h"
#include "ops/invocation.h"

namespace rushlight::autograd {

bool (*open_capture)(uint32_t settings) = nullptr;
void (*close_capture)(bool drop) = nullptr;

namespace {

thread_local GraphTask* current_task __attribute__((tls_model("initial-exec"))) = nullptr;
thread_local int depth __attribute__((tls_model("initial-exec"))) = 0;

// Backward inside backward beyond this depth goes on with a stack of its own.
constexpr int kMaxDepth = 60;

// The mode that a task runs in, and the task itself, for a scope.
class TaskScope {
 public:
  explicit TaskScope(GraphTask* task)
      : previous_(current_task), grad_mode_(thread_state.grad_mode) {
    current_task = task;
    ++depth;
    thread_state.grad_mode = task->options().create_graph;
  }
  ~TaskScope() {
    current_task = previous_;
    --depth;
    thread_state.grad_mode = grad_mode_;
  }
  TaskScope(const TaskScope&) = delete;

 private:
  GraphTask* previous_;
  bool grad_mode_;
};

TensorList run_task(GraphTask& task, TensorList gradients) {
  TaskScope scope(&task);
  return task.run(std::move(gradients));
}

TensorList run_in_thread(GraphTask& task, TensorList gradients) {
  TensorList result;
  std::exception_ptr error;
  ThreadState state = thread_state;
  std::thread thread([&] {
    thread_state = state;
    try {
      result = run_task(task, std::move(gradients));
    } catch (...) {
      error = std::current_exception();
    }
  });
  thread.join();
  if (error) {
    std::rethrow_exception(error);
  }
  return result;
}

std::string size_text(IntArrayRef sizes) {
  return cat("torch.Size(", sizes, ")");
}

// The gradient of root `position`: the given one, checked, or one for a single element.
Tensor root_gradient(const InputMetadata& output, const Tensor& given, size_t position) {
  if (given.defined()) {
    if (!(given.sizes() == output.sizes)) {
      fail(ErrorKind::Runtime, "", "Mismatch in shape: grad_output[", position, "] has a shape of ",
           size_text(given.sizes()), " and output[", position, "] has a shape of ",
           size_text(output.sizes), ".");
    }
    if (is_complex(given.dtype()) != is_complex(output.dtype)) {
      fail(ErrorKind::Runtime, "",
           "For complex Tensors, both grad_output and output are required to have the same dtype. "
           "Mismatch in dtype: grad_output[",
           position, "] has a dtype of ", given.dtype(), " and output[", position,
           "] has a dtype of ", output.dtype, ".");
    }
    return given;
  }
  for (int64_t size : output.sizes) {
    if (size != 1) {
      fail(ErrorKind::Runtime, "", "grad can be implicitly created only for scalar outputs");
    }
  }
  if (!is_floating(output.dtype)) {
    fail(ErrorKind::Runtime, "",
         "grad can be implicitly created only for real scalar outputs but got torch.",
         output.dtype);
  }
  return ops::one(output.sizes, output.dtype, output.device);
}

}  // namespace

Edge root_edge(const Tensor& output, size_t position) {
  Edge edge = gradient_edge(output);
  if (!edge) {
    fail(ErrorKind::Runtime, "", "element ", position,
         " of tensors does not require grad and does not have a grad_fn");
  }
  return edge;
}

Edge input_edge(const Tensor& input, bool accumulate) {
  if (!input.defined() || !input.requires_grad()) {
    fail(ErrorKind::Runtime, "", "One of the differentiated Tensors does not require grad");
  }
  if (accumulate) {
    input.retain_grad();
  }
  return gradient_edge(input);
}

TensorList run_graph(const std::vector<Edge>& roots, TensorList gradients,
                     const std::vector<Edge>& inputs, const BackwardOptions& options) {
  gradients.resize(roots.size());
  for (size_t i = 0; i < roots.size(); ++i) {
    InputMetadata output = roots[i].node->input(roots[i].input);
    gradients[i] = root_gradient(output, gradients[i], i);
    fit_gradient(gradients[i], output, cat("invalid gradient at index ", i));
  }
  GraphTask task(roots, inputs, options);
  TensorList result = depth < kMaxDepth ? run_task(task, std::move(gradients))
                                        : run_in_thread(task, std::move(gradients));
  if (options.accumulate) {
    return {};
  }
  for (size_t i = 0; i < result.size(); ++i) {
    if (!result[i].defined() && !options.allow_unused) {
      fail(ErrorKind::Runtime, "", "The differentiated Tensor at index ", i,
           " appears to not have been used in the graph. Set allow_unused=True if this is the "
           "desired behavior.");
    }
  }
  return result;
}

TensorList run_backward(const TensorList& outputs, const TensorList& gradients,
                        const TensorList& inputs, const BackwardOptions& options) {
  if (!gradients.empty() && gradients.size() != outputs.size()) {
    fail(ErrorKind::Runtime, "", "got ", outputs.size(), " tensors and ", gradients.size(),
         " gradients");
  }
  std::vector<Edge> roots;
  roots.reserve(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    roots.push_back(root_edge(outputs[i], i));
  }
  std::vector<Edge> wanted;
  wanted.reserve(inputs.size());
  for (const Tensor& input : inputs) {
    wanted.push_back(input_edge(input, options.accumulate));
  }
  return run_graph(roots, gradients, wanted, options);
}

bool is_edge_wanted(const Node& node, uint32_t edge) {
  return current_task == nullptr || current_task->is_wanted(node.edge(edge).node.get());
}

bool will_run(const Node& node) {
  return current_task != nullptr && current_task->reaches(&node) && current_task->is_wanted(&node);
}

uint64_t running_task() {
  return current_task != nullptr ? current_task->id() : 0;
}

bool keeps_graph() {
  return current_task == nullptr || current_task->keeps_graph();
}

void queue_callback(std::function<void()> function) {
  if (current_task == nullptr) {
    fail(ErrorKind::Runtime, "", "Final callbacks can only be installed during backward pass.");
  }
  current_task->add_callback(std::move(function));
}

void backward(const TensorList& tensors, const TensorList& gradients,
              std::optional<bool> retain_graph, bool create_graph, const TensorList& inputs) {
  run_backward(tensors, gradients, inputs,
               {retain_graph.value_or(create_graph), create_graph, true, true});
}

TensorList grad(const TensorList& outputs, const TensorList& inputs, const TensorList& gradients,
                std::optional<bool> retain_graph, bool create_graph, bool allow_unused) {
  if (inputs.empty()) {
    fail(ErrorKind::Value, "", "grad requires non-empty inputs.");
  }
  return run_backward(outputs, gradients, inputs,
                      {retain_graph.value_or(create_graph), create_graph, false, allow_unused});
}

}  // namespace rushlight::autograd
