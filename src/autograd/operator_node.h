// OperatorNode: the node of one operator call, with what the operator's gradient rule reads.
//
// Arguments, shapes, saved tensors and edges lie behind the object in one block.
#pragma once

#include <limits>
#include <span>

#include "autograd/saved_tensor.h"
#include "ops/operator.h"

namespace rushlight::autograd {

// What is known of a tensor argument or result. A list has one for each item.
struct TensorRecord {
  SavedTensor saved;
  const int64_t* dims = nullptr;
  uint16_t rank = 0;
  bool given = false;  // false: None, or a number
  DType dtype = DType::Float32;
  Device device;
  IntArrayRef sizes() const { return {dims, rank}; }
};

struct ArgumentRecord {
  // Numbers and attributes. Of tensors: None where None was given, else `true`.
  Value value;
  uint16_t first = 0;  // its first TensorRecord and edge
  uint16_t count = 0;
  bool is_list = false;
  bool is_tensor() const { return count != 0 && !is_list; }
};

class OperatorNode final : public Node {
 public:
  // Records a call: its arguments must be as they were before the body ran, save that an argument
  // written in place may be replaced by `original` (a copy of what it was). Results must be there,
  // at least their shapes.
  static OperatorNode* make(const Invocation& inv, const Tensor& original);
  ~OperatorNode() override;
  // Saves the results that the gradient rule reads. Once, after the body ran.
  void save_results(const Invocation& inv);

  TensorList apply(TensorList&& gradients) override;
  std::string name() const override;
  // Makes it stand for a composition whose first node had this number: Python sees its name, and as
  // the next nodes those that the composition's arguments came from.
  void stand_for(const char* name, uint64_t first_node) {
    name_ = name;
    first_node_ = first_node;
  }
  std::vector<Edge> outer_edges() const;
  uint32_t input_count() const override { return result_count_; }
  InputMetadata input(uint32_t i) const override;
  void release_saved() override;

  const Operator& op() const { return *op_; }
  std::span<const ArgumentRecord> arguments() const { return {arguments_, argument_count_}; }
  const TensorRecord& argument_tensor(int i) const { return records_[i]; }
  const TensorRecord& result(int i) const { return records_[argument_tensors_ + i]; }
  SavedTensor& saved_argument(int i) { return records_[i].saved; }
  SavedTensor& saved_result(int i) { return records_[argument_tensors_ + i].saved; }
  Tensor unpack_argument(int i);
  Tensor unpack_result(int i);
  bool released() const { return released_; }

 private:
  friend struct NodeLayout;
  explicit OperatorNode(const Operator& op) : op_(&op) { capture_ = thread_state.capture; }
  Tensor unpack(const SavedTensor& saved);

  const Operator* op_;
  const char* name_ = nullptr;  // null: it follows from the operator's
  uint64_t first_node_ = std::numeric_limits<uint64_t>::max();
  ArgumentRecord* arguments_ = nullptr;
  TensorRecord* records_ = nullptr;
  uint16_t argument_count_ = 0;
  uint16_t argument_tensors_ = 0;
  uint16_t result_count_ = 0;
  bool saves_ = false;  // keeps any tensor
  bool released_ = false;
  std::mutex mutex_;  // saved tensors are read and released in any thread
};

// Bit i: this call's gradients read argument i.
uint64_t saved_arguments(const Invocation& inv);

// "MulBackward0": the operator's name, and which of its differentiable overloads it is.
std::string backward_name(const Operator& op);

}  // namespace rushlight::autograd
