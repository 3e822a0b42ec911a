// Views: shapes, strides, shared memory, and the errors of wrong requests.
#include <gtest/gtest.h>
#include <rushlight/generated/functions.h>

namespace rushlight {
namespace {

Tensor counting(IntArrayRef sizes) {
  int64_t numel = 1;
  for (int64_t size : sizes) {
    numel *= size;
  }
  return view(arange(numel, DType::Float32), sizes);
}

IntList sizes_of(const Tensor& tensor) {
  return IntList(tensor.sizes());
}
IntList strides_of(const Tensor& tensor) {
  return IntList(tensor.strides());
}

template <typename F>
std::string error_of(ErrorKind kind, F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing thrown";
  return "";
}

TEST(View, InfersOneSize) {
  const Tensor x = counting({2, 3, 4});
  EXPECT_EQ(sizes_of(view(x, {-1, 4})), IntList({6, 4}));
  EXPECT_EQ(view(x, {24}).storage(), x.storage());
  EXPECT_NE(error_of(ErrorKind::Runtime, [&] { view(x, {5}); })
                .find("shape '[5]' is invalid for input of size 24"),
            std::string::npos);
  EXPECT_NE(error_of(ErrorKind::Runtime, [&] { view(x, {-1, -1}); })
                .find("only one dimension can be inferred"),
            std::string::npos);
}

TEST(View, NeedsStridesThatFit) {
  const Tensor x = transpose(counting({2, 3}), 0, 1);
  EXPECT_NE(error_of(ErrorKind::Runtime, [&] { view(x, {6}); })
                .find("view size is not compatible with input tensor's size and stride"),
            std::string::npos);
  const Tensor copied = reshape(x, {6});
  EXPECT_NE(copied.storage(), x.storage());
  const float expected[] = {0, 3, 1, 4, 2, 5};
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(copied.data_ptr<float>()[i], expected[i]);
  }
  EXPECT_EQ(strides_of(view(counting({4, 6}).transpose(0, 1), {2, 3, 4})), IntList({3, 1, 6}));
}

TEST(View, OfEmptyAndScalar) {
  EXPECT_EQ(sizes_of(view(zeros({0, 3}), {3, 0})), IntList({3, 0}));
  EXPECT_EQ(sizes_of(view(zeros({}), {1, 1})), IntList({1, 1}));
  EXPECT_NE(error_of(ErrorKind::Runtime, [&] { view(zeros({0}), {0, -1}); }).find("ambiguous"),
            std::string::npos);
}

TEST(View, AsAnotherDtype) {
  const Tensor x = counting({2, 4});
  EXPECT_EQ(sizes_of(view(x, DType::Float64)), IntList({2, 2}));
  EXPECT_EQ(sizes_of(view(x, DType::UInt8)), IntList({2, 16}));
  EXPECT_EQ(view(view(x, DType::Int32), DType::Float32).data_ptr<float>()[5], 5);
  error_of(ErrorKind::Runtime, [&] { view(counting({2, 3}), DType::Float64); });
}

TEST(Permute, OrdersDimensions) {
  const Tensor x = counting({2, 3, 4});
  const Tensor y = permute(x, {2, 0, -2});
  EXPECT_EQ(sizes_of(y), IntList({4, 2, 3}));
  EXPECT_EQ(strides_of(y), IntList({1, 12, 4}));
  error_of(ErrorKind::Runtime, [&] { permute(x, {0, 0, 1}); });
  error_of(ErrorKind::Runtime, [&] { permute(x, {0, 1}); });
  error_of(ErrorKind::Index, [&] { permute(x, {0, 1, 3}); });
}

TEST(Transpose, InPlaceChangesTheTensorItself) {
  const Tensor x = counting({2, 3});
  transpose_(x, 0, 1);
  EXPECT_EQ(sizes_of(x), IntList({3, 2}));
  EXPECT_EQ(strides_of(x), IntList({1, 3}));
  unsqueeze_(x, 0);
  EXPECT_EQ(sizes_of(x), IntList({1, 3, 2}));
  squeeze_(x);
  t_(x);
  EXPECT_EQ(sizes_of(x), IntList({2, 3}));
  EXPECT_TRUE(x.is_contiguous());
}

TEST(Expand, RepeatsSingleDimensions) {
  const Tensor x = counting({3, 1});
  EXPECT_EQ(strides_of(expand(x, {2, -1, 4})), IntList({0, 1, 0}));
  EXPECT_NE(error_of(ErrorKind::Runtime, [&] { expand(x, {2, 4}); })
                .find("must match the existing size (3) at non-singleton dimension 0"),
            std::string::npos);
  error_of(ErrorKind::Runtime, [&] { expand(x, {3}); });
  error_of(ErrorKind::Runtime, [&] { expand(x, {-1, 3, 1}); });
}

TEST(Slice, ClampsItsBounds) {
  const Tensor x = counting({5, 2});
  EXPECT_EQ(sizes_of(slice(x, 0, 1, 100)), IntList({4, 2}));
  EXPECT_EQ(sizes_of(slice(x, 0, -3, -1)), IntList({2, 2}));
  EXPECT_EQ(sizes_of(slice(x, 0, 4, 1)), IntList({0, 2}));
  EXPECT_EQ(strides_of(slice(x, 0, {}, {}, 2)), IntList({4, 1}));
  EXPECT_EQ(sizes_of(slice(x, 0, {}, {}, 2)), IntList({3, 2}));
  error_of(ErrorKind::Index, [&] { slice(zeros({}), 0); });
  error_of(ErrorKind::Runtime, [&] { slice(x, 0, {}, {}, 0); });
}

TEST(Select, DropsTheDimension) {
  const Tensor x = counting({2, 3});
  EXPECT_EQ(select(select(x, 0, -1), 0, 1).item<float>(), 4);
  EXPECT_NE(error_of(ErrorKind::Index, [&] { select(x, 1, 3); })
                .find("index 3 out of range for tensor of size [2, 3] at dimension 1"),
            std::string::npos);
}

TEST(Narrow, ChecksItsRange) {
  const Tensor x = counting({4});
  EXPECT_EQ(narrow(x, 0, -2, 2).data_ptr<float>()[0], 2);
  error_of(ErrorKind::Runtime, [&] { narrow(x, 0, 3, 2); });
  error_of(ErrorKind::Runtime, [&] { narrow(x, 0, 0, -1); });
  error_of(ErrorKind::Index, [&] { narrow(x, 0, 5, 0); });
}

TEST(Split, CoversTheDimension) {
  const Tensor x = counting({5, 2});
  const TensorList parts = split(x, 2);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(sizes_of(parts[2]), IntList({1, 2}));
  EXPECT_EQ(parts[2].data_ptr<float>()[0], 8);
  EXPECT_EQ(chunk(x, 4).size(), 3U);
  EXPECT_EQ(tensor_split(x, 3)[0].size(0), 2);
  EXPECT_EQ(split_with_sizes(x, {1, 4})[1].size(0), 4);
  error_of(ErrorKind::Runtime, [&] { split_with_sizes(x, {1, 3}); });
  error_of(ErrorKind::Runtime, [&] { split(x, 0); });
  error_of(ErrorKind::Runtime, [&] { chunk(x, 0); });
  EXPECT_EQ(unbind(x, 1).size(), 2U);
}

TEST(AsStrided, StaysInsideTheStorage) {
  const Tensor x = counting({6});
  EXPECT_EQ(as_strided(x, {2, 2}, {1, 3}, 1).data_ptr<float>()[0], 1);
  error_of(ErrorKind::Runtime, [&] { as_strided(x, {7}, {1}); });
  error_of(ErrorKind::Runtime, [&] { as_strided(x, {2}, {-1}); });
  error_of(ErrorKind::Runtime, [&] { as_strided(x, {INT64_MAX, INT64_MAX}, {1, 1}); });
}

TEST(Diagonal, HasAnOffset) {
  const Tensor x = counting({3, 4});
  EXPECT_EQ(diagonal(x, 2).data_ptr<float>()[0], 2);
  EXPECT_EQ(sizes_of(diagonal(x, 2)), IntList({2}));
  EXPECT_EQ(sizes_of(diagonal(x, -5)), IntList({0}));
  error_of(ErrorKind::Runtime, [&] { diagonal(x, 0, 1, 1); });
}

TEST(Unfold, ShowsWindows) {
  const Tensor x = counting({5});
  const Tensor windows = unfold(x, 0, 3, 2);
  EXPECT_EQ(sizes_of(windows), IntList({2, 3}));
  EXPECT_EQ(select(select(windows, 0, 1), 0, 0).item<float>(), 2);
  error_of(ErrorKind::Runtime, [&] { unfold(x, 0, 6, 1); });
}

TEST(Movedim, KeepsTheOthersInOrder) {
  const Tensor x = counting({2, 3, 4});
  EXPECT_EQ(sizes_of(movedim(x, 0, -1)), IntList({3, 4, 2}));
  EXPECT_EQ(sizes_of(movedim(x, {0, 1}, {2, 0})), IntList({3, 4, 2}));
  error_of(ErrorKind::Runtime, [&] { movedim(x, {0, 0}, {1, 2}); });
}

TEST(Flatten, AndUnflatten) {
  const Tensor x = counting({2, 3, 4});
  EXPECT_EQ(sizes_of(flatten(x, 1)), IntList({2, 12}));
  EXPECT_EQ(sizes_of(unflatten(x, 2, {2, -1})), IntList({2, 3, 2, 2}));
  EXPECT_EQ(sizes_of(flatten(zeros({}))), IntList({1}));
  error_of(ErrorKind::Runtime, [&] { unflatten(x, 1, {2, 2}); });
  error_of(ErrorKind::Runtime, [&] { flatten(x, 2, 1); });
}

TEST(SliceScatter, LeavesTheArgumentAlone) {
  const Tensor x = counting({4});
  const Tensor y = slice_scatter(x, zeros({2}), 0, 1, 3);
  EXPECT_EQ(x.data_ptr<float>()[1], 1);
  EXPECT_EQ(y.data_ptr<float>()[1], 0);
  EXPECT_EQ(y.data_ptr<float>()[3], 3);
  error_of(ErrorKind::Runtime, [&] { slice_scatter(x, zeros({3}), 0, 1, 3); });
}

}  // namespace
}  // namespace rushlight
