#include "ops/flex_kernels.h"

#include <limits>
#include <mutex>
#include <unordered_map>

#include "runtime/kernel_cache.h"

namespace rushlight {

using loop::Expr;

namespace {

// Buffers of a tile kernel: the scores, their gradients, the captured tensors, their sums.
constexpr int kFirstCapture = 2;
constexpr size_t kMostCaptures = 40;
constexpr size_t kMostBuffers = kFirstCapture + 2 * kMostCaptures;

// Scalars of a kernel: batch, head and the first query and key as i32, the latter two as i64 too.
const std::vector<DType> kScalars = {DType::Int32, DType::Int32, DType::Int32,
                                     DType::Int32, DType::Int64, DType::Int64};

struct PlaceScalars {
  uint64_t bits[6];
  PlaceScalars(int64_t batch, int64_t head, int64_t query, int64_t key)
      : bits{static_cast<uint64_t>(batch), static_cast<uint64_t>(head),
             static_cast<uint64_t>(query), static_cast<uint64_t>(key),
             static_cast<uint64_t>(query), static_cast<uint64_t>(key)} {}
};

FlexPlace place_on(int query_axis, int key_axis, Expr score, int first_buffer) {
  auto at = [](int axis, int slot) {
    return loop::cast(loop::index(axis), DType::Int32) + loop::scalar(slot, DType::Int32);
  };
  FlexPlace made{};
  made.scalars = {score, loop::scalar(0, DType::Int32), loop::scalar(1, DType::Int32),
                  at(query_axis, 2), at(key_axis, 3)};
  made.wide = {Expr{}, loop::cast(made.scalars[kFlexBatch], DType::Int64),
               loop::cast(made.scalars[kFlexHead], DType::Int64),
               loop::index(query_axis) + loop::scalar(4, DType::Int64),
               loop::index(key_axis) + loop::scalar(5, DType::Int64)};
  made.first_buffer = first_buffer;
  return made;
}

std::vector<Expr> tile_indices() {
  return {loop::index(0), loop::index(1)};
}

bool contains(Expr root, Expr part) {
  for (Expr expr : loop::post_order({&root, 1})) {
    if (same(expr, part)) {
      return true;
    }
  }
  return false;
}

Expr as(Expr x, DType dtype) {
  return x.dtype() == dtype ? x : loop::cast(x, dtype);
}

}  // namespace

FlexModifier::FlexModifier(DType compute, const FlexFunction& score, const FlexFunction& mask)
    : compute_(compute),
      score_(score),
      mask_(mask),
      captures_(score ? score.captures() : mask.captures()),
      strides_(capture_strides(captures_)),
      whole_rows_(!(score && score.loads_by(kFlexQuery)) && !(mask && mask.loads_by(kFlexQuery))) {
  if (captures_.size() > kMostCaptures) {
    fail(ErrorKind::Runtime, "flex_attention", "its functions capture ",
         static_cast<int64_t>(captures_.size()), " tensors: at most ",
         static_cast<int64_t>(kMostCaptures), " are possible");
  }
  key_ = cat(compute_, "|", score_ ? score_.signature() : "", "|", mask_ ? mask_.signature() : "");
  kernels_ = known(key_, [&] {
    Kernels made;
    for (Kind kind : {kWhole, kPartial}) {
      if (score_ || (kind == kPartial && mask_)) {
        made.apply[kind] = score_kernel(kind);
      }
    }
    return made;
  });
}

// Kernels are built once for what they depend on.
FlexModifier::Kernels FlexModifier::known(const std::string& key,
                                          const std::function<Kernels()>& make) {
  static std::mutex mutex;
  static std::unordered_map<std::string, Kernels> table;
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = table.find(key);
    if (found != table.end()) {
      return found->second;
    }
  }
  Kernels made = make();
  std::lock_guard<std::mutex> lock(mutex);
  return table.emplace(key, made).first->second;
}

loop::Kernel FlexModifier::empty_kernel(std::string name, loop::AxisKind axes) const {
  loop::Kernel kernel;
  kernel.name = std::move(name);
  kernel.axes = {axes, axes};
  const loop::Buffer tile{compute_, {loop::Layout::Any, loop::Layout::Unit}};
  kernel.buffers = {tile, tile};
  declare_captures(captures_, &kernel.buffers);
  kernel.scalars = kScalars;
  return kernel;
}

