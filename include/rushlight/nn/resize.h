// Changes of resolution and of shape.
#pragma once

#include <rushlight/nn/layers.h>

#include <optional>
#include <string>
#include <vector>

namespace rushlight::nn {

// One size or factor stands for all dimensions. Exactly one of both must be given.
struct UpsampleOptions {
  using Sizes = std::vector<int64_t>;
  using Factors = std::vector<double>;
  RUSHLIGHT_ARG(std::optional<Sizes>, size) = std::nullopt;
  RUSHLIGHT_ARG(std::optional<Factors>, scale_factor) = std::nullopt;
  // "nearest", "nearest-exact", "area", "linear", "bilinear", "bicubic" or "trilinear".
  RUSHLIGHT_ARG(std::string, mode) = "nearest";
  RUSHLIGHT_ARG(std::optional<bool>, align_corners) = std::nullopt;
  RUSHLIGHT_ARG(std::optional<bool>, recompute_scale_factor) = std::nullopt;
};

// Resizes (N, C, spatial...), of one to three spatial dimensions. Error(Value) where options
// contradict each other or the input; Error(NotImplemented) for a mode of other dimensions.
RUSHLIGHT_API Tensor interpolate(const Tensor& input, const UpsampleOptions& options,
                                 bool antialias = false);

class RUSHLIGHT_API UpsampleImpl : public TensorModule {
 public:
  explicit UpsampleImpl(UpsampleOptions options);
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
  UpsampleOptions options;

 protected:
  UpsampleImpl(const char* name, UpsampleOptions options);
};
RUSHLIGHT_MODULE(Upsample);

struct UpsamplingOptions {
  RUSHLIGHT_ARG(std::optional<std::vector<int64_t>>, size) = std::nullopt;
  RUSHLIGHT_ARG(std::optional<std::vector<double>>, scale_factor) = std::nullopt;
};

// RUSHLIGHT_UPSAMPLING(Name, Upsampling): an Upsample of images in one mode.
#define RUSHLIGHT_UPSAMPLING(Name, Family)               \
  using Name##Options = Family##Options;                 \
  class RUSHLIGHT_API Name##Impl : public UpsampleImpl { \
   public:                                               \
    explicit Name##Impl(const Name##Options& options);   \
  };                                                     \
  RUSHLIGHT_MODULE(Name)
RUSHLIGHT_UPSAMPLING(UpsamplingNearest2d, Upsampling);
RUSHLIGHT_UPSAMPLING(UpsamplingBilinear2d, Upsampling);  // with aligned corners
#undef RUSHLIGHT_UPSAMPLING

struct UnflattenOptions {
  UnflattenOptions(int64_t dim, std::vector<int64_t> unflattened_size)
      : dim_(dim), unflattened_size_(std::move(unflattened_size)) {}
  RUSHLIGHT_ARG(int64_t, dim);
  RUSHLIGHT_ARG(std::vector<int64_t>, unflattened_size);
};

// Splits one dimension into several.
class RUSHLIGHT_API UnflattenImpl : public TensorModule {
 public:
  explicit UnflattenImpl(UnflattenOptions options);
  UnflattenImpl(int64_t dim, std::vector<int64_t> unflattened_size)
      : UnflattenImpl(UnflattenOptions(dim, std::move(unflattened_size))) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
  UnflattenOptions options;
};
RUSHLIGHT_MODULE(Unflatten);

// RUSHLIGHT_OF_INT(Name, option): a layer with one whole number, which has no default.
#define RUSHLIGHT_OF_INT(Name, option)                                                           \
  struct Name##Options {                                                                         \
    Name##Options(int64_t option) : option##_(option) {}                                         \
    RUSHLIGHT_ARG(int64_t, option);                                                              \
  };                                                                                             \
  class RUSHLIGHT_API Name##Impl : public TensorModule {                                         \
   public:                                                                                       \
    explicit Name##Impl(const Name##Options& options) : TensorModule(#Name), options(options) {} \
    explicit Name##Impl(int64_t option) : Name##Impl(Name##Options(option)) {}                   \
    Tensor forward(const Tensor& input) override;                                                \
    std::string extra_repr() const override;                                                     \
    Name##Options options;                                                                       \
  };                                                                                             \
  RUSHLIGHT_MODULE(Name)
RUSHLIGHT_OF_INT(PixelShuffle, upscale_factor);      // (..., C r^2, H, W) to (..., C, H r, W r)
RUSHLIGHT_OF_INT(PixelUnshuffle, downscale_factor);  // (..., C, H r, W r) to (..., C r^2, H, W)
RUSHLIGHT_OF_INT(ChannelShuffle, groups);  // spreads the channels of each group over all groups
#undef RUSHLIGHT_OF_INT

}  // namespace rushlight::nn
