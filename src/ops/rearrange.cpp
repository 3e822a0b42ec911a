// Moving elements between the channels and the plane of images.
#include <rushlight/generated/functions.h>

#include "ops/operator.h"

namespace rushlight {
namespace {

// A tensor of its own, even where nothing moved.
Tensor owned(const Tensor& made, const Tensor& self) {
  return made.storage() == self.storage() ? clone(made) : made;
}

IntList batch_of(const Tensor& self) {
  return IntList(IntArrayRef(self.sizes().data(), static_cast<size_t>(self.dim() - 3)));
}

void require_image(const Tensor& self, std::string_view op) {
  if (self.dim() < 3) {
    fail(ErrorKind::Runtime, "", op,
         " expects input to have at least 3 dimensions, but got input with ", self.dim(),
         " dimension(s)");
  }
}

// (..., C r^2, H, W) as (..., C, H r, W r).
Tensor shuffle_pixels(const Tensor& self, int64_t factor) {
  require_image(self, "pixel_shuffle");
  if (factor <= 0) {
    fail(ErrorKind::Runtime, "", "pixel_shuffle expects a positive upscale_factor, but got ",
         factor);
  }
  const int64_t channels = self.size(-3);
  const int64_t square = checked_multiply(factor, factor, "pixel_shuffle");
  if (channels % square != 0) {
    fail(ErrorKind::Runtime, "",
         "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
         "upscale_factor, but input.size(-3)=",
         channels, " is not divisible by ", square);
  }
  const int64_t height = self.size(-2);
  const int64_t width = self.size(-1);
  IntList shape = batch_of(self);
  const auto lead = static_cast<int64_t>(shape.size());
  IntList split(shape);
  for (int64_t size : {channels / square, factor, factor, height, width}) {
    split.push_back(size);
  }
  IntList order;
  for (int64_t d = 0; d <= lead; ++d) {
    order.push_back(d);
  }
  for (int64_t d : {3, 1, 4, 2}) {
    order.push_back(lead + d);
  }
  for (int64_t size : {channels / square, height * factor, width * factor}) {
    shape.push_back(size);
  }
  return owned(reshape(permute(reshape(self, split), order), shape), self);
}

// The reverse.
Tensor unshuffle_pixels(const Tensor& self, int64_t factor) {
  require_image(self, "pixel_unshuffle");
  if (factor <= 0) {
    fail(ErrorKind::Runtime, "", "pixel_unshuffle expects a positive downscale_factor, but got ",
         factor);
  }
  const int64_t channels = self.size(-3);
  const int64_t height = self.size(-2);
  const int64_t width = self.size(-1);
  for (int64_t d : {-2, -1}) {
    if (self.size(d) % factor != 0) {
      fail(ErrorKind::Runtime, "", "pixel_unshuffle expects ", d == -2 ? "height" : "width",
           " to be divisible by downscale_factor, but input.size(", d, ")=", self.size(d),
           " is not divisible by ", factor);
    }
  }
  IntList shape = batch_of(self);
  const auto lead = static_cast<int64_t>(shape.size());
  IntList split(shape);
  for (int64_t size : {channels, height / factor, factor, width / factor, factor}) {
    split.push_back(size);
  }
  IntList order;
  for (int64_t d = 0; d <= lead; ++d) {
    order.push_back(d);
  }
  for (int64_t d : {2, 4, 1, 3}) {
    order.push_back(lead + d);
  }
  for (int64_t size : {channels * factor * factor, height / factor, width / factor}) {
    shape.push_back(size);
  }
  return owned(reshape(permute(reshape(self, split), order), shape), self);
}

Tensor shuffle_channels(const Tensor& self, int64_t groups) {
  if (self.dim() < 3) {
    fail(ErrorKind::Runtime, "",
         "channel_shuffle expects input with > 2 dims, but got input with sizes ", self.sizes());
  }
  const int64_t channels = self.size(1);
  if (groups <= 0) {
    fail(ErrorKind::Runtime, "",
         "Number of groups to divide channels in must be positive. Value of groups:", groups);
  }
  if (channels % groups != 0) {
    fail(ErrorKind::Runtime, "", "Number of channels must be divisible by groups. Got ", channels,
         " channels and ", groups, " groups.");
  }
  IntList split(self.sizes());
  split[1] = groups;
  split.insert(2, channels / groups);
  return owned(reshape(transpose(reshape(self, split), 1, 2), self.sizes()), self);
}

}  // namespace

RUSHLIGHT_OPERATORS(rearrange) {
  op("pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", kFunction)
      .doc("(..., C r^2, H, W) as (..., C, H r, W r).")
      .composition(shuffle_pixels)
      .node("PixelShuffleBackward0");
  op("pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", kFunction)
      .doc("(..., C, H r, W r) as (..., C r^2, H, W).")
      .composition(unshuffle_pixels)
      .node("PixelUnshuffleBackward0");
  op("channel_shuffle(Tensor self, SymInt groups) -> Tensor", kFunction)
      .doc("Deals the channels out over `groups`.")
      .composition(shuffle_channels)
      .node("ChannelShuffleBackward0");
  op("native_channel_shuffle(Tensor self, SymInt groups) -> Tensor", kFunction)
      .doc("channel_shuffle, under the name of PyTorch's own kernel.")
      .composition(
          [](const Tensor& self, int64_t groups) { return channel_shuffle(self, groups); });
}

}  // namespace rushlight
