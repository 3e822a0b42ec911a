// FunctionNode: the node of a custom function, written by a user in C++ or Python.
#pragma once

#include <functional>

#include "autograd/saved_tensor.h"

namespace rushlight::autograd {

class FunctionNode final : public Node {
 public:
  // The user's backward: gradients of all results in, one an argument out.
  using Backward = std::function<TensorList(FunctionNode& node, TensorList gradients)>;

  FunctionNode(std::string name, Backward backward)
      : name_(std::move(name)), backward_(std::move(backward)) {
    context.node_ = this;
  }

  // Before forward. `arguments`: the tensors among the arguments; `is_tensor`: which these are.
  void begin(const TensorList& arguments, std::vector<bool> is_tensor);
  // After forward: puts its results into the graph, obeying what the context was told. The tensors
  // returned stand for them; an undefined one stays undefined.
  TensorList finish(const TensorList& arguments, TensorList results);

  TensorList apply(TensorList&& gradients) override;
  std::string name() const override { return name_; }
  uint32_t input_count() const override { return static_cast<uint32_t>(results_.size()); }
  InputMetadata input(uint32_t i) const override {
    return {results_[i].sizes, results_[i].dtype, results_[i].device};
  }
  void release_saved() override;

  bool needs_input_grad(size_t argument) const;
  TensorList saved_tensors();
  std::vector<SavedTensor>& saved() { return saved_; }
  bool released() const { return released_; }
  bool records() const { return records_; }

  AutogradContext context;
  // The foreign half (a Python object), dropped with the node.
  std::shared_ptr<void> companion;

 private:
  struct Result {
    IntList sizes;
    DType dtype = DType::Float32;
    Device device;
    bool differentiable = false;
    bool is_tensor = false;
  };
  Tensor finish_one(const TensorList& arguments, const Tensor& result, uint32_t position);
  Tensor finish_dirty(const TensorList& arguments, size_t argument, uint32_t position);
  void save(const TensorList& results);
  void check_dirty(const TensorList& results) const;

  std::string name_;
  Backward backward_;
  bool records_ = false;  // grad mode was on and an argument requires grad
  bool released_ = false;
  std::vector<bool> is_tensor_;   // one an argument
  std::vector<bool> needs_grad_;  // one a tensor argument
  std::vector<Edge> own_edges_;   // one a tensor argument
  std::vector<Result> results_;
  std::vector<SavedTensor> saved_;
  std::mutex mutex_;
};

}  // namespace rushlight::autograd
