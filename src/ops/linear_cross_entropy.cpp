// Linear cross entropy: the loss of the scores input * weight^T + bias, without holding them.
//
// Internally inputs are (N, F), weights (C, D, F) and biases (C, D), D being the positions that
// each row has a class for; targets are classes (N, D) or distributions (N, C, D).
#include "kernels/linear_cross_entropy.h"

#include <rushlight/generated/functions.h>

#include <cmath>

#include "ops/gradient.h"
#include "ops/loss.h"
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

// ---- the public operator ---------------------------------------------------------------------

void check_operands(const Tensor& input, const Tensor& weight, const Tensor& target,
                    const Tensor& bias, bool has_ignored) {
  if (input.dim() != 1 && input.dim() != 2) {
    fail(ErrorKind::Runtime, kName, "expected input with dimensionality 1 or 2, got ", input.dim());
  }
  if (weight.dim() < 2) {
    fail(ErrorKind::Runtime, kName, "expected linear_weight with dimensionality at least 2, got ",
         weight.dim());
  }
  if (input.size(-1) != weight.size(-1)) {
    fail(ErrorKind::Runtime, kName,
         "expected equal input and linear_weight last dimensions (in_features), got ",
         input.size(-1), " and ", weight.size(-1), ", respectively");
  }
  if (weight.dim() > 2 && input.dim() == 1) {
    fail(ErrorKind::Runtime, kName, "K-dimensional loss defined by linear_weight shape ",
         weight.sizes(), " requires batched input, (N, ", weight.size(-1),
         "), got unbatched input with shape ", input.sizes());
  }
  IntList expected(weight.sizes());
  expected.resize(expected.size() - 1);
  if (bias.defined() && !(bias.sizes() == expected)) {
    fail(ErrorKind::Runtime, kName, "expected linear_bias shape ", expected, ", got ",
         bias.sizes());
  }
  if (target.is_floating_point()) {
    if (has_ignored) {
      fail(ErrorKind::Runtime, kName,
           "ignore_index cannot be specified when target contains probabilities");
    }
  } else if (target.dtype() != DType::Int64 && target.dtype() != DType::UInt8) {
    fail(ErrorKind::Runtime, kName, "expected target dtype to be Long or Byte, but got ",
         scalar_type_name(target.dtype()));
  }
}

// The same by operators that hold the scores: for what the kernels do not take.
Tensor reference(const Tensor& input, const Tensor& weight, const Tensor& target,
                 const Tensor& bias, const Tensor& class_weight, int64_t reduction, int64_t ignored,
                 double smoothing, double z_loss) {
  IntList shape(weight.sizes());
  shape.resize(shape.size() - 1);
  Tensor flat = reshape(weight, {-1, weight.size(-1)});
  Tensor scores = linear(input, flat, bias.defined() ? reshape(bias, {-1}) : Tensor());
  if (input.dim() == 2) {
    shape.insert(0, input.size(0));
  }
  scores = reshape(scores, shape);
  Tensor loss = cross_entropy_loss(scores, target, class_weight, reduction, ignored, smoothing);
  if (z_loss == 0) {
    return loss;
  }
  Tensor squares = square(logsumexp(scores, {input.dim() == 2 ? 1 : 0}, false));
  Tensor count = full({}, Scalar(squares.numel()), squares.options());
  if (!target.is_floating_point()) {
    Tensor out = eq(target, Scalar(ignored));
    squares = masked_fill(squares, out, Scalar(0));
    count = sum(logical_not(out));
  }
  Tensor extra = reduction == 0 ? squares : sum(squares);
  return add(loss, mul(reduction == 1 ? div(extra, count) : extra, Scalar(z_loss)));
}

// The target as the kernels take it: classes in range, or a distribution for each row.
Tensor prepare_target(const Tensor& target, IntArrayRef rows, int64_t classes, int64_t ignored,
                      DType compute) {
  if (target.is_floating_point()) {
    bool widens = target.dtype() == compute ||
                  (compute == DType::Float32 && compute_dtype(target.dtype()) == compute);
    return reshape(widens ? target : to(target, compute), {rows[0], classes, rows[1]});
  }
  Tensor made = contiguous(reshape(to(target, DType::Int64), rows));
  const int64_t* values = made.data_ptr<int64_t>();
  for (int64_t i = 0; i < made.numel(); ++i) {
    if ((values[i] < 0 || values[i] >= classes) && values[i] != ignored) {
      fail(ErrorKind::Index, kName, "Target ", values[i],
           " is out of bounds: expected a class in [0, ", classes, ") or ignore_index ", ignored);
    }
  }
  return made;
}

bool target_fits(const Tensor& input, const Tensor& weight, const Tensor& target) {
  IntList expected(weight.sizes());
  expected.resize(expected.size() - 1);
  if (!target.is_floating_point()) {
    expected.erase(0);
  }
  if (input.dim() == 2) {
    expected.insert(0, input.size(0));
  }
  return target.sizes() == expected;
}

struct Divisors {
  double loss = 1;
  double squares = 1;
};

