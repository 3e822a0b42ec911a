// Dropout of whole channels, and dropout that keeps mean and variance. RUSHLIGHT_DROPOUT(Name,
// Dropout) makes the layer Name with DropoutOptions.
#pragma once

#include <rushlight/nn/layers.h>

namespace rushlight::nn {

#define RUSHLIGHT_DROPOUT(Name, Family)                       \
  using Name##Options = Family##Options;                      \
  class RUSHLIGHT_API Name##Impl : public TensorModule {      \
   public:                                                    \
    explicit Name##Impl(const Name##Options& options);        \
    explicit Name##Impl(double p = 0.5, bool inplace = false) \
        : Name##Impl(Name##Options(p).inplace(inplace)) {}    \
    Tensor forward(const Tensor& input) override;             \
    std::string extra_repr() const override;                  \
    Name##Options options;                                    \
  };                                                          \
  RUSHLIGHT_MODULE(Name)

RUSHLIGHT_DROPOUT(Dropout1d, Dropout);  // channels of (N, C, L) or (C, L)
RUSHLIGHT_DROPOUT(Dropout2d, Dropout);  // channels of (N, C, H, W)
RUSHLIGHT_DROPOUT(Dropout3d, Dropout);  // channels of (N, C, D, H, W) or (C, D, H, W)
// Keeps the mean and the variance of self-normalised inputs (Klambauer et al., 2017).
RUSHLIGHT_DROPOUT(AlphaDropout, Dropout);
RUSHLIGHT_DROPOUT(FeatureAlphaDropout, Dropout);  // the same, of whole channels

}  // namespace rushlight::nn
