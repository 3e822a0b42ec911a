// Reading and writing at indices: results, order of repeated positions, errors.
#include <gtest/gtest.h>
#include <rushlight/generated/functions.h>

#include <vector>

#include "runtime/parallel.h"

namespace rushlight {
namespace {

Tensor longs(std::vector<int64_t> values) {
  Tensor made = make_tensor({static_cast<int64_t>(values.size())}, DType::Int64);
  std::copy(values.begin(), values.end(), made.data_ptr<int64_t>());
  return made;
}

Tensor floats(std::vector<float> values) {
  Tensor made = make_tensor({static_cast<int64_t>(values.size())}, DType::Float32);
  std::copy(values.begin(), values.end(), made.data_ptr<float>());
  return made;
}

std::vector<float> list(const Tensor& tensor) {
  const Tensor dense = contiguous(tensor);
  const auto* values = dense.data_ptr<float>();
  return {values, values + dense.numel()};
}

Tensor counting(IntArrayRef sizes) {
  int64_t numel = 1;
  for (int64_t size : sizes) {
    numel *= size;
  }
  return view(arange(numel, DType::Float32), sizes);
}

ErrorKind kind_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "nothing thrown";
  return ErrorKind::Internal;
}

TEST(Index, TakesTensorsWholeDimensionsAndMasks) {
  const Tensor x = counting({3, 4});
  EXPECT_EQ(list(index(x, {longs({2, -3})})), (std::vector<float>{8, 9, 10, 11, 0, 1, 2, 3}));
  EXPECT_EQ(list(index(x, {Tensor(), longs({1})})), (std::vector<float>{1, 5, 9}));
  EXPECT_EQ(list(index(x, {longs({0, 1}), longs({3, 0})})), (std::vector<float>{3, 4}));
  EXPECT_EQ(list(index(x, {gt(x, 8)})), (std::vector<float>{9, 10, 11}));
  EXPECT_EQ(list(index(transpose(x, 0, 1), {longs({1})})), (std::vector<float>{1, 5, 9}));
}

TEST(Index, PutsSeparatedIndicesInFront) {
  const Tensor x = counting({2, 3, 4});
  const Tensor y = index(x, {longs({1, 0}), Tensor(), longs({2, 3})});
  EXPECT_EQ(IntList(y.sizes()), IntList({2, 3}));
  EXPECT_EQ(list(y), (std::vector<float>{14, 18, 22, 3, 7, 11}));
  EXPECT_EQ(IntList(index(x, {Tensor(), longs({0}), longs({1})}).sizes()), IntList({2, 1}));
}

TEST(Index, NamesWhatIsWrong) {
  const Tensor x = counting({3, 4});
  EXPECT_EQ(kind_of([&] { index(x, {longs({3})}); }), ErrorKind::Index);
  EXPECT_EQ(kind_of([&] { index(x, {floats({1})}); }), ErrorKind::Index);
  EXPECT_EQ(kind_of([&] { index(x, {longs({0, 1}), longs({0, 1, 2})}); }), ErrorKind::Index);
  EXPECT_EQ(kind_of([&] { index(x, {longs({0}), longs({0}), longs({0})}); }), ErrorKind::Index);
  EXPECT_EQ(kind_of([&] { index(x, {ones({4}, DType::Bool)}); }), ErrorKind::Index);
}

TEST(IndexPut, WritesAndAccumulatesInOrder) {
  const Tensor x = zeros({4});
  index_put_(x, {longs({1, 1, 3})}, floats({5, 6, 7}));
  EXPECT_EQ(list(x), (std::vector<float>{0, 6, 0, 7}));
  index_put_(x, {longs({1, 1})}, floats({1, 2}), true);
  EXPECT_EQ(list(x), (std::vector<float>{0, 9, 0, 7}));
  const Tensor y = zeros({2, 3});
  index_put_(y, {longs({1})}, floats({1, 2, 3}));
  EXPECT_EQ(list(y), (std::vector<float>{0, 0, 0, 1, 2, 3}));
  EXPECT_EQ(kind_of([&] { index_put_(x, {longs({0})}, zeros({1}, DType::Float64)); }),
            ErrorKind::Runtime);
  EXPECT_EQ(kind_of([&] { index_put_(x, {longs({0, 1})}, floats({1, 2, 3})); }),
            ErrorKind::Runtime);
}

TEST(IndexAdd, GivesTheSameBitsForAnyNumberOfThreads) {
  const int64_t rows = 50;
  const int64_t width = 200;
  const Tensor source = mul(counting({2000, width}), Scalar(0.1));
  const Tensor at = remainder(mul(arange(2000), Scalar(7919)), Scalar(rows));
  const int before = num_threads();
  std::vector<std::vector<float>> results;
  for (int threads : {1, 2, 3, 8}) {
    set_num_threads(threads);
    results.push_back(list(index_add(zeros({rows, width}), 0, at, source)));
  }
  set_num_threads(before);
  for (const auto& result : results) {
    EXPECT_EQ(result, results[0]);
  }
}

TEST(IndexSelect, WorksAlongAnyDimension) {
  const Tensor x = counting({2, 3, 2});
  EXPECT_EQ(list(index_select(x, 1, longs({2, 0}))),
            (std::vector<float>{4, 5, 0, 1, 10, 11, 6, 7}));
  EXPECT_EQ(kind_of([&] { index_select(x, 1, longs({3})); }), ErrorKind::Index);
  EXPECT_EQ(kind_of([&] { index_select(x, 1, longs({-1})); }), ErrorKind::Index);
  EXPECT_EQ(kind_of([&] { index_select(x, 1, floats({0})); }), ErrorKind::Runtime);
}

TEST(Gather, ReadsAlongTheDimension) {
  const Tensor x = counting({2, 3});
  EXPECT_EQ(list(gather(x, 1, view(longs({2, 0, 1, 1}), {2, 2}))),
            (std::vector<float>{2, 0, 4, 4}));
  EXPECT_EQ(list(gather(x, 0, view(longs({1, 0, 1}), {1, 3}))), (std::vector<float>{3, 1, 5}));
  EXPECT_EQ(kind_of([&] { gather(x, 1, view(longs({3}), {1, 1})); }), ErrorKind::Runtime);
  EXPECT_EQ(kind_of([&] { gather(x, 1, longs({0})); }), ErrorKind::Runtime);
}

TEST(Scatter, WritesAlongTheDimension) {
  const Tensor at = view(longs({0, 2, 2, 1}), {2, 2});
  const Tensor values = view(floats({1, 2, 3, 4}), {2, 2});
  EXPECT_EQ(list(scatter(zeros({2, 3}), 1, at, values)), (std::vector<float>{1, 0, 2, 0, 4, 3}));
  EXPECT_EQ(list(scatter_add(ones({3, 2}), 0, at, values)), (std::vector<float>{2, 1, 1, 5, 4, 3}));
  EXPECT_EQ(list(scatter(zeros({2, 3}), 1, at, 9)), (std::vector<float>{9, 0, 9, 0, 9, 9}));
  EXPECT_EQ(kind_of([&] { scatter(zeros({2, 2}), 1, at, values); }), ErrorKind::Runtime);
}

TEST(Masked, FillSelectScatter) {
  const Tensor x = counting({2, 3});
  const Tensor mask = gt(x, 2);
  EXPECT_EQ(list(masked_fill(x, mask, -1)), (std::vector<float>{0, 1, 2, -1, -1, -1}));
  EXPECT_EQ(list(masked_select(x, mask)), (std::vector<float>{3, 4, 5}));
  EXPECT_EQ(list(masked_scatter(x, mask, floats({7, 8, 9, 10}))),
            (std::vector<float>{0, 1, 2, 7, 8, 9}));
  EXPECT_EQ(kind_of([&] { masked_scatter(x, mask, floats({7})); }), ErrorKind::Runtime);
  EXPECT_EQ(kind_of([&] { masked_fill(x, x, 1); }), ErrorKind::Runtime);
}

TEST(Embedding, LooksUpRowsAndAddsGradients) {
  const Tensor table = counting({3, 2});
  EXPECT_EQ(list(embedding(table, longs({2, 0}))), (std::vector<float>{4, 5, 0, 1}));
  EXPECT_EQ(kind_of([&] { embedding(table, longs({3})); }), ErrorKind::Index);
  const Tensor grad = embedding_dense_backward(ones({3, 2}), longs({0, 2, 0}), 3, 2, false);
  EXPECT_EQ(list(grad), (std::vector<float>{2, 2, 0, 0, 0, 0}));
}

TEST(Nonzero, ListsPositionsInOrder) {
  const Tensor positions = nonzero(view(floats({0, 1, 2, 0}), {2, 2}));
  EXPECT_EQ(IntList(positions.sizes()), IntList({2, 2}));
  EXPECT_EQ(positions.data_ptr<int64_t>()[1], 1);
  EXPECT_EQ(positions.data_ptr<int64_t>()[2], 1);
  EXPECT_EQ(where(ones({2, 3}, DType::Bool)).size(), 2U);
}

TEST(Triangles, KeepOneSide) {
  EXPECT_EQ(list(tril(ones({2, 3}))), (std::vector<float>{1, 0, 0, 1, 1, 0}));
  EXPECT_EQ(list(triu(ones({2, 3}), 1)), (std::vector<float>{0, 1, 1, 0, 0, 1}));
  EXPECT_EQ(list(tril(ones({1, 2}), INT64_MAX)), (std::vector<float>{1, 1}));
  EXPECT_EQ(list(triu(ones({1, 2}), INT64_MIN)), (std::vector<float>{1, 1}));
}

TEST(Join, CatPromotesAndSkipsEmptyLines) {
  const Tensor joined = cat({ones({2}, DType::Int32), floats({2.5})}, 0);
  EXPECT_EQ(list(joined), (std::vector<float>{1, 1, 2.5}));
  EXPECT_EQ(IntList(cat({zeros({0}), ones({2, 3})}, 1).sizes()), IntList({2, 3}));
  EXPECT_EQ(kind_of([&] { cat({ones({2, 3}), ones({3, 4})}, 0); }), ErrorKind::Runtime);
  EXPECT_EQ(kind_of([&] { cat(TensorList(), 0); }), ErrorKind::Value);
  EXPECT_EQ(list(stack({floats({1, 2}), floats({3, 4})}, 1)), (std::vector<float>{1, 3, 2, 4}));
}

TEST(Shape, RollFlipRepeat) {
  const Tensor x = counting({2, 3});
  EXPECT_EQ(list(roll(x, {1}, {1})), (std::vector<float>{2, 0, 1, 5, 3, 4}));
  EXPECT_EQ(list(roll(x, {1})), (std::vector<float>{5, 0, 1, 2, 3, 4}));
  EXPECT_EQ(list(flip(x, {0, 1})), (std::vector<float>{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(list(repeat(floats({1, 2}), {2, 2})), (std::vector<float>{1, 2, 1, 2, 1, 2, 1, 2}));
  EXPECT_EQ(list(rot90(x)), (std::vector<float>{2, 5, 1, 4, 0, 3}));
  EXPECT_EQ(list(repeat_interleave(floats({1, 2}), longs({2, 1}))), (std::vector<float>{1, 1, 2}));
  EXPECT_EQ(list(pad(floats({1, 2}), {1, 2})), (std::vector<float>{0, 1, 2, 0, 0}));
  EXPECT_EQ(list(pad(view(floats({1, 2, 3}), {1, 3}), {2, 1}, "reflect")),
            (std::vector<float>{3, 2, 1, 2, 3, 2}));
}

}  // namespace
}  // namespace rushlight
