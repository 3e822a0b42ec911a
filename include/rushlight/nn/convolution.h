// Convolutions and their transposes. Constructors draw the same random numbers as Python's.
#pragma once

#include <rushlight/nn/module.h>

#include <initializer_list>

namespace rushlight::nn {

// A number for each spatial dimension; one number stands for all of them.
class Spread {
 public:
  Spread(int64_t all) : values_{all} {}
  Spread(int all) : values_{all} {}
  Spread(std::initializer_list<int64_t> values) : values_(values) {}
  Spread(std::vector<int64_t> values) : values_(std::move(values)) {}
  // As many as there are dimensions; Error(Value) naming the layer and the option.
  std::vector<int64_t> over(int dims, const char* layer, const char* option) const;

 private:
  std::vector<int64_t> values_;
};

// How far the input is extended by zeros on each side, or "same" or "valid".
class Padding {
 public:
  Padding(Spread sizes) : sizes_(std::move(sizes)) {}
  Padding(int64_t all) : sizes_(all) {}
  Padding(int all) : sizes_(all) {}
  Padding(std::initializer_list<int64_t> values) : sizes_(values) {}
  Padding(const char* mode) : sizes_(0), mode_(mode) {}
  Padding(std::string mode) : sizes_(0), mode_(std::move(mode)) {}
  const Spread& sizes() const { return sizes_; }
  const std::string& mode() const { return mode_; }  // empty where sizes were given

 private:
  Spread sizes_;
  std::string mode_;
};

template <int D>
struct ConvOptions {
  ConvOptions(int64_t in_channels, int64_t out_channels, Spread kernel_size)
      : in_channels_(in_channels),
        out_channels_(out_channels),
        kernel_size_(std::move(kernel_size)) {}
  RUSHLIGHT_ARG(int64_t, in_channels);
  RUSHLIGHT_ARG(int64_t, out_channels);
  RUSHLIGHT_ARG(Spread, kernel_size);
  RUSHLIGHT_ARG(Spread, stride) = 1;
  RUSHLIGHT_ARG(Padding, padding) = 0;
  RUSHLIGHT_ARG(Spread, dilation) = 1;
  RUSHLIGHT_ARG(int64_t, groups) = 1;
  RUSHLIGHT_ARG(bool, bias) = true;
  RUSHLIGHT_ARG(std::string, padding_mode) = "zeros";
};
using Conv1dOptions = ConvOptions<1>;
using Conv2dOptions = ConvOptions<2>;
using Conv3dOptions = ConvOptions<3>;

template <int D>
struct ConvTransposeOptions {
  ConvTransposeOptions(int64_t in_channels, int64_t out_channels, Spread kernel_size)
      : in_channels_(in_channels),
        out_channels_(out_channels),
        kernel_size_(std::move(kernel_size)) {}
  RUSHLIGHT_ARG(int64_t, in_channels);
  RUSHLIGHT_ARG(int64_t, out_channels);
  RUSHLIGHT_ARG(Spread, kernel_size);
  RUSHLIGHT_ARG(Spread, stride) = 1;
  RUSHLIGHT_ARG(Spread, padding) = 0;
  RUSHLIGHT_ARG(Spread, output_padding) = 0;
  RUSHLIGHT_ARG(int64_t, groups) = 1;
  RUSHLIGHT_ARG(bool, bias) = true;
  RUSHLIGHT_ARG(Spread, dilation) = 1;
  RUSHLIGHT_ARG(std::string, padding_mode) = "zeros";
};
using ConvTranspose1dOptions = ConvTransposeOptions<1>;
using ConvTranspose2dOptions = ConvTransposeOptions<2>;
using ConvTranspose3dOptions = ConvTransposeOptions<3>;

// What all convolutions share: (N, C, ...) or (C, ...) with `dims` spatial dimensions.
class RUSHLIGHT_API ConvolutionImpl : public TensorModule {
 public:
  void reset_parameters();
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  // (out_channels, in_channels / groups, kernel...), of transposed ones (in_channels,
  // out_channels / groups, kernel...).
  Tensor weight;
  Tensor bias;  // (out_channels), or undefined

 protected:
  struct Settings {
    int dims;
    bool transposed;
    int64_t in_channels;
    int64_t out_channels;
    Spread kernel_size;
    Spread stride;
    Padding padding;
    Spread dilation;
    Spread output_padding;
    int64_t groups;
    bool bias;
    std::string padding_mode;
  };
  ConvolutionImpl(const char* name, const Settings& settings);
  Tensor transpose_of(const Tensor& input, const std::vector<int64_t>& output_padding);
  // What must be added to the smallest output for it to have these sizes.
  std::vector<int64_t> padding_for(const Tensor& input, std::vector<int64_t> output_size) const;

 private:
  std::vector<int64_t> spread(const Spread& given, const char* option) const;

  int dims_;
  bool transposed_;
  int64_t in_channels_;
  int64_t out_channels_;
  int64_t groups_;
  std::vector<int64_t> kernel_size_;
  std::vector<int64_t> stride_;
  std::vector<int64_t> padding_;
  std::string padding_text_;  // "same" or "valid", or empty
  std::vector<int64_t> dilation_;
  std::vector<int64_t> output_padding_;
  std::string padding_mode_;
};

#define RUSHLIGHT_CONVOLUTION(Name)                                                       \
  class RUSHLIGHT_API Name##Impl : public ConvolutionImpl {                               \
   public:                                                                                \
    explicit Name##Impl(const Name##Options& options);                                    \
    Name##Impl(int64_t in_channels, int64_t out_channels, Spread kernel_size)             \
        : Name##Impl(Name##Options(in_channels, out_channels, std::move(kernel_size))) {} \
    Name##Options options;                                                                \
  }

#define RUSHLIGHT_TRANSPOSED(Name)                                                        \
  class RUSHLIGHT_API Name##Impl : public ConvolutionImpl {                               \
   public:                                                                                \
    explicit Name##Impl(const Name##Options& options);                                    \
    Name##Impl(int64_t in_channels, int64_t out_channels, Spread kernel_size)             \
        : Name##Impl(Name##Options(in_channels, out_channels, std::move(kernel_size))) {} \
    using ConvolutionImpl::forward;                                                       \
    Tensor forward(const Tensor& input, const std::vector<int64_t>& output_size) {        \
      return transpose_of(input, padding_for(input, output_size));                        \
    }                                                                                     \
    Name##Options options;                                                                \
  }

RUSHLIGHT_CONVOLUTION(Conv1d);
RUSHLIGHT_MODULE(Conv1d);
RUSHLIGHT_CONVOLUTION(Conv2d);
RUSHLIGHT_MODULE(Conv2d);
RUSHLIGHT_CONVOLUTION(Conv3d);
RUSHLIGHT_MODULE(Conv3d);
RUSHLIGHT_TRANSPOSED(ConvTranspose1d);
RUSHLIGHT_MODULE(ConvTranspose1d);
RUSHLIGHT_TRANSPOSED(ConvTranspose2d);
RUSHLIGHT_MODULE(ConvTranspose2d);
RUSHLIGHT_TRANSPOSED(ConvTranspose3d);
RUSHLIGHT_MODULE(ConvTranspose3d);

#undef RUSHLIGHT_CONVOLUTION
#undef RUSHLIGHT_TRANSPOSED

}  // namespace rushlight::nn
