// Subscripts in C++: the same results and errors as Python's.
#include <gtest/gtest.h>
#include <rushlight/rushlight.h>

namespace rushlight {
namespace {

using indexing::Ellipsis;
using indexing::None;
using indexing::Slice;

Tensor counting() {
  return arange(24, DType::Int64).view({2, 3, 4});
}

int64_t total(const Tensor& tensor) {
  return tensor.sum().item<int64_t>();
}

TEST(Subscript, IntegersSlicesAndNoneGiveViews) {
  const Tensor x = counting();
  const Tensor part = x.index({1, Slice(1, None), None, -1});
  EXPECT_EQ(part.sizes(), IntArrayRef({2, 1}));
  EXPECT_EQ(total(part), 19 + 23);
  EXPECT_EQ(part.storage(), x.storage());
  EXPECT_EQ(x.index({Slice(), Slice(None, None, 2)}).sizes(), IntArrayRef({2, 2, 4}));
}

TEST(Subscript, EllipsisStandsForTheRest) {
  const Tensor x = counting();
  EXPECT_EQ(total(x.index({"...", 0})), 0 + 4 + 8 + 12 + 16 + 20);
  EXPECT_EQ(total(x.index({Ellipsis, 0})), total(x.index({Slice(), Slice(), 0})));
  EXPECT_EQ(x.index({0, Ellipsis, Slice(1, 3)}).sizes(), IntArrayRef({3, 2}));
}

TEST(Subscript, TensorsAndMasksPickElements) {
  const Tensor x = counting();
  const Tensor at = arange(2, DType::Int64);
  EXPECT_EQ(total(x.index({at, at, at})), 0 + 17);
  EXPECT_EQ(x.index({x.gt(20)}).sizes(), IntArrayRef({3}));
  EXPECT_EQ(x.index({Slice(), at}).sizes(), IntArrayRef({2, 2, 4}));
  EXPECT_EQ(x.index({true}).sizes(), IntArrayRef({1, 2, 3, 4}));
  EXPECT_EQ(x.index({false}).sizes(), IntArrayRef({0, 2, 3, 4}));
}

TEST(Subscript, WritesNumbersAndTensors) {
  Tensor x = zeros({2, 3});
  x.index_put_({0, Slice(1, None)}, 5);
  x.index_put_({1}, ones({3}));
  x.index_put_({x.eq(5)}, Scalar(7));
  EXPECT_EQ(x.sum().item<float>(), 17);
}

TEST(Subscript, Mistakes) {
  const Tensor x = counting();
  EXPECT_THROW(x.index({2}), Error);
  EXPECT_THROW(x.index({0, 0, 0, 0}), Error);
  EXPECT_THROW(x.index({Slice(None, None, 0)}), Error);
  EXPECT_THROW(x.index({".."}), Error);
  try {
    x.index({0, 3});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Index);
    EXPECT_NE(std::string(error.what()).find("index 3 is out of bounds for dimension 1"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace rushlight
