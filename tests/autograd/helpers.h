// What the autograd tests share.
#pragma once

#include <gtest/gtest.h>
#include <rushlight/autograd.h>
#include <rushlight/generated/functions.h>
#include <rushlight/tensor.h>

#include <algorithm>
#include <string>
#include <vector>

namespace rushlight::testing {

// A contiguous f32 tensor of these values.
inline Tensor tensor(std::vector<float> values, IntArrayRef sizes) {
  Tensor made = make_tensor(sizes, DType::Float32);
  std::copy(values.begin(), values.end(), made.data_ptr<float>());
  return made;
}
inline Tensor tensor(std::vector<float> values) {
  int64_t count = static_cast<int64_t>(values.size());
  return tensor(std::move(values), {count});
}
inline Tensor leaf(std::vector<float> values) {
  return tensor(std::move(values)).requires_grad_();
}

// The elements in row-major order, through the strides.
inline std::vector<float> values(const Tensor& t) {
  std::vector<float> list;
  for (int64_t i = 0; i < t.numel(); ++i) {
    int64_t at = 0;
    int64_t rest = i;
    for (int64_t d = t.dim(); d-- > 0;) {
      at += rest % t.sizes()[d] * t.strides()[d];
      rest /= t.sizes()[d];
    }
    list.push_back(t.data_ptr<float>()[at]);
  }
  return list;
}

using Floats = std::vector<float>;

// The function fails with an error of this kind whose text contains `text`.
template <typename F>
void expect_error(ErrorKind kind, const std::string& text, F&& function) {
  try {
    function();
    ADD_FAILURE() << "no error; expected: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

}  // namespace rushlight::testing
