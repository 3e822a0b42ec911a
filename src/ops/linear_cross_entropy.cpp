// Linear cross entropy: the loss of the scores input * weight^T + bias, without holding them.
//
// Internally inputs are (N, F), weights (C, D, F) and biases (C, D), D being the positions that
// each row has a class for; targets are classes (N, D) or distributions (N, C, D).
#include "kernels/linear_cross_entropy.h"

#include <rushlight/generated/functions.h>

#include <cmath>

#include "ops/gradient.h"
#include "ops/operator.h"

namespace rushlight {
namespace {

constexpr std::string_view kName = "linear_cross_entropy";

// Where the operands are in each of the schemas below.
enum : int { kInput, kWeight, kBias, kTarget, kClassWeight, kIgnore, kSmoothing };

const void* element(const Tensor& x, int64_t offset) {
  return static_cast<const char*>(x.data()) + offset * x.element_size();
}

void check_operand(std::string_view what, const Tensor& x, DType dtype, IntArrayRef sizes) {
  if (x.dtype() != dtype || !(x.sizes() == sizes)) {
    fail(ErrorKind::Runtime, kName, "expected ", what, " of ", dtype, " ", sizes, ", got ",
         x.dtype(), " ", x.sizes());
  }
}

// The operands as the kernels need them; `linear_cross_entropy` itself says what is wrong with a
// user's.
void check_operands(const Tensor& input, const Tensor& weight, const Tensor& bias,
                    const Tensor& target, const Tensor& class_weight, int64_t ignored) {
  bool floats = is_floating(input.dtype()) && !is_float8(input.dtype());
  if (!floats || input.dim() != 2 || weight.dim() != 3) {
    fail(ErrorKind::Runtime, kName,
         "expected floating-point input (N, F) and weight (C, D, F), got ", input.dtype(), " ",
         input.sizes(), " and ", weight.sizes());
  }
  DType compute = compute_dtype(input.dtype());
  int64_t classes = weight.sizes()[0];
  int64_t positions = weight.sizes()[1];
  check_operand("weight", weight, input.dtype(), {classes, positions, input.sizes()[1]});
  if (bias.defined()) {
    check_operand("bias", bias, input.dtype(), {classes, positions});
  }
  if (class_weight.defined()) {
    check_operand("class_weight", class_weight, compute, {classes});
  }
  if (target.is_floating_point()) {
    DType kept = target.dtype() == compute ? compute : input.dtype();
    check_operand("target", target, kept, {input.sizes()[0], classes, positions});
    return;
  }
  check_operand("target", target, DType::Int64, {input.sizes()[0], positions});
  if (target.is_meta() || target.numel() == 0) {
    return;
  }
  if (!target.is_contiguous()) {
    fail(ErrorKind::Runtime, kName, "expected a contiguous target");
  }
  const auto* classes_at = target.data_ptr<int64_t>();
  for (int64_t i = 0; i < target.numel(); ++i) {
    if (classes_at[i] != ignored && (classes_at[i] < 0 || classes_at[i] >= classes)) {
      fail(ErrorKind::Index, kName, "Target ", classes_at[i], " is out of bounds.");
    }
  }
}

// The problem of position d of each row.
LinearCrossEntropy problem(const Tensor& input, const Tensor& weight, const Tensor& bias,
                           const Tensor& target, const Tensor& class_weight, int64_t ignored,
                           double smoothing, int64_t d) {
  LinearCrossEntropy made{};
  made.dtype = input.dtype();
  made.rows = input.sizes()[0];
  made.features = input.sizes()[1];
  made.classes = weight.sizes()[0];
  made.input = {input.data(), input.dtype(), input.strides()[0], input.strides()[1]};
  made.weight = {element(weight, d * weight.strides()[1]), weight.dtype(), weight.strides()[0],
                 weight.strides()[2]};
  if (bias.defined()) {
    made.bias = element(bias, d * bias.strides()[1]);
    made.bias_stride = bias.strides()[0];
  }
  made.row_step = weight.sizes()[1];
  if (target.is_floating_point()) {
    made.probabilities = {element(target, d * target.strides()[2]), target.dtype(),
                          target.strides()[0], target.strides()[1]};
  } else {
    made.target = static_cast<const int64_t*>(element(target, d));
  }
  made.class_weight = class_weight.defined() ? class_weight.data() : nullptr;
  made.ignore_index = ignored;
  made.smoothing = smoothing;
  return made;
}

Tensor make_rows_of(const Tensor& input, const Tensor& weight) {
  return make_tensor({input.sizes()[0], weight.sizes()[1]}, compute_dtype(input.dtype()),
                     input.device());
}

void* at(const Tensor& x, int64_t d) {
  return const_cast<void*>(element(x, d));
}

std::tuple<Tensor, Tensor> forward_kernel(const Tensor& input, const Tensor& weight,
                                          const Tensor& bias, const Tensor& target,
                                          const Tensor& class_weight, int64_t ignored,
                                          double smoothing) {
  check_operands(input, weight, bias, target, class_weight, ignored);
  Tensor loss = make_rows_of(input, weight);
  Tensor lse = make_rows_of(input, weight);
  for (int64_t d = 0; d < weight.sizes()[1] && !input.is_meta(); ++d) {
    linear_cross_entropy_forward(
        problem(input, weight, bias, target, class_weight, ignored, smoothing, d), at(loss, d),
        at(lse, d));
  }
  return {loss, lse};
}

// The gradients that are wanted; empty tensors stand for the others.
struct Wanted {
  Tensor input;
  Tensor weight;
  Tensor bias;

