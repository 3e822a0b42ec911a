// Copies between layouts and dtypes, fills, and factories.
#include "kernels/copy.h"

#include <gtest/gtest.h>
#include <rushlight/generated/functions.h>

#include <complex>
#include <vector>

#include "runtime/parallel.h"

namespace rushlight {
namespace {

// Element at a position of a possibly strided tensor of 64-bit integers.
int64_t at(const Tensor& tensor, std::vector<int64_t> position) {
  int64_t offset = tensor.storage_offset();
  for (size_t d = 0; d < position.size(); ++d) {
    offset += position[d] * tensor.strides()[d];
  }
  return static_cast<int64_t*>(tensor.storage()->data)[offset];
}

template <typename T>
void check_transposed(DType dtype, int64_t rows, int64_t columns) {
  const Tensor x = make_tensor({rows, columns}, dtype);
  T* from = x.data_ptr<T>();
  for (int64_t i = 0; i < x.numel(); ++i) {
    from[i] = static_cast<T>(i * 7 + 3);
  }
  const Tensor y = contiguous(transpose(x, 0, 1));
  ASSERT_TRUE(y.is_contiguous());
  const T* to = y.data_ptr<T>();
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) {
      ASSERT_EQ(to[j * rows + i], from[i * columns + j]) << i << ", " << j;
    }
  }
}

TEST(Copy, TransposesEveryElementSize) {
  for (const auto& [rows, columns] :
       std::vector<std::pair<int64_t, int64_t>>{{64, 64}, {128, 257}, {300, 100}, {17, 1000}}) {
    check_transposed<uint8_t>(DType::UInt8, rows, columns);
    check_transposed<int16_t>(DType::Int16, rows, columns);
    check_transposed<float>(DType::Float32, rows, columns);
    check_transposed<double>(DType::Float64, rows, columns);
  }
}

template <typename T>
void check_reversed(DType dtype, int64_t columns) {
  const Tensor x = make_tensor({3, columns}, dtype);
  T* from = x.data_ptr<T>();
  for (int64_t i = 0; i < x.numel(); ++i) {
    from[i] = static_cast<T>(static_cast<double>(i * 7 % 251));
  }
  const Tensor y = flip(x, {1});
  const T* to = y.data_ptr<T>();
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      ASSERT_EQ(to[i * columns + j], from[i * columns + columns - 1 - j]) << i << ", " << j;
    }
  }
}

TEST(Copy, ReversesEveryElementSize) {
  for (int64_t columns : {1, 2, 3, 4, 7, 8, 15, 16, 17, 33, 100}) {
    check_reversed<uint8_t>(DType::UInt8, columns);
    check_reversed<int16_t>(DType::Int16, columns);
    check_reversed<float>(DType::Float32, columns);
    check_reversed<double>(DType::Float64, columns);
    check_reversed<std::complex<double>>(DType::Complex128, columns);
  }
}

TEST(Copy, PermutedRanks) {
  const Tensor x = view(arange(5 * 6 * 7 * 8), {5, 6, 7, 8});
  for (const IntList& order : {IntList({3, 1, 2, 0}), IntList({0, 3, 2, 1}), IntList({1, 3, 0, 2}),
                               IntList({2, 0, 1, 3})}) {
    const Tensor shown = permute(x, order);
    const Tensor copied = clone(shown, MemoryFormat::Contiguous);
    for (int64_t a = 0; a < shown.size(0); ++a) {
      for (int64_t b = 0; b < shown.size(1); ++b) {
        for (int64_t c = 0; c < shown.size(2); ++c) {
          for (int64_t d = 0; d < shown.size(3); ++d) {
            ASSERT_EQ(at(shown, {a, b, c, d}), at(copied, {a, b, c, d}));
          }
        }
      }
    }
  }
}

TEST(Copy, BroadcastsAndWritesStridedTargets) {
  const Tensor x = zeros({4, 6}, DType::Int64);
  copy_(slice(x, 1, 0, 6, 2), view(arange(3), {1, 3}));
  EXPECT_EQ(at(x, {3, 4}), 2);
  EXPECT_EQ(at(x, {3, 3}), 0);
  EXPECT_THROW(copy_(x, zeros({4, 5})), Error);
  EXPECT_THROW(copy_(x, zeros({2, 4, 6})), Error);
  EXPECT_THROW(copy_(expand(zeros({1}), {4}), zeros({4})), Error);
  EXPECT_THROW(copy_(slice(x, 0, 1), slice(x, 0, 0, 3)), Error);
}

