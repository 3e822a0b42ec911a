#include "ops/flex_function.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "runtime/kernel_cache.h"

namespace rushlight {

using loop::Bounds;
using loop::Expr;
using loop::Interval;
using loop::Node;
using loop::Op;

namespace {

// Regions up to this size are looked at element by element; larger ones stand for all there is.
constexpr int64_t kMostElements = 1 << 14;

template <typename T>
double to_number(T x) {
  if constexpr (std::is_class_v<T>) {  // the small floats
    return static_cast<double>(to_float(x));
  } else {
    return static_cast<double>(x);
  }
}

template <typename T>
Interval scan_elements(const Tensor& tensor, const std::vector<int64_t>& first,
                       const std::vector<int64_t>& last) {
  const T* data = static_cast<const T*>(tensor.data());
  const size_t rank = first.size();
  std::vector<int64_t> at = first;
  Interval found{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
  const int64_t inner = rank == 0 ? 1 : last[rank - 1] - first[rank - 1] + 1;
  const int64_t step = rank == 0 ? 0 : tensor.strides()[rank - 1];
  while (true) {
    int64_t offset = 0;
    for (size_t d = 0; d < rank; ++d) {
      offset += at[d] * tensor.strides()[d];
    }
    for (int64_t i = 0; i < inner; ++i) {
      const double value = to_number(data[offset + i * step]);
      found.nan = found.nan || value != value;
      found.low = value < found.low ? value : found.low;
      found.high = value > found.high ? value : found.high;
    }
    size_t d = rank == 0 ? 0 : rank - 1;
    while (d > 0 && ++at[d - 1] > last[d - 1]) {
      at[d - 1] = first[d - 1];
      --d;
    }
    if (d == 0) {
      break;
    }
  }
  if (found.low > found.high) {  // nothing but NaN
    found = {-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity(),
             true};
  }
  return found;
}

Interval position_bounds(int slot, const FlexShape& shape) {
  const int64_t sizes[] = {0, shape.batch, shape.heads, shape.queries, shape.keys};
  return {0, static_cast<double>(std::max<int64_t>(sizes[slot] - 1, 0))};
}

// The least and greatest value of an index over all positions, by evaluating it at each.
std::pair<int64_t, int64_t> exact_bounds(const FlexFunction& index, const FlexShape& shape) {
  loop::Kernel kernel;
  kernel.name = "flex_index_bounds";
  kernel.axes = {loop::AxisKind::Parallel, loop::AxisKind::Reduce, loop::AxisKind::Reduce,
                 loop::AxisKind::Reduce};
  kernel.buffers = {{DType::Int64, {loop::Layout::Unit}}, {DType::Int64, {loop::Layout::Unit}}};
  declare_captures(index.captures(), &kernel.buffers);
  FlexPlace at{};
  at.first_buffer = 2;
  const int64_t sizes[] = {shape.batch, shape.heads, shape.queries, shape.keys};
  int64_t extents[4];
  for (int d = 0; d < 4; ++d) {
    const auto scalar = static_cast<FlexScalar>(d + 1);
    at.wide[static_cast<size_t>(scalar)] = loop::index(d);
    at.scalars[static_cast<size_t>(scalar)] = loop::cast(loop::index(d), DType::Int32);
    extents[d] = index.reads(scalar) ? sizes[d] : 1;
  }
  at.scalars[kFlexScore] = loop::constant(0, DType::Float32);
  Expr value = index.place(at).value;
  Expr least = value;
  Expr most = value;
  for (int axis = 3; axis > 0; --axis) {
    least = loop::reduce(loop::Combine::Min, axis, least);
    most = loop::reduce(loop::Combine::Max, axis, most);
  }
  kernel.stores = {{0, {loop::index(0)}, least}, {1, {loop::index(0)}, most}};
  std::vector<int64_t> low(static_cast<size_t>(extents[0]));
  std::vector<int64_t> high(static_cast<size_t>(extents[0]));
  std::vector<void*> buffers = {low.data(), high.data()};
  static constexpr int64_t kOne[] = {1};
  std::vector<const int64_t*> strides = {kOne, kOne};
  const auto own = capture_strides(index.captures());
  for (size_t i = 0; i < index.captures().size(); ++i) {
    buffers.push_back(index.captures()[i].data());
    strides.push_back(own[i].data());
  }
  loop::KernelArgs args{buffers.data(), strides.data(), extents, nullptr};
  get_kernel(kernel)(&args, 0, extents[0]);
  return {*std::min_element(low.begin(), low.end()), *std::max_element(high.begin(), high.end())};
}

bool reads_scalar(std::span<const Expr> roots, FlexScalar scalar) {
  for (Expr expr : loop::post_order(roots)) {
    if (expr->op == Op::Scalar && expr->slot == scalar) {
      return true;
    }
  }
  return false;
}

// Texts come back call after call; expressions live for ever in any case.
Expr parsed(const std::string& text) {
  static std::mutex mutex;
  static std::unordered_map<std::string, Expr> known;
  std::lock_guard<std::mutex> lock(mutex);
  Expr& made = known[text];
  if (!made) {
    made = loop::parse_expr(text);
  }
  return made;
}

}  // namespace

Interval element_bounds(const Tensor& tensor, const std::vector<int64_t>& first,
                        const std::vector<int64_t>& last) {
  switch (tensor.dtype()) {
#define RUSHLIGHT_CASE(name, type, text, alias, ir, category)                            \
  case DType::name:                                                                      \
    if constexpr (DType::name != DType::Complex64 && DType::name != DType::Complex128) { \
      return scan_elements<type>(tensor, first, last);                                   \
    }                                                                                    \
    break;
    RUSHLIGHT_DTYPES(RUSHLIGHT_CASE)
#undef RUSHLIGHT_CASE
  }
  return loop::all_values(compute_dtype(tensor.dtype()));
}

Interval load_bounds(const Tensor& tensor, const Interval* indices) {
  std::vector<int64_t> first;
  std::vector<int64_t> last;
  double count = 1;
  for (size_t d = 0; d < tensor.sizes().size(); ++d) {
    const auto size = static_cast<double>(tensor.sizes()[d]);
    double low = indices[d].low;
    double high = indices[d].high;
    if (high < 0) {
      low += size;
      high += size;
    } else if (low < 0) {
      low = 0;
      high = size - 1;
    }
    low = std::clamp(low, 0.0, std::max(size - 1, 0.0));
    high = std::clamp(high, 0.0, std::max(size - 1, 0.0));
    count *= size == 0 ? 0 : high - low + 1;
    first.push_back(static_cast<int64_t>(low));
    last.push_back(static_cast<int64_t>(high));
  }
  if (count == 0 || count > static_cast<double>(kMostElements)) {
    return loop::all_values(compute_dtype(tensor.dtype()));
  }
  return element_bounds(tensor, first, last);
}

FlexFunction::FlexFunction(std::string_view what, std::string_view text, const TensorList& captures,
                           const FlexShape& shape)
    : text_(text), captures_(captures) {
  if (text.empty()) {
    return;
  }
  root_ = parsed(text_);
  if (text.find("load.") == std::string_view::npos) {
    return;  // nothing that could be read outside its bounds
  }
  const std::vector<Expr> order = loop::post_order({&root_, 1});
  std::vector<Interval> whole(captures.size());
  std::vector<bool> known(captures.size(), false);
  Bounds bounds({&root_, 1});
  bounds.evaluate([&](const Node& leaf, const Interval* indices) {
    if (leaf.op != Op::Load) {
      return leaf.slot == kFlexScore ? loop::all_values(leaf.dtype)
                                     : position_bounds(leaf.slot, shape);
    }
    const Tensor& tensor = captures[leaf.slot];
    // Values that are indices themselves are worth a look at all of them.
    if (is_floating(leaf.dtype) || tensor.numel() == 0) {
      return load_bounds(tensor, indices);
    }
    if (!known[leaf.slot]) {
      std::vector<int64_t> last;
      for (int64_t size : tensor.sizes()) {
        last.push_back(size - 1);
      }
      whole[leaf.slot] = element_bounds(tensor, std::vector<int64_t>(last.size(), 0), last);
      known[leaf.slot] = true;
    }
    return whole[leaf.slot];
  });
  for (Expr expr : order) {
    bounds_[expr.node] = bounds.of(expr);
  }
  for (Expr expr : order) {
    if (expr->op != Op::Load) {
      continue;
    }
    RUSHLIGHT_ASSERT(expr->slot < captures.size() && captures[expr->slot].dtype() == expr->buffer);
    LoadInfo info{expr, {}};
    for (size_t d = 0; d < expr->inputs.size(); ++d) {
      info.wraps.push_back(bounds_.at(expr->inputs[d].node).low < 0);
      check_load(what, info, d, shape);
    }
    loads_.push_back(std::move(info));
  }
}

void FlexFunction::check_load(std::string_view what, const LoadInfo& info, size_t d,
                              const FlexShape& shape) {
  const Tensor& tensor = captures_[info.load->slot];
  const int64_t size = tensor.sizes()[d];
  const Interval& index = bounds_.at(info.load->inputs[d].node);
  const auto limit = static_cast<double>(size);
  if (index.low >= -limit && index.high < limit) {
    return;
  }
  FlexFunction alone(*this);
  alone.root_ = info.load->inputs[d];
  const auto [low, high] = exact_bounds(alone, shape);
  if (low < -size || high >= size) {
    fail(ErrorKind::Index, what, "index ", high >= size ? high : low,
         " is out of bounds for dimension ", static_cast<int64_t>(d), " with size ", size,
         " of a captured tensor of shape ", tensor.sizes());
  }
}

std::string FlexFunction::signature() const {
  std::string made = cat(text_, ";");
  for (const Tensor& tensor : captures_) {
    made += cat(tensor.dtype(), ":");
    for (size_t d = 0; d < tensor.sizes().size(); ++d) {
      const int64_t stride = tensor.strides()[d];
      made += stride == 0 ? '0' : stride == 1 ? '1' : 'n';
    }
  }
  // Indices that may be negative have the size of their dimension in them.
  for (const LoadInfo& info : loads_) {
    for (size_t d = 0; d < info.wraps.size(); ++d) {
      made += info.wraps[d] ? cat("-", captures_[info.load->slot].sizes()[d]) : std::string("+");
    }
  }
  return made;
}

bool FlexFunction::reads(FlexScalar scalar) const {
  return reads_scalar({&root_, 1}, scalar);
}

bool FlexFunction::loads_by(FlexScalar scalar) const {
  for (const LoadInfo& info : loads_) {
    if (reads_scalar(info.load->inputs, scalar)) {
      return true;
    }
  }
  return false;
}

// An i32 index as i64, through additions that are known not to wrap, so that its step along an
// axis shows.
Expr FlexFunction::widen(Expr index, const FlexPlace& at,
                         const std::unordered_map<const Node*, Expr>& done, int depth) const {
  constexpr int kDeep = 32;
  const Interval all = loop::all_values(index.dtype());
  const Interval own = bounds_.at(index.node);
  const bool exact = own.low > all.low && own.high < all.high;
  const bool position = index->op == Op::Scalar && index->slot != kFlexScore;
  if (position) {
    return at.wide[index->slot];
  }
  if (index->op == Op::Const) {
    return loop::constant_int(static_cast<int64_t>(index->bits), DType::Int64);
  }
  if (index->op == Op::Cast && is_integral(index->inputs[0].dtype(), false) && depth < kDeep) {
    const bool keeps = index.dtype() == DType::Int64 || exact;
    if (keeps) {
      return widen(index->inputs[0], at, done, depth + 1);
    }
  }
  const bool simple = index->op == Op::Add || index->op == Op::Sub || index->op == Op::Mul;
  if (simple && exact && depth < kDeep) {
    return loop::binary(index->op, widen(index->inputs[0], at, done, depth + 1),
                        widen(index->inputs[1], at, done, depth + 1));
  }
  Expr value = done.at(index.node);
  return value.dtype() == DType::Int64 ? value : loop::cast(value, DType::Int64);
}

FlexFunction::Placed FlexFunction::place(const FlexPlace& at) const {
  Placed placed;
  std::unordered_map<const Node*, Expr> done;
  for (Expr expr : loop::post_order({&root_, 1})) {
    if (expr->op == Op::Scalar) {
      done[expr.node] = at.scalars[expr->slot];
      continue;
    }
    if (expr->op != Op::Load) {
      std::vector<Expr> inputs;
      for (Expr input : expr->inputs) {
        inputs.push_back(done.at(input.node));
      }
      done[expr.node] = loop::with_inputs(expr, std::move(inputs));
      continue;
    }
    std::vector<Expr> indices;
    for (size_t d = 0; d < expr->inputs.size(); ++d) {
      Expr index = widen(expr->inputs[d], at, done, 0);
      if (bounds_.at(expr->inputs[d].node).low < 0) {
        const auto size = static_cast<double>(captures_[expr->slot].sizes()[d]);
        index = loop::where(index < 0.0, index + size, index);
      }
      indices.push_back(index);
    }
    Expr load = loop::load(at.first_buffer + expr->slot, expr->buffer, std::move(indices));
    placed.loads.push_back(load);
    placed.captures.push_back(expr->slot);
    done[expr.node] = load;
  }
  placed.value = done.at(root_.node);
  return placed;
}

void declare_captures(const TensorList& captures, std::vector<loop::Buffer>* buffers) {
  for (const Tensor& tensor : captures) {
    loop::Buffer buffer{tensor.dtype(), {}};
    for (size_t d = 0; d < tensor.sizes().size(); ++d) {
      const int64_t stride = tensor.strides()[d];
      const bool last = d + 1 == tensor.sizes().size();
      buffer.dims.push_back(stride == 0           ? loop::Layout::Zero
                            : last && stride == 1 ? loop::Layout::Unit
                                                  : loop::Layout::Any);
    }
    buffers->push_back(std::move(buffer));
  }
}

std::vector<std::vector<int64_t>> capture_strides(const TensorList& captures) {
  std::vector<std::vector<int64_t>> made;
  for (const Tensor& tensor : captures) {
    made.emplace_back(tensor.strides().begin(), tensor.strides().end());
    made.back().push_back(0);  // never empty
  }
  return made;
}

}  // namespace rushlight