FlexPlace FlexModifier::place() const {
  return place_on(1, 0, loop::load(0, compute_, tile_indices()), kFirstCapture);
}

// `value` where the mask holds.
Expr FlexModifier::hide(Kind kind, Expr value, double otherwise) const {
  if (kind == kWhole || !mask_) {
    return value;
  }
  return loop::where(mask_.place(place()).value, value, otherwise);
}

loop::KernelFunction FlexModifier::score_kernel(Kind kind) const {
  loop::Kernel kernel = empty_kernel(kind == kWhole ? "flex_scores" : "flex_scores_partial",
                                     loop::AxisKind::Parallel);
  Expr value = score_ ? as(score_.place(place()).value, compute_) : place().scalars[kFlexScore];
  value = hide(kind, value, -std::numeric_limits<double>::infinity());
  kernel.stores = {{0, tile_indices(), value}};
  return get_kernel(loop::simplify(kernel));
}

void FlexModifier::prepare_gradients(const TensorList& sums, int64_t groups) {
  if (!score_) {
    return;
  }
  bool any = false;
  for (const Tensor& sum : sums) {
    any = any || sum.defined();
    std::vector<int64_t> strides;
    for (size_t d = 1; sum.defined() && d < sum.strides().size(); ++d) {
      strides.push_back(sum.strides()[d]);
    }
    strides.push_back(0);
    sum_strides_.push_back(std::move(strides));
  }
  sums_ = sums;
  groups_ = any ? groups : 0;
  std::string key = cat(key_, "|");
  for (const Tensor& sum : sums) {
    key += sum.defined() ? '1' : '0';
  }
  kernels_ = known(key, [&] {
    Kernels made = kernels_;
    for (Kind kind : {kWhole, kPartial}) {
      made.differentiate[kind] = gradient_kernel(kind, &made.reads_scores);
      made.add_up[kind] = any ? sums_kernel(kind, sums, &made.reads_scores) : nullptr;
    }
    return made;
  });
}

// From b1, gradients of changed scores, to those of scores; null where they are the same.
loop::KernelFunction FlexModifier::gradient_kernel(Kind kind, bool* reads_scores) const {
  const FlexPlace at = place();
  Expr score = at.scalars[kFlexScore];
  Expr upstream = loop::load(1, compute_, tile_indices());
  Expr value = as(score_.place(at).value, compute_);
  Expr found = loop::differentiate(value, {score}, upstream)[0];
  Expr gradient = found ? loop::simplify(found) : loop::constant(0, compute_);
  if (same(gradient, upstream)) {
    return nullptr;
  }
  *reads_scores = *reads_scores || contains(gradient, score);
  loop::Kernel kernel = empty_kernel(kind == kWhole ? "flex_gradient" : "flex_gradient_partial",
                                     loop::AxisKind::Parallel);
  kernel.stores = {{1, tile_indices(), hide(kind, gradient, 0)}};
  return get_kernel(loop::simplify(kernel));
}

// Adds to the sums of captured tensors, in the order of keys and queries.
loop::KernelFunction FlexModifier::sums_kernel(Kind kind, const TensorList& sums,
                                               bool* reads_scores) const {
  const FlexPlace at = place();
  Expr score = at.scalars[kFlexScore];
  Expr upstream = loop::load(1, compute_, tile_indices());
  const FlexFunction::Placed placed = score_.place(at);
  loop::Kernel kernel =
      empty_kernel(kind == kWhole ? "flex_sums" : "flex_sums_partial", loop::AxisKind::Scan);
  std::vector<int> buffers;
  for (const Tensor& sum : sums) {
    buffers.push_back(sum.defined() ? static_cast<int>(kernel.buffers.size()) : -1);
    loop::Buffer buffer{compute_, {}};
    for (size_t d = 1; sum.defined() && d < sum.sizes().size(); ++d) {
      buffer.dims.push_back(loop::Layout::Any);
    }
    if (sum.defined()) {
      kernel.buffers.push_back(std::move(buffer));
    }
  }
  std::vector<Expr> loads;
  std::vector<int> targets;
  for (size_t i = 0; i < placed.loads.size(); ++i) {
    const int buffer = buffers[static_cast<size_t>(placed.captures[i])];
    if (buffer >= 0) {
      loads.push_back(placed.loads[i]);
      targets.push_back(buffer);
    }
  }
  const std::vector<Expr> found = loop::differentiate(as(placed.value, compute_), loads, upstream);
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i]) {
      Expr value = hide(kind, as(found[i], compute_), 0);
      *reads_scores = *reads_scores || contains(value, score);
      kernel.stores.push_back({targets[i], loads[i]->inputs, value, loop::StoreMode::Add});
    }
  }
  return kernel.stores.empty() ? nullptr : get_kernel(loop::simplify(kernel));
}

