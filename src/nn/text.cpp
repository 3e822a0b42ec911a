#include "nn/text.h"

#include <cstdio>
#include <cstdlib>

namespace rushlight::nn {

std::string python_text(double value) {
  char text[40];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof(text), "%.*g", digits, value);
    if (std::strtod(text, nullptr) == value) {
      break;
    }
  }
  std::string out = text;
  if (out.find_first_of(".en") == std::string::npos) {
    out.append(".0");
  }
  return out;
}

std::string python_text(const std::vector<int64_t>& shape) {
  std::string out = "(";
  for (size_t i = 0; i < shape.size(); ++i) {
    out.append(cat(i == 0 ? "" : ", ", shape[i]));
  }
  return out.append(shape.size() == 1 ? ",)" : ")");
}

std::string indented(const std::string& text) {
  std::string out;
  for (char letter : text) {
    out += letter;
    if (letter == '\n') {
      out += "  ";
    }
  }
  return out;
}

}  // namespace rushlight::nn
