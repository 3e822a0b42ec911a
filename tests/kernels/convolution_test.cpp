#include "kernels/convolution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "matrix_fixture.h"
#include "runtime/parallel.h"

namespace rushlight {
namespace {

using testing::read_element;
using testing::write_element;

// Five dimensions in memory in their order, with channels last, or with gaps.
enum class Order : uint8_t { first, last, spread };

class Images {
 public:
  Images(DType dtype, int64_t n, int64_t c, const Extent& size, Order order)
      : dtype_(dtype), sizes_{n, c, size[0], size[1], size[2]} {
    const int64_t step = order == Order::last ? c : order == Order::spread ? 2 : 1;
    const int64_t row = size[2] * step + (order == Order::spread ? 1 : 0);
    const int64_t plane = size[0] * size[1] * row;
    strides_ = {order == Order::last ? plane : c * plane, order == Order::last ? 1 : plane,
                size[1] * row, row, step};
    data_.resize(static_cast<size_t>((n * c * plane + 1) * element_size(dtype)));
  }

  void fill(std::mt19937& generator) {
    std::uniform_real_distribution<double> real(-1, 1);
    each([&](int64_t at) { write_element(dtype_, data_.data(), at, real(generator)); });
  }
  void set(int64_t at, double value) { write_element(dtype_, data_.data(), at, value); }
  template <typename F>
  void each(F visit) const {
    for (int64_t i = 0; i < sizes_[0] * sizes_[1] * sizes_[2] * sizes_[3] * sizes_[4]; ++i) {
      int64_t rest = i;
      int64_t at = 0;
      for (size_t d = 5; d-- > 0;) {
        at += rest % sizes_[d] * strides_[d];
        rest /= sizes_[d];
      }
      visit(at);
    }
  }
  double at(int64_t index) const { return read_element(dtype_, data_.data(), index); }
  ImagesRef ref() const { return {data_.data(), strides_}; }
  MutableImagesRef out() { return {data_.data(), strides_}; }
  bool same_bits(const Images& other) const { return data_ == other.data_; }