TEST(Copy, RefusesMetaData) {
  EXPECT_THROW(copy_(zeros({2}), empty({2}, TensorOptions(Device(DeviceType::Meta)))), Error);
}

TEST(Clone, KeepsDenseStrides) {
  const Tensor x = transpose(zeros({2, 3}), 0, 1);
  EXPECT_EQ(IntList(clone(x).strides()), IntList({1, 3}));
  EXPECT_EQ(IntList(clone(expand(zeros({3, 1}), {3, 2})).strides()), IntList({2, 1}));
  EXPECT_TRUE(contiguous(x).is_contiguous());
  EXPECT_TRUE(contiguous(zeros({2})).defined());
}

TEST(Fill, ChecksTheRangeOfIntegers) {
  const Tensor bytes = zeros({3}, DType::UInt8);
  EXPECT_THROW(fill_(bytes, 256), Error);
  EXPECT_THROW(fill_(bytes, -0.5), Error);
  fill_(bytes, -1);
  EXPECT_EQ(bytes.data_ptr<uint8_t>()[2], 255);
  const Tensor numbers = zeros({2, 3});
  fill_(transpose(numbers, 0, 1), 1.5);
  EXPECT_EQ(numbers.data_ptr<float>()[4], 1.5F);
  zero_(select(numbers, 1, 1));
  EXPECT_EQ(numbers.data_ptr<float>()[4], 0);
  EXPECT_EQ(numbers.data_ptr<float>()[3], 1.5F);
}

TEST(Factory, DtypesFollowTheNumbers) {
  EXPECT_EQ(full({2}, true).dtype(), DType::Bool);
  EXPECT_EQ(full({2}, 3).dtype(), DType::Int64);
  EXPECT_EQ(full({2}, 3.0).dtype(), DType::Float32);
  EXPECT_EQ(arange(3).dtype(), DType::Int64);
  EXPECT_EQ(arange(3.0).dtype(), DType::Float32);
  EXPECT_EQ(scalar_tensor(3).dtype(), DType::Float32);
  EXPECT_THROW(zeros({-1}), Error);
  EXPECT_THROW(zeros({INT64_MAX, 8}), Error);
}

TEST(Factory, Ranges) {
  EXPECT_EQ(arange(1, 10, 3).numel(), 3);
  EXPECT_EQ(arange(5, 0, -2).data_ptr<int64_t>()[2], 1);
  EXPECT_EQ(arange(0, 1, 0.1).numel(), 10);
  EXPECT_THROW(arange(0, 5, 0), Error);
  EXPECT_THROW(arange(5, 0), Error);
  const Tensor even = linspace(-1, 1, 5);
  EXPECT_EQ(even.data_ptr<float>()[0], -1);
  EXPECT_EQ(even.data_ptr<float>()[2], 0);
  EXPECT_EQ(even.data_ptr<float>()[4], 1);
  EXPECT_FLOAT_EQ(logspace(0, 2, 3).data_ptr<float>()[1], 10);
  EXPECT_EQ(eye(2, 3).data_ptr<float>()[4], 1);
  EXPECT_EQ(IntList(tril_indices(3, 3).sizes()), IntList({2, 6}));
}

TEST(Factory, MetaTensorsHaveNoMemory) {
  const TensorOptions meta{Device(DeviceType::Meta)};
  EXPECT_EQ(zeros({1 << 20, 1 << 20}, meta).numel(), int64_t{1} << 40);
  EXPECT_TRUE(view(ones({4}, meta), {2, 2}).is_meta());
  EXPECT_TRUE(clone(arange(4, meta)).is_meta());
}

TEST(Resize, GrowsTheMemory) {
  const Tensor x = arange(4);
  resize_(x, {2, 3});
  EXPECT_EQ(IntList(x.sizes()), IntList({2, 3}));
  EXPECT_EQ(x.data_ptr<int64_t>()[3], 3);
}

}  // namespace
}  // namespace rushlight
