// Settings as Python's repr writes them, for extra_repr.
#pragma once

#include <rushlight/nn/module.h>

#include <string>
#include <vector>

namespace rushlight::nn {

std::string python_text(double value);
std::string python_text(const std::vector<int64_t>& shape);  // "(3, 4)", "(3,)"
// All lines but the first moved in by two.
std::string indented(const std::string& text);
inline const char* python_text(bool value) {
  return value ? "True" : "False";
}
inline int64_t code(Reduction reduction) {
  return static_cast<int64_t>(reduction);
}

}  // namespace rushlight::nn
