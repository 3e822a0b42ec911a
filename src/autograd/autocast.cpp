#include "autograd/autocast.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "autograd/operators.h"
#include "ops/invocation.h"
#include "ops/operator.h"

namespace rushlight::autograd {
namespace {

// Lower: in the region's dtype. Single: in f32. Widest: in the widest of its arguments. As they
// are: its arguments, and those of the operators it is made of, stay as they are.
enum class Policy : uint8_t { None, Lower, Single, Widest, AsTheyAre };

constexpr std::string_view kLower[] = {
    "addbmm",           "addmm",
    "baddbmm",          "bmm",
    "linear",           "linalg_vecdot",
    "matmul",           "mm",
    "conv1d",           "conv2d",
    "conv3d",           "conv_tbc",
    "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "scaled_dot_product_attention",
};
constexpr std::string_view kSingle[] = {
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cdist",
    "cosine_embedding_loss",
    "cross_entropy_loss",
    "ctc_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "nanquantile",
    "nll_loss_nd",
    "poisson_nll_loss",
    "prod",
    "quantile",
    "reflection_pad1d",
    "reflection_pad2d",
    "replication_pad1d",
    "replication_pad2d",
    "replication_pad3d",
    "smooth_l1_loss",
    "soft_margin_loss",
    "trace",
    "triplet_margin_loss",
};
constexpr std::string_view kWidest[] = {"cat", "index_copy", "stack"};
constexpr std::string_view kAsTheyAre[] = {"addmv", "dot", "mv", "vdot"};

using Policies = std::unordered_map<const Operator*, Policy>;

const Policies& policies() {
  static const Policies* made = [] {
    auto* map = new Policies;
    const auto put = [&](auto& names, Policy policy) {
      for (std::string_view name : names) {
        for (const Operator* op : Table::instance().overloads(name)) {
          (*map)[op] = policy;
        }
      }
    };
    put(kLower, Policy::Lower);
    put(kSingle, Policy::Single);
    put(kWidest, Policy::Widest);
    put(kAsTheyAre, Policy::AsTheyAre);
    return map;
  }();
  return *made;
}

struct Region {
  AutocastState state;
  // By the leaf, which is kept so that its address stays its own.
  std::unordered_map<const TensorImpl*, std::pair<Tensor, Tensor>> copies;
};

Region& region() {
  thread_local Region own;
  return own;
}

bool is_concerned(const Tensor& tensor) {
  return tensor.defined() && tensor.is_floating_point() && tensor.dtype() != DType::Float64;
}

Tensor convert(const Tensor& tensor, DType dtype) {
  if (!is_concerned(tensor) || tensor.dtype() == dtype) {
    return tensor;
  }
  Region& own = region();
  const bool kept = own.state.caches && dtype == own.state.dtype && thread_state.grad_mode &&
                    tensor.dtype() == DType::Float32 && tensor.requires_grad() && tensor.is_leaf();
  if (!kept) {
    return ops::to_dtype(tensor, dtype);
  }
  auto found = own.copies.find(tensor.impl());
  if (found == own.copies.end()) {
    found =
        own.copies.emplace(tensor.impl(), std::pair(tensor, ops::to_dtype(tensor, dtype))).first;
  }
  return found->second.second;
}

Value convert(const Value& value, DType dtype) {
  if (value.is_tensor()) {
    return Value(convert(value.tensor(), dtype));
  }
  if (value.tag() == Value::Tag::Tensors) {
    TensorList list = value.tensors();
    for (Tensor& tensor : list) {
      tensor = convert(tensor, dtype);
    }
    return Value(std::move(list));
  }
  return value;
}

// f32 where any argument has it, else the region's own dtype.
DType widest(const Invocation& inv) {
  DType found = region().state.dtype;
  for_each_tensor(inv.arguments, inv.argument_count, [&](const Tensor& tensor) {
    if (is_concerned(tensor) && tensor.dtype() == DType::Float32) {
      found = DType::Float32;
    }
  });
  return found;
}

void autocast_door(Invocation& inv) {
  const auto found = inv.form == Form::Functional ? policies().find(inv.op) : policies().end();
  if (found == policies().end()) {
    pass(inv, kAutocastDoor);
    return;
  }
  DoorGuard closed(0, kAutocastDoor);
  if (found->second == Policy::AsTheyAre) {
    pass(inv, kAutocastDoor);
    return;
  }
  const DType dtype = found->second == Policy::Lower    ? region().state.dtype
                      : found->second == Policy::Single ? DType::Float32
                                                        : widest(inv);
  std::vector<Value> arguments;
  for (int i = 0; i < inv.argument_count; ++i) {
    arguments.push_back(convert(inv.arguments[i], dtype));
  }
  Invocation converted = inv;
  converted.arguments = arguments.data();
  pass(converted, kAutocastDoor);
}

const bool installed = (install_door(kAutocastDoor, autocast_door), true);

}  // namespace

const AutocastState& autocast_state() {
  return region().state;
}

void set_autocast_enabled(bool enabled) {
  region().state.enabled = enabled;
  thread_state.doors =
      enabled ? thread_state.doors | kAutocastDoor : thread_state.doors & ~kAutocastDoor;
}

void set_autocast_dtype(DType dtype) {
  region().state.dtype = dtype;
}

void set_autocast_caches(bool caches) {
  region().state.caches = caches;
}

int enter_autocast() {
  return ++region().state.nesting;
}

int leave_autocast() {
  return --region().state.nesting;
}

void clear_autocast_cache() {
  region().copies.clear();
}

}  // namespace rushlight::autograd
