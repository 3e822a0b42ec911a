// Connectionist temporal classification.
#include <rushlight/generated/functions.h>

#include <limits>

#include "kernels/copy.h"
#include "kernels/ctc.h"
#include "kernels/index.h"
#include "ops/gradient.h"
#include "ops/loss.h"
#include "ops/operator.h"

namespace rushlight {
namespace {

// Lists that the kernel reads, checked; the tensors keep their memory.
struct CtcLists {
  Tensor targets;
  Tensor labels;
  Tensor steps;
  std::vector<int64_t> first;
  int64_t most_labels = 0;

  kernels::CtcProblem problem(int64_t blank) const {
    const auto read = [](const Tensor& list) { return static_cast<const int64_t*>(list.data()); };
    return {read(targets), first.data(), read(labels), read(steps), blank};
  }
};

constexpr const char* kOp = "ctc_loss";

void check_ctc_types(const Tensor& log_probs, const Tensor& targets, int64_t blank) {
  if (log_probs.dtype() != DType::Float32 && log_probs.dtype() != DType::Float64) {
    fail(ErrorKind::NotImplemented, "", "\"ctc_loss_cpu\" not implemented for '",
         scalar_type_name(log_probs.dtype()), "'");
  }
  if (log_probs.dim() != 3) {
    fail(ErrorKind::Runtime, kOp, "log_probs must be (T, N, C) or (T, C), got sizes ",
         log_probs.sizes());
  }
  if (targets.dtype() != DType::Int64 && targets.dtype() != DType::Int32) {
    fail(ErrorKind::Runtime, "",
         "Expected tensor for argument 'targets' to have one of the following scalar types: Long, "
         "Int; but got torch.",
         scalar_type_name(targets.dtype()),
         "Tensor instead (while checking arguments for ctc_loss_cpu)");
  }
  if (targets.dim() != 1 && targets.dim() != 2) {
    fail(ErrorKind::Runtime, kOp, "targets must be (N, S), or 1-D and joined, got sizes ",
         targets.sizes());
  }
  if (blank < 0 || blank >= log_probs.size(2)) {
    fail(ErrorKind::Runtime, kOp, "blank must be in label range [0, ", log_probs.size(2), "), got ",
         blank);
  }
}

Tensor read_lengths(const Tensor& lengths, int64_t batch, std::string_view name) {
  if (lengths.dtype() == DType::Bool || is_floating(lengths.dtype())) {
    fail(ErrorKind::Runtime, kOp, name, " must be integral, got ", lengths.dtype());
  }
  if (lengths.numel() != batch) {
    fail(ErrorKind::Runtime, kOp, name, " must be of size batch_size: expected ", batch,
         " numbers, got ", lengths.numel());
  }
  return kernels::as_contiguous(kernels::as_dtype(lengths, DType::Int64));
}

CtcLists read_lists(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                    const Tensor& target_lengths, int64_t blank) {
  check_ctc_types(log_probs, targets, blank);
  const int64_t batch = log_probs.size(1);
  CtcLists lists;
  lists.steps = read_lengths(input_lengths, batch, "input_lengths");
  lists.labels = read_lengths(target_lengths, batch, "target_lengths");
  lists.targets = kernels::index_values(targets);
  const auto* steps = static_cast<const int64_t*>(lists.steps.data());
  const auto* labels = static_cast<const int64_t*>(lists.labels.data());
  const bool joined = targets.dim() == 1;
  int64_t total = 0;
  for (int64_t b = 0; b < batch; ++b) {
    if (steps[b] < 0 || steps[b] > log_probs.size(0)) {
      fail(ErrorKind::Runtime, kOp, "Expected input_lengths to have value at most ",
           log_probs.size(0), " and at least 0, but got value ", steps[b]);
    }
    if (labels[b] < 0) {
      fail(ErrorKind::Runtime, kOp, "Expected target_lengths to have value at least 0, but got ",
           "value ", labels[b]);
    }
    lists.first.push_back(joined ? total : b * targets.size(1));
    total += labels[b];
    lists.most_labels = std::max(lists.most_labels, labels[b]);
  }
  if (joined ? total != targets.size(0) : lists.most_labels > targets.size(1)) {
    fail(ErrorKind::Runtime, kOp, "Expected tensor 'targets' to have size ",
         joined ? "equal to the sum " : "at least ", joined ? total : lists.most_labels,
         joined ? " of target_lengths" : " at dimension 1", ", but got sizes ", targets.sizes());
  }
  if (!joined && targets.size(0) != batch) {
    fail(ErrorKind::Runtime, kOp, "Expected tensor 'targets' to have size ", batch,
         " at dimension 0, but got sizes ", targets.sizes());
  }
  const auto* values = static_cast<const int64_t*>(lists.targets.data());
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t* own = values + lists.first[static_cast<size_t>(b)];
    for (int64_t i = 0; i < labels[b]; ++i) {
      if (own[i] < 0 || own[i] >= log_probs.size(2)) {
        fail(ErrorKind::Runtime, kOp, "targets must be in label range [0, ", log_probs.size(2),
             "), but sample ", b, " has ", own[i]);
      }
    }
  }
  return lists;
}

std::tuple<Tensor, Tensor> losses(const Tensor& log_probs, const Tensor& targets,
                                  const Tensor& input_lengths, const Tensor& target_lengths,
                                  int64_t blank, bool) {
  if (log_probs.is_meta()) {
    check_ctc_types(log_probs, targets, blank);
    const int64_t most = targets.size(-1);
    return {make_tensor({log_probs.size(1)}, log_probs.dtype(), log_probs.device()),
            make_tensor({log_probs.size(1), log_probs.size(0), 2 * most + 1}, log_probs.dtype(),
                        log_probs.device())};
  }
  const CtcLists lists = read_lists(log_probs, targets, input_lengths, target_lengths, blank);
  const Tensor loss = make_tensor({log_probs.size(1)}, log_probs.dtype());
  const Tensor alpha = make_tensor(
      {log_probs.size(1), log_probs.size(0), 2 * lists.most_labels + 1}, log_probs.dtype());
  kernels::ctc_loss(loss, alpha, kernels::as_contiguous(log_probs), lists.problem(blank));
  return {loss, alpha};
}

Tensor losses_back(const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                   const Tensor& input_lengths, const Tensor& target_lengths, int64_t blank,
                   bool zero_infinity) {
  const Tensor made = make_tensor(log_probs.sizes(), log_probs.dtype(), log_probs.device());
  if (!made.is_meta()) {
    const CtcLists lists = read_lists(log_probs, targets, input_lengths, target_lengths, blank);
    kernels::ctc_loss_gradient(made, kernels::as_contiguous(grad),
                               kernels::as_contiguous(log_probs), lists.problem(blank),
                               zero_infinity);
  }
  return made;
}

Tensor reduced(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
               const Tensor& target_lengths, int64_t blank, int64_t reduction, bool zero_infinity) {
  const bool batched = log_probs.dim() == 3;
  const Tensor all = batched ? log_probs : unsqueeze(log_probs, 1);
  Tensor loss =
      std::get<0>(_ctc_loss(all, targets, input_lengths, target_lengths, blank, zero_infinity));
  if (zero_infinity) {
    const Scalar never(std::numeric_limits<double>::infinity());
    loss = where(eq(loss, never), Scalar(0), loss);
  }
  if (reduction == 1) {
    const Tensor lengths = clamp_min(to(reshape(target_lengths, {-1}), loss.dtype()), Scalar(1));
    return reduce_loss(div(loss, lengths), reduction);
  }
  if (reduction == 2) {
    return reduce_loss(loss, reduction);
  }
  return batched ? loss : squeeze(loss, 0);
}

Tensor as_tensor(IntArrayRef list) {
  const Tensor made = make_tensor({static_cast<int64_t>(list.size())}, DType::Int64);
  std::copy(list.begin(), list.end(), static_cast<int64_t*>(made.data()));
  return made;
}

}  // namespace

