// Normalisation of channels in as few passes as there are: the moments of each channel of each
// sample, which are then joined to those of the channel (or of a group of channels), and one pass
// that normalises. The gradient has two passes: sums of the same rows, and the result.
#include "ops/normalization_channels.h"

#include <rushlight/generated/functions.h>

#include "ops/gradient.h"
#include "ops/invocation.h"
#include "ops/pooling.h"
#include "ops/rows.h"
#include "ops/wide_gradient.h"

namespace rushlight {

using loop::Expr;

namespace {

// Positions of a block of rows where channels are adjacent, at most.
constexpr int64_t kBlock = 1024;

// How the elements of a tensor are seen: rows (N, C, positions...), or, where channels are adjacent
// in memory, (blocks, positions, C).
struct Lanes {
  Tensor rows;
  bool adjacent;
  IntList positions;  // the dimensions of a channel's elements
  IntList channel;    // the shape of an element a channel
};

// Positions of a block: the largest divisor that is not above kBlock, so that blocks are of one
// size.
int64_t block_of(int64_t positions) {
  for (int64_t count = (positions + kBlock - 1) / kBlock; count <= positions / 16; ++count) {
    if (positions % count == 0) {
      return positions / count;
    }
  }
  return positions;
}

Tensor channels_last(const Tensor& x) {
  IntList order{0};
  for (int64_t d = 2; d < x.dim(); ++d) {
    order.push_back(d);
  }
  order.push_back(1);
  return permute(x, order);
}

Tensor channels_second(const Tensor& x) {
  IntList order{0, x.dim() - 1};
  for (int64_t d = 1; d + 1 < x.dim(); ++d) {
    order.push_back(d);
  }
  return permute(x, order);
}

Lanes lanes_of(const Tensor& input, bool by_sample) {
  const int64_t channels = input.sizes()[1];
  const int64_t positions = input.numel() / (input.sizes()[0] * channels);
  const bool last = pooling::is_channels_last(pooling::layout_of(input));
  if (last || positions == 1) {
    const int64_t block = by_sample ? positions : block_of(input.numel() / channels);
    return {reshape(channels_last(input), {input.numel() / channels / block, block, channels}),
            true,
            {1},
            {channels}};
  }
  IntList dims;
  for (int64_t d = 2; d < input.dim(); ++d) {
    dims.push_back(d);
  }
  IntList shape(static_cast<size_t>(input.dim()) - 1, 1);
  shape[0] = channels;
  return {contiguous(input), false, dims, shape};
}

Tensor shaped(const Tensor& x, const IntList& shape) {
  return x.defined() ? reshape(x, shape) : x;
}

// (N, C) by groups.
Tensor grouped(const Tensor& x, int64_t groups) {
  return reshape(x, {x.sizes()[0], groups, x.sizes()[1] / groups});
}

// An element a group, for each channel: as `like`, (N, C) with dimensions of size 1.
Tensor for_channels(const Tensor& by_group, int64_t channels, IntArrayRef like) {
  const int64_t groups = by_group.sizes()[1];
  return reshape(expand(by_group, {by_group.sizes()[0], groups, channels / groups}), like);
}

// Results of lanes, as the input that these were made of.
Tensor restored(const Tensor& rows, const Lanes& lanes, const Tensor& input) {
  if (!lanes.adjacent) {
    return rows;
  }
  IntList last{input.sizes()[0]};
  for (int64_t d = 2; d < input.dim(); ++d) {
    last.push_back(input.sizes()[static_cast<size_t>(d)]);
  }
  last.push_back(input.sizes()[1]);
  return channels_second(reshape(rows, last));
}

void moments_row(Rows& r) {
  Expr x = r.in(0);
  Expr mean = r.sum(x) / r.count();
  Expr gap = x - mean;
  r.store(0, mean);
  r.store(1, r.sum(gap * gap));
}

// Of rows of `count` elements each.
void joined_row(Rows& r) {
  Expr of_row = r.in(0);
  Expr mean = r.sum(of_row) / r.count();
  Expr gap = of_row - mean;
  Expr count = r.scalar(3);
  Expr variance = r.sum(r.in(1) + gap * gap * count) / (r.count() * count);
  r.store(0, mean);
  r.store(1, variance);
  r.store(2, loop::rsqrt(variance + r.scalar(4)));
}

void normalized_row(Rows& r) {
  Expr scale = r.in(2);
  scale = r.has(3) ? scale * r.in(3) : scale;
  Expr y = (r.in(0) - r.in(1)) * scale;
  r.store(0, r.has(4) ? y + r.in(4) : y);
}

void sums_row(Rows& r) {
  Expr grad = r.in(1);
  r.store(0, r.sum(grad));
  r.store(1, r.sum(grad * (r.in(0) - r.in(2))));
}

// Of sums over all that shares statistics, times the weight.
void backward_row(Rows& r) {
  Expr rstd = r.in(3);
  Expr grad = r.has(4) ? r.in(1) * r.in(4) : r.in(1);
  Expr share = r.scalar(7);
  Expr offset = r.in(5) * share;
  Expr slope = r.in(6) * share * (rstd * rstd);
  r.store(0, (grad - offset - (r.in(0) - r.in(2)) * slope) * rstd);
}

// The dimensions of `rows` that share statistics, and the shape in which they are dimensions.
struct Shared {
  IntList shape;
  IntList dims;
};

Shared shared(IntArrayRef sizes, bool adjacent, int64_t groups) {
  Shared made{IntList(sizes), {}};
  const size_t at = adjacent ? 2 : 1;
  if (groups == 0) {
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (d != at) {
        made.dims.push_back(static_cast<int64_t>(d));
      }
    }
    return made;
  }
  made.shape = IntList();
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (d == at) {
      made.shape.push_back(groups);
      made.shape.push_back(sizes[d] / groups);
    } else {
      made.shape.push_back(sizes[d]);
    }
  }
  for (size_t d = 1; d < made.shape.size(); ++d) {
    if (d != at) {
      made.dims.push_back(static_cast<int64_t>(d));
    }
  }
  return made;
}

