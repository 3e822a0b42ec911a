// Borders around the last D dimensions of (N, C, spatial...) or (C, spatial...). `padding` holds
// (before, after) pairs from the last dimension on, or one number for all; negative ones cut.
#pragma once

#include <rushlight/nn/pooling.h>

namespace rushlight::nn {

enum class PadMode : uint8_t { Reflect, Replicate, Circular, Zero };

template <size_t D>
struct PadOptions {
  PadOptions(ExpandingArray<2 * D> padding) : padding_(padding) {}
  RUSHLIGHT_ARG(ExpandingArray<2 * D>, padding);
};

// Error(Value) from circular ones where the input has another number of dimensions.
template <size_t D, PadMode mode>
class PadImplNd : public TensorModule {
 public:
  explicit PadImplNd(const PadOptions<D>& options);
  explicit PadImplNd(ExpandingArray<2 * D> padding) : PadImplNd(PadOptions<D>(padding)) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
  PadOptions<D> options;
};

#define RUSHLIGHT_ND_PAD(Name, Family, D, mode)  \
  using Name##Options = Family##Options<D>;      \
  using Name##Impl = Family##ImplNd<D, mode>;    \
  extern template class Family##ImplNd<D, mode>; \
  RUSHLIGHT_MODULE(Name)
RUSHLIGHT_ND_PAD(ReflectionPad1d, Pad, 1, PadMode::Reflect);
RUSHLIGHT_ND_PAD(ReflectionPad2d, Pad, 2, PadMode::Reflect);
RUSHLIGHT_ND_PAD(ReflectionPad3d, Pad, 3, PadMode::Reflect);
RUSHLIGHT_ND_PAD(ReplicationPad1d, Pad, 1, PadMode::Replicate);
RUSHLIGHT_ND_PAD(ReplicationPad2d, Pad, 2, PadMode::Replicate);
RUSHLIGHT_ND_PAD(ReplicationPad3d, Pad, 3, PadMode::Replicate);
RUSHLIGHT_ND_PAD(CircularPad1d, Pad, 1, PadMode::Circular);
RUSHLIGHT_ND_PAD(CircularPad2d, Pad, 2, PadMode::Circular);
RUSHLIGHT_ND_PAD(CircularPad3d, Pad, 3, PadMode::Circular);
RUSHLIGHT_ND_PAD(ZeroPad1d, Pad, 1, PadMode::Zero);
RUSHLIGHT_ND_PAD(ZeroPad2d, Pad, 2, PadMode::Zero);
RUSHLIGHT_ND_PAD(ZeroPad3d, Pad, 3, PadMode::Zero);
#undef RUSHLIGHT_ND_PAD

template <size_t D>
struct ConstantPadOptions {
  ConstantPadOptions(ExpandingArray<2 * D> padding, double value)
      : padding_(padding), value_(value) {}
  RUSHLIGHT_ARG(ExpandingArray<2 * D>, padding);
  RUSHLIGHT_ARG(double, value);
};

template <size_t D>
class ConstantPadImplNd : public TensorModule {
 public:
  explicit ConstantPadImplNd(const ConstantPadOptions<D>& options);
  ConstantPadImplNd(ExpandingArray<2 * D> padding, double value)
      : ConstantPadImplNd(ConstantPadOptions<D>(padding, value)) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
  ConstantPadOptions<D> options;
};
RUSHLIGHT_ND_LAYER(ConstantPad1d, ConstantPad, 1);
RUSHLIGHT_ND_LAYER(ConstantPad2d, ConstantPad, 2);
RUSHLIGHT_ND_LAYER(ConstantPad3d, ConstantPad, 3);

}  // namespace rushlight::nn
