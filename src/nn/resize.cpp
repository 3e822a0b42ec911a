#include <rushlight/generated/functions.h>
#include <rushlight/nn/resize.h>

#include <algorithm>
#include <cmath>

#include "nn/text.h"

namespace rushlight::nn {
namespace {

using Sizes = UpsampleOptions::Sizes;
using Factors = UpsampleOptions::Factors;

// One value for each of `dims` dimensions.
template <typename T>
std::vector<T> expanded(const std::vector<T>& given, int64_t dims, const Tensor& input,
                        const char* what) {
  if (given.size() == 1) {
    return std::vector<T>(static_cast<size_t>(dims), given[0]);
  }
  if (static_cast<int64_t>(given.size()) != dims) {
    fail(ErrorKind::Value, "interpolate", "expected one ", what, " or ", dims,
         ", one for each spatial dimension of the input of sizes ", input.sizes(), ", got ",
         static_cast<int64_t>(given.size()));
  }
  return given;
}

struct Target {
  std::optional<Sizes> size;
  std::optional<Factors> scales;
};

Target target_of(const Tensor& input, const UpsampleOptions& options) {
  const int64_t dims = input.dim() - 2;
  if (options.size().has_value() == options.scale_factor().has_value()) {
    fail(ErrorKind::Value, "",
         options.size() ? "only one of size or scale_factor should be defined"
                        : "either size or scale_factor should be defined");
  }
  const bool recompute = options.recompute_scale_factor().value_or(false);
  if (options.size()) {
    if (recompute) {
      fail(ErrorKind::Value, "", "recompute_scale_factor is not meaningful with an explicit size.");
    }
    return {expanded(*options.size(), dims, input, "size"), std::nullopt};
  }
  Factors scales = expanded(*options.scale_factor(), dims, input, "scale_factor");
  if (!recompute && options.mode() != "area") {
    return {std::nullopt, scales};
  }
  Sizes size;
  for (size_t i = 0; i < scales.size(); ++i) {
    const auto extent = static_cast<double>(input.size(static_cast<int64_t>(i) + 2));
    size.push_back(static_cast<int64_t>(std::floor(extent * scales[i])));
  }
  return {size, std::nullopt};
}

OptionalIntArrayRef sizes_of(const Target& target) {
  return target.size ? OptionalIntArrayRef(IntArrayRef(target.size->data(), target.size->size()))
                     : OptionalIntArrayRef();
}

// The operators of one to three dimensions; null where a mode has none.
using Nearest = Tensor (*)(const Tensor&, OptionalIntArrayRef, std::optional<Factors>);
using Smooth = Tensor (*)(const Tensor&, OptionalIntArrayRef, bool, std::optional<Factors>);
struct Mode {
  const char* name;
  Nearest nearest[3];
  Smooth smooth[3];
  Smooth antialiased;  // of images
};
const Mode kModes[] = {
    {"nearest", {upsample_nearest1d, upsample_nearest2d, upsample_nearest3d}, {}, nullptr},
    {"nearest-exact",
     {_upsample_nearest_exact1d, _upsample_nearest_exact2d, _upsample_nearest_exact3d},
     {},
     nullptr},
    {"area", {}, {}, nullptr},
    {"linear", {}, {upsample_linear1d, nullptr, nullptr}, nullptr},
    {"bilinear", {}, {nullptr, upsample_bilinear2d, nullptr}, _upsample_bilinear2d_aa},
    {"bicubic", {}, {nullptr, upsample_bicubic2d, nullptr}, _upsample_bicubic2d_aa},
    {"trilinear", {}, {nullptr, nullptr, upsample_trilinear3d}, nullptr},
};

const Mode& mode_named(const std::string& name) {
  for (const Mode& mode : kModes) {
    if (name == mode.name) {
      return mode;
    }
  }
  fail(ErrorKind::NotImplemented, "interpolate",
       "expected mode nearest, nearest-exact, area, linear, bilinear, bicubic or trilinear, got ",
       name);
}

Tensor resize_by_area(const Tensor& input, const Sizes& size) {
  const IntArrayRef sizes(size.data(), size.size());
  switch (size.size()) {
    case 1:
      return adaptive_avg_pool1d(input, sizes);
    case 2:
      return adaptive_avg_pool2d(input, sizes);
    default:
      return adaptive_avg_pool3d(input, sizes);
  }
}

template <typename T, typename Text>
std::string listed(const std::vector<T>& values, const Text& text) {
  if (values.size() == 1) {
    return text(values[0]);
  }
  std::string made = "(";
  for (size_t i = 0; i < values.size(); ++i) {
    made.append(i == 0 ? "" : ", ").append(text(values[i]));
  }
  return made.append(")");
}

}  // namespace

Tensor interpolate(const Tensor& input, const UpsampleOptions& options, bool antialias) {
  const Mode& mode = mode_named(options.mode());
  const int64_t dims = input.dim() - 2;
  const bool smooth = std::any_of(mode.smooth, mode.smooth + 3, [](Smooth s) { return s; });
  if (!smooth && options.align_corners()) {
    fail(ErrorKind::Value, "",
         "align_corners option can only be set with the interpolating modes: linear | bilinear | "
         "bicubic | trilinear");
  }
  if (dims < 1 || dims > 3) {
    fail(ErrorKind::NotImplemented, "interpolate",
         "expected an input of 3, 4 or 5 dimensions, got ", input.dim());
  }
  const Target target = target_of(input, options);
  if (antialias && !(mode.antialiased && dims == 2)) {
    fail(ErrorKind::Value, "",
         "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor "
         "as input");
  }
  if (options.mode() == "area") {
    return resize_by_area(input, *target.size);
  }
  if (Nearest nearest = mode.nearest[dims - 1]) {
    return nearest(input, sizes_of(target), target.scales);
  }
  Smooth chosen = antialias ? mode.antialiased : mode.smooth[dims - 1];
  if (!chosen) {
    fail(ErrorKind::NotImplemented, "interpolate", "Got ", input.dim(), "D input, but mode ",
         options.mode(), " is not for that many dimensions");
  }
  return chosen(input, sizes_of(target), options.align_corners().value_or(false), target.scales);
}

UpsampleImpl::UpsampleImpl(const char* name, UpsampleOptions given)
    : TensorModule(name), options(std::move(given)) {}

UpsampleImpl::UpsampleImpl(UpsampleOptions given) : UpsampleImpl("Upsample", std::move(given)) {}

Tensor UpsampleImpl::forward(const Tensor& input) {
  return interpolate(input, options);
}

std::string UpsampleImpl::extra_repr() const {
  std::string text = "size=None";
  if (options.scale_factor()) {
    const auto number = [](double value) { return python_text(value); };
    text = cat("scale_factor=", listed(*options.scale_factor(), number));
  } else if (options.size()) {
    const auto number = [](int64_t value) { return std::to_string(value); };
    text = cat("size=", listed(*options.size(), number));
  }
  return cat(text, ", mode='", options.mode(), "'");
}

UpsamplingNearest2dImpl::UpsamplingNearest2dImpl(const UpsamplingOptions& given)
    : UpsampleImpl("UpsamplingNearest2d",
                   UpsampleOptions().size(given.size()).scale_factor(given.scale_factor())) {}

UpsamplingBilinear2dImpl::UpsamplingBilinear2dImpl(const UpsamplingOptions& given)
    : UpsampleImpl("UpsamplingBilinear2d", UpsampleOptions()
                                               .size(given.size())
                                               .scale_factor(given.scale_factor())
                                               .mode("bilinear")
                                               .align_corners(true)) {}

UnflattenImpl::UnflattenImpl(UnflattenOptions given)
    : TensorModule("Unflatten"), options(std::move(given)) {}

Tensor UnflattenImpl::forward(const Tensor& input) {
  const std::vector<int64_t>& sizes = options.unflattened_size();
  return unflatten(input, options.dim(), IntArrayRef(sizes.data(), sizes.size()));
}

std::string UnflattenImpl::extra_repr() const {
  return cat("dim=", options.dim(), ", unflattened_size=", python_text(options.unflattened_size()));
}

#define RUSHLIGHT_DEFINE(Name, function, option)    \
  Tensor Name##Impl::forward(const Tensor& input) { \
    return function(input, options.option());       \
  }                                                 \
  std::string Name##Impl::extra_repr() const {      \
    return cat(#option "=", options.option());      \
  }
RUSHLIGHT_DEFINE(PixelShuffle, pixel_shuffle, upscale_factor)
RUSHLIGHT_DEFINE(PixelUnshuffle, pixel_unshuffle, downscale_factor)
RUSHLIGHT_DEFINE(ChannelShuffle, channel_shuffle, groups)
#undef RUSHLIGHT_DEFINE

}  // namespace rushlight::nn