// Arguments of _channel_normalized.
enum Argument { kSelf, kMean, kRstd, kWeight, kBias, kDims, kEps, kGroups };

// Calls from below have such arguments; the operator called by its name may have any.
void check_lanes(Gradient& g, const Tensor& x) {
  const IntArrayRef dims = g.ints(kDims);
  const int64_t at = !dims.empty() && dims[0] == 1 ? 2 : 1;
  if (dims.empty() || x.dim() <= at) {
    fail(ErrorKind::Runtime, "_channel_normalized",
         "expected self with a dimension of channels besides those of dim, got self of sizes ",
         x.sizes(), " and dim=", dims);
  }
  const auto groups = static_cast<int64_t>(g.real(kGroups));
  const int64_t channels = x.sizes()[static_cast<size_t>(at)];
  if (groups > 0 && channels % groups != 0) {
    fail(ErrorKind::Runtime, "_channel_normalized", "expected groups that divide ", channels,
         " channels, got ", groups);
  }
}

// The gradient in public operators, which may be differentiated: the statistics are functions of
// the input.
void open_gradient(Gradient& g) {
  const Tensor x = g.tensor(kSelf);
  const Tensor weight = g.tensor(kWeight);
  const Tensor grad = g.grad();
  const bool adjacent = g.ints(kDims)[0] == 1;
  if (g.real(kGroups) < 0) {  // the statistics are constants
    const Tensor rstd = g.tensor(kRstd);
    if (g.needs(kSelf)) {
      g.set(kSelf, mul(grad, weight.defined() ? mul(rstd, weight) : rstd));
    }
    if (weight.defined() && g.needs(kWeight)) {
      g.set(kWeight, mul(grad, mul(sub(x, g.tensor(kMean)), rstd)));
    }
    if (!g.is_none(kBias) && g.needs(kBias)) {
      g.set(kBias, grad);
    }
    return;
  }
  const Shared by = shared(x.sizes(), adjacent, static_cast<int64_t>(g.real(kGroups)));
  const auto mean_of = [&](const Tensor& t) { return mean(t, by.dims, true, std::nullopt); };
  const Tensor seen = reshape(x, by.shape);
  const Tensor gap = sub(seen, mean_of(seen));
  const Tensor rstd = rsqrt(add(mean_of(mul(gap, gap)), g.scalar(kEps)));
  const Tensor normal = mul(gap, rstd);
  if (g.needs(kSelf)) {
    const Tensor scaled = reshape(weight.defined() ? mul(grad, weight) : grad, by.shape);
    const Tensor turned =
        sub(sub(scaled, mean_of(scaled)), mul(normal, mean_of(mul(scaled, normal))));
    g.set(kSelf, reshape(mul(rstd, turned), x.sizes()));
  }
  if (weight.defined() && g.needs(kWeight)) {
    g.set(kWeight, mul(grad, reshape(normal, x.sizes())));
  }
  if (!g.is_none(kBias) && g.needs(kBias)) {
    g.set(kBias, grad);
  }
}