 private:
  DType dtype_;
  std::array<int64_t, 5> sizes_;
  std::array<int64_t, 5> strides_;
  std::vector<char> data_;
};

Convolution problem(DType dtype, int64_t batch, int64_t groups, int64_t in, int64_t out,
                    Extent input, Extent kernel, Extent stride, Extent padding, Extent dilation) {
  Convolution made{dtype, batch, groups, in, out, input, kernel, {}, stride, padding, dilation};
  for (size_t d = 0; d < 3; ++d) {
    made.output[d] =
        (input[d] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1) / stride[d] + 1;
  }
  return made;
}

std::vector<Convolution> problems(DType dtype) {
  const Extent one{1, 1, 1};
  const Extent none{0, 0, 0};
  return {
      problem(dtype, 2, 1, 5, 20, {1, 9, 21}, {1, 3, 3}, one, {0, 1, 1}, one),
      problem(dtype, 3, 1, 3, 7, {1, 14, 13}, {1, 5, 4}, {1, 2, 3}, {0, 2, 1}, one),
      problem(dtype, 1, 2, 40, 9, {1, 7, 7}, {1, 3, 3}, one, {0, 1, 1}, one),
      problem(dtype, 5, 1, 6, 33, {1, 3, 4}, {1, 1, 1}, one, none, one),
      problem(dtype, 2, 1, 4, 5, {1, 8, 9}, {1, 1, 1}, {1, 2, 2}, none, one),
      problem(dtype, 2, 6, 1, 1, {1, 11, 10}, {1, 3, 3}, one, {0, 1, 1}, one),
      problem(dtype, 2, 3, 1, 2, {1, 11, 10}, {1, 3, 2}, {1, 2, 2}, {0, 1, 0}, {1, 1, 2}),
      problem(dtype, 2, 2, 2, 3, {5, 6, 7}, {2, 3, 3}, {2, 1, 2}, {1, 1, 0}, {1, 2, 1}),
      problem(dtype, 1, 1, 2, 3, {1, 1, 40}, {1, 1, 3}, {1, 1, 5}, {0, 0, 2}, {1, 1, 4}),
      problem(dtype, 1, 1, 2, 2, {1, 4, 4}, {1, 3, 3}, {1, 3, 3}, {0, 5, 5}, {1, 4, 4}),
      problem(dtype, 1, 1, 1, 1, {1, 2, 2}, {1, 2, 2}, one, {0, 90, 90}, {1, 40, 40}),
      // Channels side by side: whole and broken groups of lanes, steps, images beyond the groups
      // that are summed by themselves.
      problem(dtype, 3, 21, 1, 1, {1, 9, 8}, {1, 3, 3}, one, {0, 1, 1}, one),
      problem(dtype, 11, 19, 1, 1, {1, 9, 8}, {1, 5, 3}, {1, 2, 2}, {0, 2, 1}, one),
      problem(dtype, 2, 16, 1, 1, {3, 6, 7}, {2, 3, 3}, {1, 2, 1}, {1, 1, 1}, {1, 1, 2}),
      problem(dtype, 1, 8, 1, 1, {1, 40, 41}, {1, 3, 3}, one, {0, 1, 1}, one),
      // Pixels as rows: broken panels, rows longer than a task's, several blocks of depth, steps.
      problem(dtype, 2, 2, 5, 17, {1, 10, 9}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}, one),
      problem(dtype, 1, 1, 50, 36, {1, 1, 470}, {1, 1, 9}, one, {0, 0, 4}, one),
      problem(dtype, 2, 1, 3, 14, {3, 9, 16}, {2, 3, 3}, {1, 2, 2}, {1, 1, 1}, {1, 2, 2}),
      problem(dtype, 3, 1, 66, 12, {1, 7, 7}, {1, 1, 1}, one, none, one),
  };
}

double tolerance(DType dtype, int64_t terms) {
  const double unit = dtype == DType::Float64   ? 1e-15
                      : dtype == DType::Float32 ? 1e-7
                      : dtype == DType::Float16 ? 1e-3
                                                : 8e-3;
  return unit * 4 * std::sqrt(static_cast<double>(terms) + 1);
}

void expect_near(const Images& made, const Images& wanted, double tolerance) {
  double worst = 0;
  double most = 1;
  made.each([&](int64_t at) {
    worst = std::max(worst, std::abs(made.at(at) - wanted.at(at)));
    most = std::max(most, std::abs(wanted.at(at)));
  });
  EXPECT_LE(worst, tolerance * most);
}

struct Case {
  Convolution p;
  Images input;
  Images weight;
  Images output;
  std::vector<char> bias;

