// One style for all numbers of a tensor: width, digits, scientific or not.
#pragma once

#include <rushlight/printing.h>

#include <string>
#include <vector>

namespace rushlight {

class NumberStyle {
 public:
  // Chosen so that every number in `values` fits; `floating` tells floats from integers and bools.
  NumberStyle(const std::vector<Scalar>& values, bool floating, const PrintOptions& options);
  size_t width() const { return width_; }
  // Padded on the left to width().
  std::string format(const Scalar& value) const;

 private:
  void choose_floating(const std::vector<Scalar>& values, std::optional<bool> scientific);
  std::string text(double value) const;

  bool floating_;
  bool whole_ = true;  // floats without fraction print as "1."
  bool scientific_ = false;
  int precision_;
  size_t width_ = 1;
};

}  // namespace rushlight