void normalized_gradient(Gradient& g) {
  check_lanes(g, g.tensor(kSelf));
  if (thread_state.grad_mode) {
    open_gradient(g);
    return;
  }
  const Tensor x = g.tensor(kSelf);
  const Tensor mean_of = g.tensor(kMean);
  const Tensor rstd = g.tensor(kRstd);
  const Tensor weight = g.tensor(kWeight);
  const IntArrayRef dims = g.ints(kDims);
  const auto groups = static_cast<int64_t>(g.real(kGroups));
  const Tensor grad = contiguous(g.grad());
  const bool wants_weight = weight.defined() && g.needs(kWeight);
  const bool wants_bias = !g.is_none(kBias) && g.needs(kBias);
  if (groups < 0 && g.needs(kSelf)) {
    g.set(kSelf, mul(grad, weight.defined() ? mul(rstd, weight) : rstd));
  }
  if (groups < 0 && !wants_weight && !wants_bias) {
    return;
  }
  auto [sums, products] = _channel_sums(x, grad, mean_of, dims, true);
  Tensor offset = sums;
  Tensor slope = products;
  if (groups <= 0) {
    offset = sum(sums, IntList{0}, true, std::nullopt);
    slope = sum(products, IntList{0}, true, std::nullopt);
  }
  if (wants_weight) {
    g.set(kWeight, mul(slope, rstd));
  }
  if (wants_bias) {
    g.set(kBias, offset);
  }
  if (groups < 0 || !g.needs(kSelf)) {
    return;
  }
  if (weight.defined()) {
    offset = mul(offset, weight);
    slope = mul(slope, weight);
  }
  const int64_t channels = x.sizes()[dims[0] == 1 ? 2 : 1];
  int64_t apart = channels;
  if (groups != 0) {
    const auto joined = [&](const Tensor& t) {
      const Tensor flat = reshape(t, {t.sizes()[0], channels});
      return for_channels(sum(grouped(flat, groups), IntList{2}, true, std::nullopt), channels,
                          t.sizes());
    };
    offset = joined(offset);
    slope = joined(slope);
    apart = x.sizes()[0] * groups;
  }
  const double share = static_cast<double>(apart) / static_cast<double>(x.numel());
  g.set(kSelf,
        _channel_normalized_backward(x, grad, mean_of, rstd, weight, offset, slope, share, dims));
}

}  // namespace

bool normalizes_channels(const Tensor& input) {
  return input.dim() >= 2 && input.numel() != 0 && input.is_floating_point() &&
         (thread_state.doors & (kTransformDoor | kDispatchDoor)) == 0;
}