  Case(const Convolution& given, Order order)
      : p(given),
        input(p.dtype, p.batch, p.groups * p.in_channels, p.input, order),
        weight(p.dtype, p.groups * p.out_channels, p.in_channels, p.kernel, order),
        output(p.dtype, p.batch, p.groups * p.out_channels, p.output, order) {
    std::mt19937 generator(7);
    input.fill(generator);
    weight.fill(generator);
    output.fill(generator);
    const int64_t channels = p.groups * std::max(p.in_channels, p.out_channels);
    bias.resize(static_cast<size_t>(channels * element_size(p.dtype)));
    for (int64_t i = 0; i < channels; ++i) {
      write_element(p.dtype, bias.data(), i, 0.25 * static_cast<double>(i));
    }
  }
};

class ConvolutionTest : public ::testing::TestWithParam<std::tuple<DType, Order>> {
 protected:
  template <typename F>
  void each_case(F run) {
    const auto [dtype, order] = GetParam();
    int number = 0;
    for (const Convolution& p : problems(dtype)) {
      SCOPED_TRACE("problem " + std::to_string(number++));
      Case made(p, order);
      run(made);
    }
  }
};

TEST_P(ConvolutionTest, AgreesWithPlainLoops) {
  each_case([](Case& c) {
    Images made = c.output;
    Images wanted = c.output;
    convolve(c.p, c.input.ref(), c.weight.ref(), c.bias.data(), made.out());
    direct::convolve(c.p, c.input.ref(), c.weight.ref(), c.bias.data(), wanted.out());
    expect_near(made, wanted, tolerance(c.p.dtype, c.p.in_channels * count(c.p.kernel)));
  });
}

TEST_P(ConvolutionTest, TransposedAgreesWithPlainLoops) {
  each_case([](Case& c) {
    Images made = c.input;
    Images wanted = c.input;
    convolve_transposed(c.p, c.output.ref(), c.weight.ref(), c.bias.data(), made.out());
    direct::convolve_transposed(c.p, c.output.ref(), c.weight.ref(), c.bias.data(), wanted.out());
    expect_near(made, wanted, tolerance(c.p.dtype, c.p.out_channels * count(c.p.kernel)));
  });
}

TEST_P(ConvolutionTest, WeightGradientAgreesWithPlainLoops) {
  each_case([](Case& c) {
    Images made = c.weight;
    Images wanted = c.weight;
    convolve_for_weight(c.p, c.input.ref(), c.output.ref(), made.out());
    direct::convolve_for_weight(c.p, c.input.ref(), c.output.ref(), wanted.out());
    expect_near(made, wanted, tolerance(c.p.dtype, c.p.batch * count(c.p.output)));
  });
}

TEST_P(ConvolutionTest, ThreadsDoNotChangeBits) {
  const int before = num_threads();
  each_case([](Case& c) {
    set_num_threads(1);
    Images output = c.output;
    Images input = c.input;
    Images weight = c.weight;
    convolve(c.p, c.input.ref(), c.weight.ref(), nullptr, output.out());
    convolve_transposed(c.p, c.output.ref(), c.weight.ref(), nullptr, input.out());
    convolve_for_weight(c.p, c.input.ref(), c.output.ref(), weight.out());
    for (const int threads : {2, 3, 8}) {
      set_num_threads(threads);
      Images other = c.output;
      convolve(c.p, c.input.ref(), c.weight.ref(), nullptr, other.out());
      EXPECT_TRUE(other.same_bits(output));
      other = c.input;
      convolve_transposed(c.p, c.output.ref(), c.weight.ref(), nullptr, other.out());
      EXPECT_TRUE(other.same_bits(input));
      other = c.weight;
      convolve_for_weight(c.p, c.input.ref(), c.output.ref(), other.out());
      EXPECT_TRUE(other.same_bits(weight));
    }
  });
  set_num_threads(before);
}

INSTANTIATE_TEST_SUITE_P(All, ConvolutionTest,
                         ::testing::Combine(::testing::Values(DType::Float32, DType::Float64,
                                                              DType::BFloat16, DType::Float16),
                                            ::testing::Values(Order::first, Order::last,
                                                              Order::spread)));

// The zeros that the engine multiplies between rows must not meet infinities of the next row.
TEST(ConvolutionWeightTest, InfinitiesStayWithTheirTaps) {
  Case c(
      problem(DType::Float32, 2, 1, 1, 20, {1, 4, 3}, {1, 3, 3}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}),
      Order::first);
  c.input.set(3, std::numeric_limits<double>::infinity());
  Images made = c.weight;
  Images wanted = c.weight;
  convolve_for_weight(c.p, c.input.ref(), c.output.ref(), made.out());
  direct::convolve_for_weight(c.p, c.input.ref(), c.output.ref(), wanted.out());
  made.each([&](int64_t at) {
    EXPECT_EQ(std::isfinite(made.at(at)), std::isfinite(wanted.at(at))) << at;
  });
}

TEST(ConvolutionIntegerTest, WrapsAround) {
  Case c(problem(DType::UInt8, 1, 1, 2, 1, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}),
         Order::first);
  c.input.each([&](int64_t at) { c.input.set(at, 200); });
  c.weight.each([&](int64_t at) { c.weight.set(at, 3); });
  convolve(c.p, c.input.ref(), c.weight.ref(), nullptr, c.output.out());
  c.output.each([&](int64_t at) { EXPECT_EQ(c.output.at(at), 8 * 600 % 256); });
}

}  // namespace
}  // namespace rushlight