RUSHLIGHT_OPERATORS(loss_ctc) {
  op("ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, "
     "int[] target_lengths, int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor",
     kFunction)
      .doc("The connectionist temporal classification loss of (T, N, C).")
      .composition([](const Tensor& log_probs, const Tensor& targets, IntArrayRef input_lengths,
                      IntArrayRef target_lengths, int64_t blank, int64_t reduction,
                      bool zero_infinity) {
        return reduced(log_probs, targets, as_tensor(input_lengths), as_tensor(target_lengths),
                       blank, reduction, zero_infinity);
      });
  op("ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, "
     "Tensor target_lengths, int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor",
     kFunction)
      .doc("The connectionist temporal classification loss of (T, N, C).")
      .composition(reduced);
  op("_ctc_loss(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, "
     "int blank=0, bool zero_infinity=False) -> (Tensor, Tensor)",
     kFunction)
      .doc("The loss of each sample, and the log probabilities of the prefixes.")
      .kernel(losses)
      .gradient("log_probs targets input_lengths target_lengths",
                [](Gradient& g) {
                  if (g.has_grad(0)) {
                    g.set(0, _ctc_loss_backward(g.grad(), g.tensor(0), g.tensor(1), g.tensor(2),
                                                g.tensor(3), g.integer(4), g.flag(5)));
                  }
                })
      .node("CtcLossBackward0");
  op("_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, Tensor input_lengths, "
     "Tensor target_lengths, int blank, bool zero_infinity=False) -> Tensor",
     kInternal)
      .doc("The gradient of _ctc_loss.")
      .kernel(losses_back)
      .gradient("", [](Gradient&) {
        fail(ErrorKind::Runtime, "", "derivative for aten::_ctc_loss_backward is not implemented");
      });
}

}  // namespace rushlight
