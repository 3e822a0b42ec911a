// The public operator of linear cross entropy: checks, and which kernel takes part.
#include <rushlight/generated/functions.h>

#include "kernels/linear_cross_entropy.h"
#include "ops/operator.h"

namespace rushlight {
namespace {

constexpr std::string_view kName = "linear_cross_entropy";

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
  Tensor flat = flatten(weight, 0, -2);
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
  Tensor weights = class_weight.defined() ? contiguous(to(class_weight, DType::Float64)) : Tensor();
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

RUSHLIGHT_OPERATORS(linear_cross_entropy_loss) {
  op("linear_cross_entropy(Tensor input, Tensor linear_weight, Tensor target, *, "
     "Tensor? linear_bias=None, Tensor? weight=None, int reduction=1, int? ignore_index=None, "
     "float label_smoothing=0.0, float z_loss=0.0) -> Tensor",
     kNN)
      .doc("Cross entropy of the scores of a linear layer, which are never held together.")
      .composition(linear_cross_entropy_of);
}

}  // namespace rushlight