ChannelsNormalized normalize_channels(const Tensor& input, const Tensor& weight, const Tensor& bias,
                                      int64_t groups, double eps) {
  const Lanes lanes = lanes_of(input, groups != 0);
  const Tensor& rows = lanes.rows;
  const int64_t channels = input.sizes()[1];
  const int64_t outer = rows.sizes()[0];
  const double count = static_cast<double>(input.numel() / (outer * channels));
  auto [means, squares] = _channel_moments(detach(rows), lanes.positions, false);
  ChannelsNormalized made;
  Tensor mean_of;
  Tensor rstd;
  if (groups == 0) {
    auto [joined, variance, scale] = _joined_moments(means, squares, IntList{0}, count, eps, false);
    made.mean = joined;
    made.variance = variance;
    mean_of = shaped(joined, lanes.channel);
    rstd = shaped(scale, lanes.channel);
  } else {
    auto [joined, variance, scale] = _joined_moments(
        grouped(means, groups), grouped(squares, groups), IntList{2}, count, eps, true);
    IntList like{outer, channels};
    if (lanes.adjacent) {
      like = {outer, 1, channels};
    } else {
      like = IntList(static_cast<size_t>(input.dim()), 1);
      like[0] = outer;
      like[1] = channels;
    }
    made.mean = reshape(joined, {outer, groups});
    made.variance = reshape(variance, {outer, groups});
    mean_of = for_channels(joined, channels, like);
    rstd = for_channels(scale, channels, like);
  }
  const Tensor out = _channel_normalized(rows, mean_of, rstd, shaped(weight, lanes.channel),
                                         shaped(bias, lanes.channel), lanes.positions, eps,
                                         static_cast<double>(groups));
  made.out = restored(out, lanes, input);
  return made;
}

Tensor normalize_channels_by(const Tensor& input, const Tensor& mean, const Tensor& variance,
                             const Tensor& weight, const Tensor& bias, double eps) {
  const Lanes lanes = lanes_of(input, false);
  const auto shape = [&](const Tensor& x) { return shaped(x, lanes.channel); };
  const Tensor rstd = rsqrt(add(widened(detach(variance)), Scalar(eps)));
  const Tensor out = _channel_normalized(lanes.rows, shape(widened(detach(mean))), shape(rstd),
                                         shape(weight), shape(bias), lanes.positions, eps, -1);
  return restored(out, lanes, input);
}

RUSHLIGHT_OPERATORS(normalization_channels) {
  const auto rows = [](Entry entry, RowSpec spec) {
    entry.body(Kind::Reduction, make_rows(entry.entry().schema, std::move(spec)));
    return entry;
  };
  const RowResult full{RowShape::Full, RowType::Same};
  const RowResult reduced{RowShape::Reduced, RowType::Compute};

  rows(op("_channel_moments(Tensor self, int[] dim, bool keepdim) -> (Tensor, Tensor)", kInternal)
           .doc("Means of rows, and sums of the squares of what their elements differ by."),
       {{reduced, reduced}, moments_row})
      .not_differentiable();
  rows(op("_joined_moments(Tensor self, Tensor squares, int[] dim, float count, float eps, "
          "bool keepdim) -> (Tensor, Tensor, Tensor)",
          kInternal)
           .doc("Mean, variance and reciprocal deviation of rows of `count` elements, together."),
       {{reduced, reduced, reduced}, joined_row})
      .not_differentiable();
  rows(
      op("_channel_normalized(Tensor self, Tensor mean, Tensor rstd, Tensor? weight, "
         "Tensor? bias, int[] dim, float eps, float groups) -> Tensor",
         kInternal)
          .doc(
              "(self - mean) * rstd * weight + bias; the statistics are those of self, over groups "
              "of the channels of a sample, over the batch (0), or given (-1)."),
      {{full}, normalized_row})
      .gradient("self mean rstd weight", wide_second_order(normalized_gradient))
      .node("NativeBatchNormBackward0");
  rows(op("_channel_sums(Tensor self, Tensor grad, Tensor mean, int[] dim, bool keepdim) "
          "-> (Tensor, Tensor)",
          kInternal)
           .doc("Sums of rows of grad, and of grad * (self - mean)."),
       {{reduced, reduced}, sums_row})
      .not_differentiable();
  rows(op("_channel_normalized_backward(Tensor self, Tensor grad, Tensor mean, Tensor rstd, "
          "Tensor? weight, Tensor offset, Tensor slope, float share, int[] dim) -> Tensor",
          kInternal)
           .doc("Gradient of _channel_normalized by self, from sums over what shares statistics."),
       {{full}, backward_row})
      .not_differentiable();
}

}  // namespace rushlight
