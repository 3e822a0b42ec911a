#include "tensor/print_number.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace rushlight {
namespace {

std::string printed(const char* format, int precision, double value) {
  if (std::isnan(value)) {
    return "nan";
  }
  const int size = std::snprintf(nullptr, 0, format, precision, value);
  std::string text(static_cast<size_t>(size), '\0');
  std::snprintf(text.data(), text.size() + 1, format, precision, value);
  return text;
}

std::string integer_text(const Scalar& value) {
  if (value.is_boolean()) {
    return value.to_bool() ? "True" : "False";
  }
  return value.to_string();
}

}  // namespace

NumberStyle::NumberStyle(const std::vector<Scalar>& values, bool floating,
                         const PrintOptions& options)
    : floating_(floating), precision_(options.precision) {
  if (floating) {
    choose_floating(values, options.scientific);
    return;
  }
  for (const Scalar& value : values) {
    width_ = std::max(width_, integer_text(value).size());
  }
}

// Zeros, infinities and NaN have no say.
void NumberStyle::choose_floating(const std::vector<Scalar>& values,
                                  std::optional<bool> scientific) {
  double least = HUGE_VAL;
  double most = 0;
  std::vector<double> counted;
  for (const Scalar& scalar : values) {
    const double value = scalar.to_double();
    if (value == 0 || !std::isfinite(value)) {
      continue;
    }
    counted.push_back(value);
    least = std::min(least, std::fabs(value));
    most = std::max(most, std::fabs(value));
    whole_ = whole_ && value == std::ceil(value);
  }
  if (counted.empty()) {
    return;
  }
  const bool wide = most / least > 1000.0 || most > 1.0e8 || (!whole_ && least < 1.0e-4);
  scientific_ = scientific.value_or(wide);
  for (const double value : counted) {
    width_ = std::max(width_, text(value).size());
  }
}

std::string NumberStyle::text(double value) const {
  if (scientific_) {
    return printed("%.*e", precision_, value);
  }
  if (!whole_) {
    return printed("%.*f", precision_, value);
  }
  return printed("%.*f", 0, value) + (std::isfinite(value) ? "." : "");
}

std::string NumberStyle::format(const Scalar& value) const {
  std::string result = floating_ ? text(value.to_double()) : integer_text(value);
  if (result.size() < width_) {
    result.insert(0, width_ - result.size(), ' ');
  }
  return result;
}

}  // namespace rushlight