void FlexModifier::run(loop::KernelFunction kernel, const AttentionPlace& at, int64_t queries,
                       const void* first, void* second, int64_t stride, int64_t group) const {
  void* buffers[kMostBuffers] = {const_cast<void*>(first), second};
  const int64_t tile[] = {stride, 1};
  const int64_t* strides[kMostBuffers] = {tile, tile};
  size_t count = kFirstCapture;
  for (size_t i = 0; i < captures_.size(); ++i) {
    buffers[count] = captures_[i].data();
    strides[count++] = strides_[i].data();
  }
  for (size_t i = 0; i < sums_.size(); ++i) {
    if (sums_[i].defined()) {
      buffers[count] = static_cast<char*>(sums_[i].data()) +
                       group * sums_[i].strides()[0] * sums_[i].element_size();
      strides[count++] = sum_strides_[i].data();
    }
  }
  const int64_t extents[] = {at.keys, queries};
  const PlaceScalars scalars(at.batch, at.head, at.query, at.key);
  const loop::KernelArgs args{buffers, strides, extents, scalars.bits};
  kernel(&args, 0, at.keys);
}

void FlexModifier::scores(const AttentionPlace& at, bool partial, void* tile,
                          int64_t stride) const {
  const loop::KernelFunction kernel = kernels_.apply[partial ? kPartial : kWhole];
  if (kernel != nullptr) {
    run(kernel, at, whole_rows_ ? stride : at.queries, tile, nullptr, stride, 0);
  }
}

void FlexModifier::gradients(const AttentionPlace& at, bool partial, const void* scores,
                             void* gradients, int64_t stride, int64_t group) const {
  const Kind kind = partial ? kPartial : kWhole;
  if (kernels_.add_up[kind] != nullptr) {
    run(kernels_.add_up[kind], at, at.queries, scores, gradients, stride, group);
  }
  if (kernels_.differentiate[kind] != nullptr) {
    run(kernels_.differentiate[kind], at, whole_rows_ ? stride : at.queries, scores, gradients,
        stride, group);
  }
}

FlexEvaluator::FlexEvaluator(const FlexFunction& function, DType dtype)
    : captures_(function.captures()), strides_(capture_strides(captures_)) {
  loop::Kernel kernel;
  kernel.name = "flex_values";
  kernel.axes = {loop::AxisKind::Parallel, loop::AxisKind::Parallel};
  kernel.buffers = {{dtype, {loop::Layout::Any, loop::Layout::Unit}}};
  declare_captures(captures_, &kernel.buffers);
  kernel.scalars = kScalars;
  // Functions of scores are evaluated for scores of 0.
  const FlexPlace at = place_on(0, 1, loop::constant(0, DType::Float32), 1);
  Expr value = as(function.place(at).value, compute_dtype(dtype));
  kernel.stores = {{0, {loop::index(0), loop::index(1)}, value}};
  kernel_ = get_kernel(loop::simplify(kernel));
}

void FlexEvaluator::run(int64_t batch, int64_t head, int64_t query, int64_t queries, int64_t key,
                        int64_t keys, void* out, int64_t row_stride) const {
  void* buffers[kMostBuffers] = {out};
  const int64_t tile[] = {row_stride, 1};
  const int64_t* strides[kMostBuffers] = {tile};
  for (size_t i = 0; i < captures_.size(); ++i) {
    buffers[i + 1] = captures_[i].data();
    strides[i + 1] = strides_[i].data();
  }
  const int64_t extents[] = {queries, keys};
  const PlaceScalars scalars(batch, head, query, key);
  const loop::KernelArgs args{buffers, strides, extents, scalars.bits};
  kernel_(&args, 0, queries);
}

}  // namespace rushlight
