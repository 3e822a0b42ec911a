#include <rushlight/generated/functions.h>
#include <rushlight/nn/padding.h>

#include "nn/text.h"

namespace rushlight::nn {
namespace {

constexpr const char* kClasses[] = {"ReflectionPad", "ReplicationPad", "CircularPad", "ZeroPad"};
constexpr const char* kModes[] = {"reflect", "replicate", "circular", "constant"};

template <size_t D>
std::string text(const ExpandingArray<D>& values) {
  return python_text(std::vector<int64_t>(values.begin(), values.end()));
}

}  // namespace

template <size_t D, PadMode mode>
PadImplNd<D, mode>::PadImplNd(const PadOptions<D>& given)
    : TensorModule(cat(kClasses[static_cast<int>(mode)], static_cast<int64_t>(D), "d")),
      options(given) {}

template <size_t D, PadMode mode>
Tensor PadImplNd<D, mode>::forward(const Tensor& input) {
  constexpr auto kDims = static_cast<int64_t>(D) + 1;
  if (mode == PadMode::Circular && input.dim() != kDims && input.dim() != kDims + 1) {
    fail(ErrorKind::Value, "", "expected ", kDims, "D or ", kDims + 1, "D input (got ", input.dim(),
         "D input)");
  }
  return pad(input, options.padding(), kModes[static_cast<int>(mode)],
             mode == PadMode::Zero ? std::optional<double>(0) : std::nullopt);
}

template <size_t D, PadMode mode>
std::string PadImplNd<D, mode>::extra_repr() const {
  return text(options.padding());
}

template <size_t D>
ConstantPadImplNd<D>::ConstantPadImplNd(const ConstantPadOptions<D>& given)
    : TensorModule(cat("ConstantPad", static_cast<int64_t>(D), "d")), options(given) {}

template <size_t D>
Tensor ConstantPadImplNd<D>::forward(const Tensor& input) {
  return pad(input, options.padding(), "constant", options.value());
}

template <size_t D>
std::string ConstantPadImplNd<D>::extra_repr() const {
  return cat("padding=", text(options.padding()), ", value=", python_text(options.value()));
}

#define RUSHLIGHT_INSTANTIATE(D)                   \
  template class PadImplNd<D, PadMode::Reflect>;   \
  template class PadImplNd<D, PadMode::Replicate>; \
  template class PadImplNd<D, PadMode::Circular>;  \
  template class PadImplNd<D, PadMode::Zero>;      \
  template class ConstantPadImplNd<D>;
RUSHLIGHT_INSTANTIATE(1)
RUSHLIGHT_INSTANTIATE(2)
RUSHLIGHT_INSTANTIATE(3)
#undef RUSHLIGHT_INSTANTIATE

}  // namespace rushlight::nn
