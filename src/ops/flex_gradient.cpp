// Gradients of flex attention that differentiate again: those of softmax(S) v, written out in
// public operators over the whole matrix of scores. Backward without create_graph never comes here.
#include <rushlight/generated/functions.h>

#include <cmath>

#include "loop/kernel.h"
#include "ops/flex_open.h"

namespace rushlight {
namespace {

using loop::Expr;
using loop::Op;

// Keys or values for each head of the queries.
Tensor for_heads(const Tensor& x, int64_t heads) {
  return x.size(1) == heads ? x : repeat_interleave(x, heads / x.size(1), 1);
}

// The sum over the heads that shared keys or values.
Tensor joined(const Tensor& x, int64_t own) {
  return x.size(1) == own ? x
                          : sum(unflatten(x, 1, {own, x.size(1) / own}), {2}, false, std::nullopt);
}

// Which scores take part, by the states of blocks (0 none, 1 as the mask says, 2 all).
Tensor allowed(Gradient& g, const Tensor& mask, int64_t queries, int64_t keys) {
  Tensor states = g.is_none(flex::kStates) ? Tensor() : g.tensor(flex::kStates);
  if (!states.defined()) {
    return mask;
  }
  Tensor rows = repeat_interleave(states, g.integer(flex::kQBlock), -2);
  Tensor spread = repeat_interleave(rows, g.integer(flex::kKvBlock), -1);
  Tensor state = narrow(narrow(spread, -2, 0, queries), -1, 0, keys);
  Tensor full = eq(state, Scalar(2));
  Tensor some = eq(state, Scalar(1));
  return bitwise_or(full, mask.defined() ? bitwise_and(some, mask) : some);
}

// softmax of the scores that take part; queries without any have no weights.
Tensor weights_of(const Tensor& scores, const Tensor& seen) {
  if (!seen.defined()) {
    return softmax(scores, -1);
  }
  Tensor shown = expand(seen, scores.sizes());
  Tensor blind = logical_not(any(shown, {-1}, true));
  Tensor hidden = masked_fill(scores, logical_not(shown), Scalar(-HUGE_VAL));
  return masked_fill(softmax(masked_fill(hidden, blind, Scalar(0)), -1), blind, Scalar(0));
}

// What gradients of changed scores are for the scores before, and for captured tensors.
struct ScoreGradients {
  Tensor scores;
  TensorList captures;
};

ScoreGradients through(Expr root, const Tensor& upstream, const TensorList& captures,
                       FlexTensors& tensors) {
  const DType compute = upstream.dtype();
  ScoreGradients made{upstream, TensorList(captures.size())};
  if (!root) {
    return made;
  }
  Expr body = root.dtype() == compute ? root : loop::cast(root, compute);
  std::vector<Expr> inputs{loop::scalar(kFlexScore, compute)};
  for (Expr part : loop::post_order({&body, 1})) {
    if (part->op == Op::Load && is_floating(part.dtype()) && captures[part->slot].requires_grad()) {
      inputs.push_back(part);
    }
  }
  tensors.set_upstream(upstream);
  const std::vector<Expr> found =
      loop::differentiate(body, inputs, loop::scalar(FlexTensors::kUpstream, compute));
  made.scores = found[0] ? expand(tensors.value(found[0]), upstream.sizes()) : Tensor();
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (!found[i]) {
      continue;
    }
    const Tensor& captured = captures[inputs[i]->slot];
    Tensor values = expand(tensors.value(found[i]), upstream.sizes());
    TensorList at = tensors.indices(inputs[i]);
    for (Tensor& index : at) {
      index = expand(index, upstream.sizes());
    }
    Tensor part = at.empty() ? sum(values)
                             : index_put(zeros(captured.sizes(), TensorOptions(values.dtype())), at,
                                         values, true);
    Tensor& total = made.captures[inputs[i]->slot];
    total = total.defined() ? add(total, part) : part;
  }
  for (size_t i = 0; i < captures.size(); ++i) {
    if (made.captures[i].defined()) {
      made.captures[i] = to(made.captures[i], captures[i].dtype());
    }
  }
  return made;
}

Expr parsed(std::string_view text) {
  return text.empty() ? Expr{} : loop::parse_expr(std::string(text));
}

}  // namespace

void flex_gradient_open(Gradient& g) {
  Tensor q = g.tensor(flex::kQuery);
  const DType compute = compute_dtype(q.dtype());
  q = to(q, compute);
  Tensor k = for_heads(to(g.tensor(flex::kKey), compute), q.size(1));
  Tensor v = for_heads(to(g.tensor(flex::kValue), compute), q.size(1));
  const Scalar scale(g.real(flex::kScale));
  Tensor plain = mul(matmul(q, transpose(k, -2, -1)), scale);
  const TensorList captures = g.tensors(flex::kCaptures);
  FlexTensors tensors(plain, captures);
  Expr root = parsed(g.text(flex::kScore));
  Tensor scores = root ? expand(to(tensors.value(root), compute), plain.sizes()) : plain;
  Expr mask = parsed(g.text(flex::kMask));
  Tensor seen = allowed(g, mask ? tensors.value(mask) : Tensor(), plain.size(-2), plain.size(-1));
  Tensor weights = weights_of(scores, seen);
  Tensor score_grad = zeros_like(weights);
  if (g.has_grad(0)) {
    Tensor grad = to(g.grad(0), compute);
    Tensor weighted = mul(matmul(grad, transpose(v, -2, -1)), weights);
    score_grad = sub(weighted, mul(weights, sum(weighted, {-1}, true, std::nullopt)));
    g.set(flex::kValue, joined(matmul(transpose(weights, -2, -1), grad), g.sizes(flex::kValue)[1]));
  }
  if (g.has_grad(1)) {
    score_grad = add(score_grad, mul(weights, unsqueeze(to(g.grad(1), compute), -1)));
  }
  ScoreGradients found = through(root, score_grad, captures, tensors);
  if (found.scores.defined()) {
    g.set(flex::kQuery, mul(matmul(found.scores, k), scale));
    g.set(flex::kKey,
          joined(mul(matmul(transpose(found.scores, -2, -1), q), scale), g.sizes(flex::kKey)[1]));
  }
  g.set_list(flex::kCaptures, std::move(found.captures));
}

}  // namespace rushlight
