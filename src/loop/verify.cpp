#include <rushlight/error.h>

#include "loop/text.h"

namespace rushlight::loop {
namespace {

constexpr size_t kMaxAxes = 32;
constexpr size_t kMaxSlots = 256;
constexpr size_t kQuoted = 300;

std::string quoted(Expr expr) {
  std::string text = print(expr);
  if (text.size() > kQuoted) {
    text = cat("... ", text.substr(text.size() - kQuoted));
  }
  return cat("`", text, "`");
}

std::string_view axis_text(AxisKind kind) {
  return kAxisTexts[static_cast<int>(kind)];
}

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel) : kernel_(kernel) {}

  std::string run() {
    check_declarations();
    for (const Store& store : kernel_.stores) {
      check_store_parts(store);
    }
    if (error_.empty()) {
      for (Expr expr : post_order(roots(kernel_))) {
        check_node(expr);
      }
    }
    if (error_.empty()) {
      check_split();
    }
    return error_;
  }

 private:
  // Keeps the first complaint.
  template <typename... Parts>
  void expect(bool holds, const Parts&... parts) {
    if (!holds && error_.empty()) {
      error_ = cat(parts...);
    }
  }

  void check_declarations() {
    expect(kernel_.axes.size() <= kMaxAxes, "a kernel has at most ", kMaxAxes, " axes, got ",
           kernel_.axes.size());
    expect(kernel_.buffers.size() <= kMaxSlots, "a kernel has at most ", kMaxSlots,
           " buffers, got ", kernel_.buffers.size());
    expect(kernel_.scalars.size() <= kMaxSlots, "a kernel has at most ", kMaxSlots,
           " scalars, got ", kernel_.scalars.size());
    expect(!kernel_.stores.empty(), "a kernel without a store does nothing");
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
      expect(!is_complex(kernel_.buffers[i].dtype), "buffer ", i,
             " is complex: declare it as its real type, with one more dimension");
    }
    for (size_t i = 0; i < kernel_.scalars.size(); ++i) {
      expect(is_value_dtype(kernel_.scalars[i]), "scalar ", i, " cannot be ", kernel_.scalars[i]);
    }
  }

  void check_store_parts(const Store& store) {
    size_t number = static_cast<size_t>(&store - kernel_.stores.data());
    bool known = store.buffer >= 0 && static_cast<size_t>(store.buffer) < kernel_.buffers.size();
    expect(known, "store ", number, " names buffer ", store.buffer, ", but there are ",
           kernel_.buffers.size());
    expect(bool(store.value), "store ", number, " has no value");
    if (!known || !store.value) {
      return;
    }
    const Buffer& buffer = kernel_.buffers[store.buffer];
    expect(store.indices.size() == buffer.dims.size(), "store ", number, " of ",
           quoted(store.value), " has ", store.indices.size(), " indices, but buffer ",
           store.buffer, " has ", buffer.dims.size(), " dimensions");
    for (Expr index : store.indices) {
      expect(bool(index), "an index of store ", number, " is null");
      expect(!index || index.dtype() == DType::Int64, "an index of store ", number,
             " must be int64: ", index ? quoted(index) : "");
    }
    expect(!store.mask || store.mask.dtype() == DType::Bool, "the mask of store ", number,
           " must be bool: ", store.mask ? quoted(store.mask) : "");
    bool arithmetic = store.mode == StoreMode::Add || store.mode == StoreMode::Mul;
    expect(!arithmetic || buffer.dtype != DType::Bool, "store ", number,
           " adds to or multiplies a bool buffer");
  }

  void check_node(Expr expr) {
    expect(!is_complex(expr.dtype()), quoted(expr), " is complex: lower_complex comes first");
    switch (expr->op) {
      case Op::Index:
      case Op::Extent:
        return check_axis(expr);
      case Op::Scalar:
        return check_scalar(expr);
      case Op::Load:
        return check_load(expr, expr->inputs.size());
      case Op::LoadIf:
        return check_load(expr, expr->inputs.size() - 2);
      case Op::Reduce:
        return check_fold(expr, AxisKind::Reduce);
      case Op::Scan:
        return check_fold(expr, AxisKind::Scan);
      default:
        return;
    }
  }

  void check_axis(Expr expr) {
    expect(expr->slot < kernel_.axes.size(), quoted(expr), " names axis ", int{expr->slot},
           ", but there are ", kernel_.axes.size());
  }

  void check_scalar(Expr expr) {
    bool known = expr->slot < kernel_.scalars.size();
    expect(known, quoted(expr), " names scalar ", int{expr->slot}, ", but there are ",
           kernel_.scalars.size());
    expect(!known || kernel_.scalars[expr->slot] == expr.dtype(), quoted(expr),
           " disagrees with the declared dtype of scalar ", int{expr->slot});
  }

  void check_load(Expr expr, size_t indices) {
    bool known = expr->slot < kernel_.buffers.size();
    expect(known, quoted(expr), " names buffer ", int{expr->slot}, ", but there are ",
           kernel_.buffers.size());
    if (!known) {
      return;
    }
    const Buffer& buffer = kernel_.buffers[expr->slot];
    expect(buffer.dtype == expr->buffer, quoted(expr), " reads ", expr->buffer, ", but buffer ",
           int{expr->slot}, " is ", buffer.dtype);
    expect(buffer.dims.size() == indices, quoted(expr), " has ", indices, " indices, but buffer ",
           int{expr->slot}, " has ", buffer.dims.size(), " dimensions");
  }

  void check_fold(Expr expr, AxisKind wanted) {
    check_axis(expr);
    bool fits = expr->slot >= kernel_.axes.size() || kernel_.axes[expr->slot] == wanted;
    expect(fits, quoted(expr), " needs a ", axis_text(wanted), " axis, but axis ", int{expr->slot},
           " is ", fits ? "" : axis_text(kernel_.axes[expr->slot]));
  }

  void check_split() {
    int split = split_axis(kernel_);
    FreeAxes axes = free_axes(kernel_);
    for (size_t i = 0; split >= 0 && i < kernel_.stores.size(); ++i) {
      const Store& store = kernel_.stores[i];
      expect(store_axes(kernel_, store, axes) >> split & 1, "store ", i, " of ",
             quoted(store.value), " does not depend on the first parallel axis, ", split,
             ", so that every thread would execute it");
    }
  }

  const Kernel& kernel_;
  std::string error_;
};

}  // namespace

std::string verify(const Kernel& kernel) {
  return Verifier(kernel).run();
}

}  // namespace rushlight::loop