  Wanted(const Tensor& x, const Tensor& w, bool of_input, bool of_weight, bool of_bias)
      : input(make_tensor({0}, x.dtype(), x.device())), weight(input), bias(input) {
    if (of_input) {
      input = make_tensor(x.sizes(), compute_dtype(x.dtype()), x.device());
      if (!x.is_meta()) {
        zero_(input);
      }
    }
    if (of_weight) {
      weight = make_tensor(w.sizes(), w.dtype(), w.device());
    }
    if (of_bias) {
      bias = make_tensor({w.sizes()[0], w.sizes()[1]}, w.dtype(), w.device());
    }
    if (x.sizes()[0] == 0 && !x.is_meta()) {
      zero_(weight);
      zero_(bias);
    }
  }

  LinearCrossEntropyGradients at_position(int64_t d) const {
    LinearCrossEntropyGradients made;
    made.input = input.numel() == 0 ? nullptr : input.data();
    if (weight.numel() != 0) {
      made.weight = {at(weight, d * weight.strides()[1]), weight.dtype(), weight.strides()[0], 1};
    }
    if (bias.numel() != 0) {
      made.bias = at(bias, d);
      made.bias_stride = bias.strides()[0];
    }
    return made;
  }

  std::tuple<Tensor, Tensor, Tensor> take(DType dtype) {
    return {input.dtype() == dtype ? input : to(input, dtype), weight, bias};
  }
};

std::tuple<Tensor, Tensor, Tensor> backward_kernel(const Tensor& input, const Tensor& weight,
                                                   const Tensor& bias, const Tensor& target,
                                                   const Tensor& class_weight, int64_t ignored,
                                                   double smoothing, const Tensor& lse,
                                                   const Tensor& loss_grad, const Tensor& lse_grad,
                                                   bool of_input, bool of_weight, bool of_bias) {
  check_operands(input, weight, bias, target, class_weight, ignored);
  IntList rows{input.sizes()[0], weight.sizes()[1]};
  for (const Tensor& each : {lse, loss_grad, lse_grad}) {
    if (each.defined()) {
      check_operand("a value of each row", each, compute_dtype(input.dtype()), rows);
    }
  }
  Wanted wanted(input, weight, of_input, of_weight, of_bias);
  for (int64_t d = 0; d < weight.sizes()[1] && !input.is_meta(); ++d) {
    LinearCrossEntropyGradients gradients = wanted.at_position(d);
    gradients.loss_gradient = loss_grad.defined() ? at(loss_grad, d) : nullptr;
    gradients.logsumexp_gradient = lse_grad.defined() ? at(lse_grad, d) : nullptr;
    linear_cross_entropy_backward(
        problem(input, weight, bias, target, class_weight, ignored, smoothing, d), at(lse, d),
        gradients);
  }
  return wanted.take(input.dtype());
}

template <typename T>
double total_loss(const Tensor& loss, const Tensor& lse, const Tensor& target, int64_t ignored,
                  double loss_scale, double square_scale) {
  const T* losses = loss.data_ptr<T>();
  const T* sums = lse.data_ptr<T>();
  const int64_t* classes = target.is_floating_point() ? nullptr : target.data_ptr<int64_t>();
  double total = 0;
  double squares = 0;
  for (int64_t i = 0; i < loss.numel(); ++i) {
    total += static_cast<double>(losses[i]);
    if (classes == nullptr || classes[i] != ignored) {
      squares += static_cast<double>(sums[i]) * static_cast<double>(sums[i]);
    }
  }
  return total * loss_scale + (square_scale == 0 ? 0 : squares * square_scale);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> fused_kernel(const Tensor& input, const Tensor& weight,
                                                        const Tensor& bias, const Tensor& target,
                                                        const Tensor& class_weight, int64_t ignored,
                                                        double smoothing, double loss_scale,
                                                        double square_scale, bool of_input,
                                                        bool of_weight, bool of_bias) {
  check_operands(input, weight, bias, target, class_weight, ignored);
  Wanted wanted(input, weight, of_input, of_weight, of_bias);
  auto [in, w, b] = wanted.take(input.dtype());
  if (input.is_meta()) {
    return {make_tensor({}, input.dtype(), input.device()), in, w, b};
  }
  Tensor loss = make_rows_of(input, weight);
  Tensor lse = make_rows_of(input, weight);
  for (int64_t d = 0; d < weight.sizes()[1]; ++d) {
    LinearCrossEntropyGradients gradients = wanted.at_position(d);
    gradients.loss_scale = loss_scale;
    gradients.square_scale = square_scale;
    linear_cross_entropy_fused(
        problem(input, weight, bias, target, class_weight, ignored, smoothing, d), at(loss, d),
        at(lse, d), gradients);
  }
  double total = input.dtype() == DType::Float64
                     ? total_loss<double>(loss, lse, target, ignored, loss_scale, square_scale)
                     : total_loss<float>(loss, lse, target, ignored, loss_scale, square_scale);
  return {make_scalar_tensor(Scalar(total), input.dtype()), in, w, b};
}

// ---- gradients -------------------------------------------------------------------------------

// Everything in public operators: what double backward goes through.
struct Open {
  Tensor input;   // (N, F)
  Tensor weight;  // (C D, F)
  Tensor scores;  // (N, C, D)
  Tensor ignored;
  int64_t classes;
  int64_t positions;

  explicit Open(const Gradient& g) : classes(g.sizes(kWeight)[0]), positions(g.sizes(kWeight)[1]) {
    DType compute = compute_dtype(g.dtype(kInput));
    input = to(g.tensor(kInput), compute);
    weight = reshape(to(g.tensor(kWeight), compute), {classes * positions, -1});
    scores = reshape(matmul(input, transpose(weight, 0, 1)), {-1, classes, positions});
    if (!g.is_none(kBias)) {
      scores = add(scores, to(g.tensor(kBias), compute));
    }
    Tensor target = g.tensor(kTarget);
    if (!target.is_floating_point()) {
      ignored = unsqueeze(eq(target, Scalar(g.integer(kIgnore))), 1);
    }
  }

  Tensor wanted(const Gradient& g) const {
    Tensor target = g.tensor(kTarget);
    double smoothing = g.real(kSmoothing);
    Tensor hot = to(target, scores.dtype());
    if (ignored.defined()) {
      Tensor classes_at = masked_fill(unsqueeze(target, 1), ignored, Scalar(0));
      hot = scatter(zeros_like(scores.detach()), 1, classes_at, Scalar(1));
    }
    Tensor made =
        add(mul(hot, Scalar(1 - smoothing)), Scalar(smoothing / static_cast<double>(classes)));
    if (!g.is_none(kClassWeight)) {
      made = mul(made, reshape(g.tensor(kClassWeight), {1, classes, 1}));
    }
    return ignored.defined() ? masked_fill(made, ignored, Scalar(0)) : made;
  }

  // Sets the gradients from those of loss and logsumexp, (N, D) or undefined.
  void set(Gradient& g, const Tensor& loss_grad, const Tensor& lse_grad) const {
    Tensor p = softmax(scores, 1);
    Tensor change;
    if (loss_grad.defined()) {
      Tensor made = wanted(g);
      Tensor mass = sum(made, {1}, true, std::nullopt);
      change = mul(unsqueeze(to(loss_grad, scores.dtype()), 1), sub(mul(p, mass), made));
    }
    if (lse_grad.defined()) {
      Tensor own = mul(unsqueeze(to(lse_grad, scores.dtype()), 1), p);
      change = change.defined() ? add(change, own) : own;
    }
    Tensor flat = reshape(change, {-1, classes * positions});
    g.set(kInput, matmul(flat, weight));
    g.set(kWeight, reshape(matmul(transpose(flat, 0, 1), input), g.sizes(kWeight)));
    if (!g.is_none(kBias)) {
      g.set(kBias, sum(change, {0}, false, std::nullopt));
    }
  }
};

void forward_gradient(Gradient& g) {
  Tensor loss_grad = g.has_grad(0) ? g.grad(0) : Tensor();
  Tensor lse_grad = g.has_grad(1) ? g.grad(1) : Tensor();
  if (!loss_grad.defined() && !lse_grad.defined()) {
    return;
  }
  if (thread_state.grad_mode) {
    Open(g).set(g, loss_grad, lse_grad);
    return;
  }
  bool of_bias = !g.is_none(kBias) && g.needs(kBias);
  auto [in, w, b] = _linear_cross_entropy_backward(
      g.tensor(kInput), g.tensor(kWeight), g.is_none(kBias) ? Tensor() : g.tensor(kBias),
      g.tensor(kTarget), g.is_none(kClassWeight) ? Tensor() : g.tensor(kClassWeight),
      g.integer(kIgnore), g.real(kSmoothing), g.result(1),
      loss_grad.defined() ? contiguous(loss_grad) : zeros_like(g.result(1)),
      lse_grad.defined() ? contiguous(lse_grad) : Tensor(), g.needs(kInput), g.needs(kWeight),
      of_bias);
  g.set(kInput, g.needs(kInput) ? in : Tensor());
  g.set(kWeight, g.needs(kWeight) ? w : Tensor());
  g.set(kBias, of_bias ? b : Tensor());
}

// The gradients are there already. Usually the loss is where backward starts; then they are handed
// on as they are, and unless the graph is retained become the leaves' own.
void fused_gradient(Gradient& g) {
  if (!g.has_grad(0)) {
    return;
  }
  const Tensor& grad = g.grad(0);
  if (thread_state.grad_mode) {
    Open open(g);
    IntList rows{g.sizes(kInput)[0], open.positions};
    Tensor loss_grad = expand(mul(grad, Scalar(g.real(7))), rows);
    Tensor lse_grad;
    if (g.real(8) != 0) {
      Tensor lse = logsumexp(open.scores, {1}, false);
      lse_grad = mul(mul(grad, Scalar(2 * g.real(8))), lse);
      if (open.ignored.defined()) {
        lse_grad = masked_fill(lse_grad, squeeze(open.ignored, 1), Scalar(0));
      }
    }
    open.set(g, loss_grad, lse_grad);
    return;
  }
  bool whole = !grad.is_meta() && grad.item().to_double() == 1;
  for (int argument : {kInput, kWeight, kBias}) {
    if (g.needs(argument) && g.flag(9 + argument)) {
      Tensor made = g.result(1 + argument);
      g.set(argument, whole ? made : mul(made, grad));
    }
  }
}

}  // namespace

RUSHLIGHT_OPERATORS(linear_cross_entropy) {
  op("_linear_cross_entropy(Tensor input, Tensor weight, Tensor? bias, Tensor target, "
     "Tensor? class_weight, int ignore_index, float smoothing) -> (Tensor, Tensor)",
     kInternal)
      .doc("The loss of each row and position, and the logsumexp of its scores.")
      .kernel(forward_kernel)
      .gradient("input weight bias target class_weight result1", forward_gradient);
  op("_linear_cross_entropy_backward(Tensor input, Tensor weight, Tensor? bias, Tensor target, "
     "Tensor? class_weight, int ignore_index, float smoothing, Tensor logsumexp, "
     "Tensor? loss_grad, Tensor? logsumexp_grad, bool of_input, bool of_weight, bool of_bias) "
     "-> (Tensor, Tensor, Tensor)",
     kInternal)
      .doc("Gradients of linear cross entropy by input, weight and bias.")
      .kernel(backward_kernel)
      .not_differentiable();
  op("_linear_cross_entropy_fused(Tensor input, Tensor weight, Tensor? bias, Tensor target, "
     "Tensor? class_weight, int ignore_index, float smoothing, float loss_scale, "
     "float square_scale, bool of_input, bool of_weight, bool of_bias) "
     "-> (Tensor, Tensor, Tensor, Tensor)",
     kInternal)
      .doc("The total loss, and its gradients by input, weight and bias.")
      .kernel(fused_kernel)
      .gradient("input weight bias target class_weight result1 result2 result3", fused_gradient);
}

}  // namespace rushlight
