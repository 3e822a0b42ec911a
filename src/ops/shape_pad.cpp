// Padding, and one-hot rows.
#include <rushlight/generated/functions.h>

#include <algorithm>

#include "kernels/copy.h"
#include "kernels/pad.h"
#include "ops/gradient.h"
#include "ops/operator.h"
#include "ops/views.h"

namespace rushlight {
namespace {

// Padding lists name the last dimension first: (before, after) of each.
struct Padding {
  int64_t before;
  int64_t after;
};

Padding padding_of(IntArrayRef pad, int64_t dim, int64_t rank) {
  const int64_t at = 2 * (rank - 1 - dim);
  return at + 1 < static_cast<int64_t>(pad.size())
             ? Padding{pad[static_cast<size_t>(at)], pad[static_cast<size_t>(at) + 1]}
             : Padding{0, 0};
}

void check_pad(const Tensor& self, IntArrayRef pad) {
  const auto length = static_cast<int64_t>(pad.size());
  if (length % 2 != 0) {
    fail(ErrorKind::Runtime, "pad", "Padding length must be divisible by 2, got ", length);
  }
  if (length > 2 * self.dim()) {
    fail(ErrorKind::Runtime, "pad",
         "Padding length should be less than or equal to two times the "
         "input dimension but got padding length ",
         length, " and input of dimension ", self.dim());
  }
}

Tensor pad_constant(const Tensor& self, IntArrayRef pad, Scalar value) {
  check_pad(self, pad);
  IntList sizes(self.sizes());
  for (int64_t d = 0; d < self.dim(); ++d) {
    const Padding own = padding_of(pad, d, self.dim());
    int64_t& size = sizes[static_cast<size_t>(d)];
    const int64_t padded = checked_add(checked_add(size, own.before, "pad"), own.after, "pad");
    if (padded < 0) {
      fail(ErrorKind::Runtime, "pad", "The input size ", size, ", plus negative padding ",
           own.before, " and ", own.after,
           " resulted in a negative output size, which is invalid. "
           "Check dimension ",
           d, " of your input.");
    }
    if (size + std::min<int64_t>(own.before, 0) + std::min<int64_t>(own.after, 0) < 0) {
      fail(ErrorKind::Runtime, "pad", "narrow(): length must be non-negative: dimension ", d,
           " of size ", size, " is cut by ", own.before, " and ", own.after);
    }
    size = padded;
  }
  Tensor made = kernels::make_filled(sizes, value, self.dtype(), self.device());
  Tensor to = made;
  Tensor from = self;
  for (int64_t d = 0; d < self.dim(); ++d) {
    const Padding own = padding_of(pad, d, self.dim());
    const int64_t first = std::max<int64_t>(own.before, 0);
    const int64_t last = to.size(d) - std::max<int64_t>(own.after, 0);
    to = views::slice(to, d, first, std::max(first, last), 1);
    const int64_t skipped = std::max<int64_t>(-own.before, 0);
    from = views::slice(from, d, skipped, skipped + to.size(d), 1);
  }
  kernels::copy(to, from);
  return made;
}

enum class Mode { Reflect, Replicate, Circular };

// Which element of a dimension of `size` stands at position `at` outside of it.
int64_t source_index(int64_t at, int64_t size, Mode mode) {
  if (mode == Mode::Replicate) {
    return std::clamp<int64_t>(at, 0, size - 1);
  }
  if (mode == Mode::Circular) {
    return (at % size + size) % size;
  }
  return at < 0 ? -at : at >= size ? 2 * (size - 1) - at : at;
}

void check_border(const Tensor& self, int64_t dim, Padding own, Mode mode) {
  const int64_t size = self.size(dim);
  if (mode == Mode::Reflect && (own.before >= size || own.after >= size)) {
    fail(ErrorKind::Runtime, "pad",
         "Argument #4: Padding size should be less than the "
         "corresponding input dimension, but got: padding (",
         own.before, ", ", own.after, ") at dimension ", dim, " of input ", self.sizes());
  }
  if (mode == Mode::Circular && (own.before > size || own.after > size)) {
    fail(ErrorKind::Runtime, "pad", "Padding value causes wrapping around more than once.");
  }
  if (size + own.before + own.after < (mode == Mode::Circular ? 0 : 1)) {
    fail(ErrorKind::Runtime, "pad", "input (size ", size, ") of dimension ", dim,
         " is too small for padding (", own.before, ", ", own.after, ")");
  }
}

// Only the batch may be empty.
void check_border_shape(const Tensor& self, int64_t pairs) {
  for (int64_t d = self.dim() > pairs + 1 ? 1 : 0; d < self.dim(); ++d) {
    if (self.size(d) == 0) {
      fail(ErrorKind::Runtime, "pad", "Expected ", pairs + 1, "D or ", pairs + 2,
           "D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
           "input, but got: ",
           self.sizes());
    }
  }
}

// What each position along a dimension of `size` takes, once padded.
kernels::PadAxis border_axis(int64_t size, Padding own, Mode mode) {
  int64_t skipped = 0;
  if (mode == Mode::Circular) {  // what is cut off does not come round
    skipped = std::max<int64_t>(-own.before, 0);
    size += std::min<int64_t>(own.before, 0) + std::min<int64_t>(own.after, 0);
    own = {std::max<int64_t>(own.before, 0), std::max<int64_t>(own.after, 0)};
  }
  kernels::PadAxis axis;
  const int64_t padded = size + own.before + own.after;
  axis.at.reserve(static_cast<size_t>(padded));
  for (int64_t i = 0; i < padded; ++i) {
    axis.at.push_back(skipped + source_index(i - own.before, size, mode));
  }
  axis.first = std::clamp<int64_t>(own.before, 0, padded);
  axis.last = std::clamp<int64_t>(own.before + size, axis.first, padded);
  return axis;
}

void check_borders(const Tensor& self, IntArrayRef pad, Mode mode) {
  check_pad(self, pad);
  if (mode != Mode::Circular) {
    check_border_shape(self, static_cast<int64_t>(pad.size()) / 2);
  }
  for (int64_t d = self.dim() - 1; d >= self.dim() - static_cast<int64_t>(pad.size()) / 2; --d) {
    const Padding own = padding_of(pad, d, self.dim());
    check_border(self, d, own, mode);
    const int64_t kept =
        self.size(d) + std::min<int64_t>(own.before, 0) + std::min<int64_t>(own.after, 0);
    if (mode == Mode::Circular && (own.before > kept || own.after > kept)) {
      fail(ErrorKind::Runtime, "pad", "Padding value causes wrapping around more than once.");
    }
  }
}

// The last dimensions, two numbers of `pad` each, by the elements of the tensor itself.
Tensor border_of(const Tensor& self, IntArrayRef pad, int64_t mode) {
  if (mode < 0 || mode > static_cast<int64_t>(Mode::Circular) || pad.empty()) {
    fail(ErrorKind::Runtime, "_pad_border", "expected a mode of 0 to 2 and some padding, got mode ",
         mode, " and padding ", pad);
  }
  check_borders(self, pad, static_cast<Mode>(mode));
  const Tensor source = kernels::as_contiguous(self);
  IntList sizes(self.sizes());
  std::vector<kernels::PadAxis> axes;
  for (int64_t d = self.dim() - static_cast<int64_t>(pad.size()) / 2; d < self.dim(); ++d) {
    axes.push_back(
        border_axis(self.size(d), padding_of(pad, d, self.dim()), static_cast<Mode>(mode)));
    sizes[static_cast<size_t>(d)] = static_cast<int64_t>(axes.back().at.size());
  }
  Tensor made = make_tensor(sizes, self.dtype(), self.device());
  kernels::pad_border(made, source, axes);
  return made;
}

// Adds up what was repeated, one dimension after the other.
void border_gradient(Gradient& g) {
  const IntArrayRef pad = g.ints(1);
  const auto rank = static_cast<int64_t>(g.sizes(0).size());
  Tensor grad = g.grad();
  for (int64_t d = rank - static_cast<int64_t>(pad.size()) / 2; d < rank; ++d) {
    const Padding own = padding_of(pad, d, rank);
    if (own.before == 0 && own.after == 0) {
      continue;
    }
    const int64_t size = g.sizes(0)[static_cast<size_t>(d)];
    const auto axis = border_axis(size, own, static_cast<Mode>(g.integer(2)));
    Tensor index = make_tensor({static_cast<int64_t>(axis.at.size())}, DType::Int64);
    std::copy(axis.at.begin(), axis.at.end(), index.data_ptr<int64_t>());
    IntList sizes(grad.sizes());
    sizes[static_cast<size_t>(d)] = size;
    grad = index_add(zeros(sizes, grad.options()), d,
                     grad.is_meta() ? to(index, TensorOptions(grad.device())) : index, grad);
  }
  g.set(0, grad);
}

Tensor pad_border(const Tensor& self, IntArrayRef pad, Mode mode) {
  const bool moves =
      std::any_of(pad.begin(), pad.end(), [](int64_t amount) { return amount != 0; });
  if (!moves) {
    check_borders(self, pad, mode);
    return clone(self);
  }
  return _pad_border(self, pad, static_cast<int64_t>(mode));
}

template <Mode mode, int dims>
Tensor pad_fixed(const Tensor& self, IntArrayRef padding) {
  if (static_cast<int64_t>(padding.size()) != 2 * dims) {
    fail(ErrorKind::Runtime, "pad", "padding size is expected to be ", 2 * dims,
         ", but got: ", static_cast<int64_t>(padding.size()));
  }
  if (self.dim() != dims + 1 && self.dim() != dims + 2) {
    fail(ErrorKind::Runtime, "pad", "Expected ", dims + 1, "D or ", dims + 2,
         "D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
         "input, but got: ",
         self.sizes());
  }
  return pad_border(self, padding, mode);
}

Tensor pad_mode(const Tensor& self, IntArrayRef pad, std::string_view mode,
                std::optional<double> value) {
  if (mode == "constant") {
    return constant_pad_nd(self, pad, value.value_or(0.0));
  }
  check_pad(self, pad);
  if (value && *value != 0) {
    fail(ErrorKind::Runtime, "pad", "Padding mode \"", mode, "\" doesn't take in value argument");
  }
  const auto pairs = static_cast<int64_t>(pad.size()) / 2;
  const bool fits =
      pairs >= 1 && pairs <= 3 && (self.dim() == pairs + 1 || self.dim() == pairs + 2);
  const bool known = mode == "reflect" || mode == "replicate" || mode == "circular";
  if (known && fits) {
    return pad_border(self, pad,
                      mode == "reflect"     ? Mode::Reflect
                      : mode == "replicate" ? Mode::Replicate
                                            : Mode::Circular);
  }
  if (!known && fits) {
    fail(ErrorKind::NotImplemented, "", "Unrecognised padding mode ", mode);
  }
  fail(ErrorKind::NotImplemented, "", "Padding size ", pad.size() + 0, " is not supported for ",
       self.dim(),
       "D input tensor.\nSupported combinations for non-constant padding:\n"
       "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
       "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
       "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)");
}

Tensor one_hot_rows(const Tensor& self, int64_t classes) {
  if (self.dtype() != DType::Int64) {
    fail(ErrorKind::Runtime, "",
         "one_hot is only applicable to index tensor of type LongTensor, "
         "got ",
         self.dtype());
  }
  if (self.numel() == 0 && classes <= 0) {
    fail(ErrorKind::Runtime, "",
         classes == 0 || classes < -1 ? "num_classes must be positive for an empty tensor."
                                      : "Can not infer total number of classes from empty tensor.");
  }
  if (self.is_meta() && classes == -1) {
    fail(ErrorKind::Runtime, "one_hot", "num_classes cannot be inferred from a meta tensor");
  }
  int64_t low = 0;
  int64_t high = -1;
  if (!self.is_meta()) {
    const Tensor flat = kernels::as_contiguous(self);
    const auto* values = flat.data_ptr<int64_t>();
    for (int64_t i = 0; i < flat.numel(); ++i) {
      low = std::min(low, values[i]);
      high = std::max(high, values[i]);
    }
  }
  if (low < 0) {
    fail(ErrorKind::Runtime, "", "Class values must be non-negative, got ", low);
  }
  const int64_t total = classes == -1 ? high + 1 : classes;
  if (total < 1 || high >= total) {
    fail(ErrorKind::Runtime, "", "Class values must be smaller than num_classes, got ", high,
         " with num_classes=", total);
  }
  IntList sizes(self.sizes());
  sizes.push_back(total);
  return scatter_(zeros(sizes, self.options()), -1, unsqueeze(self, -1), 1);
}

// As the padding operators of one, two and three dimensions name theirs.
const char* pad_node(const Invocation& inv) {
  static constexpr const char* kNames[2][3] = {
      {"ReflectionPad1DBackward0", "ReflectionPad2DBackward0", "ReflectionPad3DBackward0"},
      {"ReplicationPad1DBackward0", "ReplicationPad2DBackward0", "ReplicationPad3DBackward0"}};
  std::string_view mode = inv.arguments[2].text();
  size_t dims = inv.arguments[1].ints().size() / 2;
  if ((mode != "reflect" && mode != "replicate") || dims < 1 || dims > 3) {
    return nullptr;
  }
  return kNames[mode == "reflect" ? 0 : 1][dims - 1];
}

}  // namespace

RUSHLIGHT_OPERATORS(shape_pad) {
  op("constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor", kFunction)
      .doc(
          "A number around the tensor: (before, after) of the last dimension, then of the one "
          "before it, ... Negative padding cuts off.")
      .kernel(pad_constant)
      .gradient("", [](Gradient& g) {
        IntList back(g.ints(1));
        for (int64_t& amount : back) {
          amount = -amount;
        }
        g.set(0, constant_pad_nd(g.grad(), back, 0));
      });
  op("pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor", kNN)
      .doc(
          "Pads by a number, or by the tensor's own elements: \"reflect\", \"replicate\", "
          "\"circular\".")
      .composition(pad_mode)
      .node(pad_node);
  op("_pad_border(Tensor self, SymInt[] pad, int mode) -> Tensor", kInternal)
      .doc("Pads by the tensor's own elements: mirrored (0), the last ones (1), come round (2).")
      .kernel(border_of)
      .gradient("", border_gradient);
  op("_pad_circular(Tensor self, SymInt[] pad) -> Tensor", kNN)
      .doc("Pads by the elements of the other end.")
      .composition([](const Tensor& self, IntArrayRef pad) {
        return pad_border(self, pad, Mode::Circular);
      });
  op("reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor", kNN)
      .doc("Mirrors the tensor at the borders of its last dimension.")
      .composition(pad_fixed<Mode::Reflect, 1>)
      .node("ReflectionPad1DBackward0");
  op("reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor", kNN)
      .doc("Mirrors the tensor at the borders of its last two dimensions.")
      .composition(pad_fixed<Mode::Reflect, 2>)
      .node("ReflectionPad2DBackward0");
  op("reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor", kNN)
      .doc("Mirrors the tensor at the borders of its last three dimensions.")
      .composition(pad_fixed<Mode::Reflect, 3>)
      .node("ReflectionPad3DBackward0");
  op("replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor", kNN)
      .doc("Repeats the elements at the borders of the last dimension.")
      .composition(pad_fixed<Mode::Replicate, 1>)
      .node("ReplicationPad1DBackward0");
  op("replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor", kNN)
      .doc("Repeats the elements at the borders of the last two dimensions.")
      .composition(pad_fixed<Mode::Replicate, 2>)
      .node("ReplicationPad2DBackward0");
  op("replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor", kNN)
      .doc("Repeats the elements at the borders of the last three dimensions.")
      .composition(pad_fixed<Mode::Replicate, 3>)
      .node("ReplicationPad3DBackward0");
  op("one_hot(Tensor self, int num_classes=-1) -> Tensor", kNN)
      .doc("A row of zeros with a one at the index, for each index.")
      .composition(one_hot_rows);
}

}  // namespace rushlight