// What a mean divides by: the weight of the rows' classes, and the number of rows that count.
Divisors divisors(const Tensor& target, const Tensor& class_weight, int64_t ignored, int64_t rows) {
  if (target.is_floating_point()) {
    return {static_cast<double>(rows), static_cast<double>(rows)};
  }
  Divisors made{0, 0};
  Tensor weights = class_weight.defined() ? to(class_weight, DType::Float64) : Tensor();
  const int64_t* values = target.data_ptr<int64_t>();
  for (int64_t i = 0; i < target.numel(); ++i) {
    if (values[i] != ignored) {
      made.squares += 1;
      made.loss += weights.defined() ? weights.data_ptr<double>()[values[i]] : 1;
    }
  }
  return made;
}

// In an autocast region the product is one of half types where any operand is, and the loss f32.
bool in_autocast() {
  return (thread_state.doors & kAutocastDoor) != 0;
}

Tensor lowered(const Tensor& x, const Tensor& like, const Tensor& other) {
  if (!in_autocast() || !x.defined() || x.dtype() != DType::Float32) {
    return x;
  }
  for (const Tensor* half : {&like, &other}) {
    if (half->dtype() == DType::BFloat16 || half->dtype() == DType::Float16) {
      return to(x, half->dtype());
    }
  }
  return x;
}

Tensor linear_cross_entropy_of(const Tensor& given_input, const Tensor& given_weight,
                               const Tensor& target, const Tensor& given_bias,
                               const Tensor& class_weight, int64_t reduction,
                               std::optional<int64_t> ignore_index, double smoothing,
                               double z_loss) {
  check_operands(given_input, given_weight, target, given_bias, ignore_index.has_value());
  const Tensor input = lowered(given_input, given_input, given_weight);
  const Tensor weight = lowered(given_weight, given_input, given_weight);
  const Tensor bias = lowered(given_bias, given_input, given_weight);
  const int64_t ignored = ignore_index.value_or(-100);
  const int64_t classes = weight.sizes()[0];
  const bool one_dtype = input.dtype() == weight.dtype() &&
                         (!bias.defined() || bias.dtype() == input.dtype()) &&
                         input.is_floating_point() && !is_float8(input.dtype());
  const bool constants =
      !target.requires_grad() && !(class_weight.defined() && class_weight.requires_grad());
  const bool plain = !input.is_meta() && !weight.is_meta() && !target.is_meta() &&
                     input.numel() != 0 && weight.numel() != 0;
  const bool sound =
      smoothing >= 0 && smoothing <= 1 && target_fits(input, weight, target) &&
      !(class_weight.defined() && !(class_weight.dim() == 1 && class_weight.numel() == classes));
  if (!one_dtype || !constants || !plain || !sound) {
    return reference(input, weight, target, bias, class_weight, reduction, ignored, smoothing,
                     z_loss);
  }
  DType compute = compute_dtype(input.dtype());
  DType returned = in_autocast() ? compute : input.dtype();
  Tensor x = input.dim() == 1 ? unsqueeze(input, 0) : input;
  Tensor w = reshape(weight, {classes, -1, weight.size(-1)});
  Tensor b = bias.defined() ? reshape(bias, {classes, -1}) : Tensor();
  Tensor t = prepare_target(target, {x.size(0), w.size(1)}, classes, ignored, compute);
  Tensor cw = class_weight.defined() ? contiguous(to(class_weight, compute)) : Tensor();
  IntList rows{x.size(0), w.size(1)};
  Divisors by;
  if (reduction == 1) {
    by = divisors(t, class_weight, ignored, rows[0] * rows[1]);
  }
  bool of_bias = b.defined() && b.requires_grad();
  bool trains = thread_state.grad_mode && (x.requires_grad() || w.requires_grad() || of_bias);
  const bool held = input.dtype() == compute && classes * element_size(compute) * 16 <= kHeldScores;
  if (trains && reduction != 0 && held) {
    return std::get<0>(_linear_cross_entropy_fused(x, w, b, t, cw, ignored, smoothing, 1 / by.loss,
                                                   z_loss / by.squares, x.requires_grad(),
                                                   w.requires_grad(), of_bias));
  }
  auto [loss, lse] = _linear_cross_entropy(x, w, b, t, cw, ignored, smoothing);
  Tensor squares;
  if (z_loss != 0) {
    squares = square(lse);
    if (!t.is_floating_point()) {
      squares = masked_fill(squares, eq(t, Scalar(ignored)), Scalar(0));
    }
  }
  if (reduction == 0) {
    Tensor made = squares.defined() ? add(loss, mul(squares, Scalar(z_loss))) : loss;
    IntList shape(weight.sizes());
    shape.resize(shape.size() - 1);
    shape.erase(0);
    if (input.dim() == 2) {
      shape.insert(0, input.size(0));
    }
    return to(reshape(made, shape), returned);
  }
  Tensor total = mul(sum(loss), Scalar(1 / by.loss));
  if (squares.defined()) {
    total = add(total, mul(sum(squares), Scalar(z_loss / by.squares)));
  }
  return to(total, returned);
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
  op("linear_cross_entropy(Tensor input, Tensor linear_weight, Tensor target, *, "
     "Tensor? linear_bias=None, Tensor? weight=None, int reduction=1, int? ignore_index=None, "
     "float label_smoothing=0.0, float z_loss=0.0) -> Tensor",
     kNN)
      .doc("Cross entropy of the scores of a linear layer, which are never held together.")
      .composition(linear_cross_entropy_of);
}

}  // namespace rushlight
