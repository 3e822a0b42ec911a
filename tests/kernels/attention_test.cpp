#include "kernels/attention.h"

#include <gtest/gtest.h>
#include <rushlight/error.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "matrix_fixture.h"
#include "runtime/parallel.h"

namespace rushlight {
namespace {

using testing::read_element;
using testing::write_element;

// A tensor (B, H, L, E), in memory either in that order or as (B, L, H, E), or with gaps.
enum class Order : uint8_t { heads_first, rows_first, spread };

class Heads {
 public:
  Heads(DType dtype, int64_t batch, int64_t heads, int64_t rows, int64_t cols, Order order)
      : dtype_(dtype), batch_(batch), heads_(heads), rows_(rows), cols_(cols) {
    col_stride_ = order == Order::spread ? 2 : 1;
    const int64_t row = cols * col_stride_ + (order == Order::spread ? 3 : 0);
    row_stride_ = order == Order::rows_first ? heads * row : row;
    head_stride_ = order == Order::rows_first ? row : rows * row;
    batch_stride_ = heads * rows * row;
    data_.resize(static_cast<size_t>((batch * batch_stride_ + 16) * element_size(dtype)));
  }

  double at(int64_t b, int64_t h, int64_t i, int64_t e) const {
    return read_element(dtype_, data_.data(), index(b, h, i, e));
  }
  void set(int64_t b, int64_t h, int64_t i, int64_t e, double value) {
    write_element(dtype_, data_.data(), index(b, h, i, e), value);
  }
  template <typename F>
  void each(F visit) const {
    for (int64_t b = 0; b < batch_; ++b) {
      for (int64_t h = 0; h < heads_; ++h) {
        for (int64_t i = 0; i < rows_; ++i) {
          for (int64_t e = 0; e < cols_; ++e) {
            visit(b, h, i, e);
          }
        }
      }
    }
  }
  void fill(std::mt19937& generator) {
    std::uniform_real_distribution<double> real(-1, 1);
    each([&](int64_t b, int64_t h, int64_t i, int64_t e) { set(b, h, i, e, real(generator)); });
  }
  HeadsRef ref() const {
    return {data_.data(), batch_stride_, head_stride_, row_stride_, col_stride_};
  }
  MutableHeadsRef out() {
    return {data_.data(), batch_stride_, head_stride_, row_stride_, col_stride_};
  }
  bool same_bits(const Heads& other) const { return data_ == other.data_; }

 private:
  int64_t index(int64_t b, int64_t h, int64_t i, int64_t e) const {
    return b * batch_stride_ + h * head_stride_ + i * row_stride_ + e * col_stride_;
  }

  DType dtype_;
  int64_t batch_;
  int64_t heads_;
  int64_t rows_;
  int64_t cols_;
  int64_t batch_stride_;
  int64_t head_stride_;
  int64_t row_stride_;
  int64_t col_stride_;
  std::vector<unsigned char> data_;
};

enum class Mask : uint8_t { none, boolean, added, keys_only };

struct Case {
  DType dtype = DType::Float32;
  int64_t batch = 2;
  int64_t heads = 2;
  int64_t kv_heads = 2;
  int64_t queries = 10;
  int64_t keys = 12;
  int64_t head_size = 8;
  int64_t value_size = 8;
  Order order = Order::heads_first;
  Mask mask = Mask::none;
  bool causal = false;
  bool dropout = false;

  std::string text() const {
    std::string out(dtype_name(dtype));
    for (const int64_t number : {batch, heads, kv_heads, queries, keys, head_size, value_size,
                                 static_cast<int64_t>(order), static_cast<int64_t>(mask)}) {
      out += cat(" ", number);
    }
    return out + (causal ? " causal" : "") + (dropout ? " dropout" : "");
  }
};

// Inputs, outputs and gradients of a case.
struct Problem {
  Case test;
  Heads q, k, v, mask, keep, out, out_gradient, q_gradient, k_gradient, v_gradient;
  std::vector<double> sums64;
  std::vector<float> sums32;
  Attention attention;

  static DType mask_dtype(const Case& test) {
    return test.mask == Mask::boolean ? DType::UInt8 : test.dtype;
  }

  explicit Problem(const Case& c)
      : test(c),
        q(c.dtype, c.batch, c.heads, c.queries, c.head_size, c.order),
        k(c.dtype, c.batch, c.kv_heads, c.keys, c.head_size, c.order),
        v(c.dtype, c.batch, c.kv_heads, c.keys, c.value_size, c.order),
        mask(mask_dtype(c), c.batch, c.heads, c.queries, c.keys, Order::heads_first),
        keep(DType::UInt8, c.batch, c.heads, c.queries, c.keys, Order::heads_first),
        out(c.dtype, c.batch, c.heads, c.queries, c.value_size, c.order),
        out_gradient(c.dtype, c.batch, c.heads, c.queries, c.value_size, c.order),
        q_gradient(c.dtype, c.batch, c.heads, c.queries, c.head_size, c.order),
        k_gradient(c.dtype, c.batch, c.kv_heads, c.keys, c.head_size, c.order),
        v_gradient(c.dtype, c.batch, c.kv_heads, c.keys, c.value_size, c.order),
        sums64(static_cast<size_t>(c.batch * c.heads * c.queries)),
        sums32(sums64.size()) {
    std::mt19937 generator(static_cast<unsigned>(c.queries * 7 + c.keys));
    for (Heads* heads : {&q, &k, &v, &out_gradient}) {
      heads->fill(generator);
    }
    std::uniform_int_distribution<int> bit(0, 3);
    keep.each([&](int64_t b, int64_t h, int64_t i, int64_t j) {
      keep.set(b, h, i, j, bit(generator) != 0);
    });
    std::uniform_real_distribution<double> real(-1, 1);
    mask.each([&](int64_t b, int64_t h, int64_t i, int64_t j) {
      const double value = c.mask == Mask::boolean ? bit(generator) != 0 : real(generator);
      const bool shared = c.mask == Mask::keys_only && (b > 0 || h > 0 || i > 0);
      mask.set(b, h, i, j, shared ? mask.at(0, 0, 0, j) : value);
    });
    attention = {c.dtype,     c.batch,      c.heads, c.kv_heads, c.queries, c.keys,
                 c.head_size, c.value_size, 0.3,     q.ref(),    k.ref(),   v.ref()};
    attention.causal = c.causal;
    if (c.mask != Mask::none) {
      attention.mask = mask.ref();
      attention.mask_dtype = c.mask == Mask::boolean ? DType::Bool : c.dtype;
    }
    if (c.mask == Mask::keys_only) {
      attention.mask.batch_stride = 0;
      attention.mask.head_stride = 0;
      attention.mask.row_stride = 0;
    }
    if (c.dropout) {
      attention.keep = keep.ref();
      attention.keep_scale = 1 / 0.75;
    }
  }

  void* sums() {
    return test.dtype == DType::Float64 ? static_cast<void*>(sums64.data())
                                        : static_cast<void*>(sums32.data());
  }
  void forward() { attention_forward(attention, out.out(), sums()); }
  void backward() {
    attention_backward(attention, out.ref(), sums(), out_gradient.ref(),
                       {q_gradient.out(), k_gradient.out(), v_gradient.out()});
  }
};

using Table = std::vector<std::vector<double>>;

// Probabilities of one head, in f64.
Table probabilities(const Problem& p, int64_t b, int64_t h) {
  const Case& c = p.test;
  const int64_t kv = h / (c.heads / c.kv_heads);
  Table table(static_cast<size_t>(c.queries), std::vector<double>(static_cast<size_t>(c.keys)));
  for (int64_t i = 0; i < c.queries; ++i) {
    auto& row = table[static_cast<size_t>(i)];
    double most = -std::numeric_limits<double>::infinity();
    for (int64_t j = 0; j < c.keys; ++j) {
      double score = 0;
      for (int64_t e = 0; e < c.head_size; ++e) {
        score += p.q.at(b, h, i, e) * p.k.at(b, kv, j, e);
      }
      score *= p.attention.scale;
      const double mask = c.mask == Mask::none ? 0 : p.mask.at(b, h, i, j);
      const bool hidden = (c.causal && j > i) || (c.mask == Mask::boolean && mask == 0);
      score += c.mask == Mask::boolean ? 0 : mask;
      row[static_cast<size_t>(j)] = hidden ? -std::numeric_limits<double>::infinity() : score;
      most = std::max(most, row[static_cast<size_t>(j)]);
    }
    double sum = 0;
    for (double& score : row) {
      score = std::isinf(most) ? 0 : std::exp(score - most);
      sum += score;
    }
    for (double& score : row) {
      score = sum == 0 ? 0 : score / sum;
    }
  }
  return table;
}

double allowed(DType dtype, int64_t terms) {
  return testing::tolerance(dtype, terms) * (dtype == DType::Float64 ? 10 : 2);
}

double kept(const Problem& p, int64_t b, int64_t h, int64_t i, int64_t j) {
  return p.test.dropout ? p.keep.at(b, h, i, j) * p.attention.keep_scale : 1;
}

void expect_forward_agrees(const Case& test) {
  Problem p(test);
  p.forward();
  for (int64_t b = 0; b < test.batch; ++b) {
    for (int64_t h = 0; h < test.heads; ++h) {
      const int64_t kv = h / (test.heads / test.kv_heads);
      const Table table = probabilities(p, b, h);
      for (int64_t i = 0; i < test.queries; ++i) {
        for (int64_t e = 0; e < test.value_size; ++e) {
          double want = 0;
          for (int64_t j = 0; j < test.keys; ++j) {
            want += table[static_cast<size_t>(i)][static_cast<size_t>(j)] * kept(p, b, h, i, j) *
                    p.v.at(b, kv, j, e);
          }
          ASSERT_NEAR(p.out.at(b, h, i, e), want, allowed(test.dtype, 1))
              << test.text() << " at " << b << " " << h << " " << i << " " << e;
        }
      }
    }
  }
}

void expect_backward_agrees(const Case& test) {
  Problem p(test);
  p.forward();
  p.backward();
  Heads q(DType::Float64, test.batch, test.heads, test.queries, test.head_size, Order::heads_first);
  Heads k(DType::Float64, test.batch, test.kv_heads, test.keys, test.head_size, Order::heads_first);
  Heads v(DType::Float64, test.batch, test.kv_heads, test.keys, test.value_size,
          Order::heads_first);
  for (int64_t b = 0; b < test.batch; ++b) {
    for (int64_t h = 0; h < test.heads; ++h) {
      const int64_t kv = h / (test.heads / test.kv_heads);
      const Table table = probabilities(p, b, h);
      for (int64_t i = 0; i < test.queries; ++i) {
        std::vector<double> above(static_cast<size_t>(test.keys));
        double mean = 0;
        for (int64_t j = 0; j < test.keys; ++j) {
          const double probability = table[static_cast<size_t>(i)][static_cast<size_t>(j)];
          double gradient = 0;
          for (int64_t e = 0; e < test.value_size; ++e) {
            const double upper = p.out_gradient.at(b, h, i, e);
            gradient += upper * p.v.at(b, kv, j, e);
            v.set(b, kv, j, e, v.at(b, kv, j, e) + probability * kept(p, b, h, i, j) * upper);
          }
          above[static_cast<size_t>(j)] = gradient * kept(p, b, h, i, j);
          mean += probability * above[static_cast<size_t>(j)];
        }
        for (int64_t j = 0; j < test.keys; ++j) {
          const double probability = table[static_cast<size_t>(i)][static_cast<size_t>(j)];
          const double score =
              probability * (above[static_cast<size_t>(j)] - mean) * p.attention.scale;
          for (int64_t e = 0; e < test.head_size; ++e) {
            q.set(b, h, i, e, q.at(b, h, i, e) + score * p.k.at(b, kv, j, e));
            k.set(b, kv, j, e, k.at(b, kv, j, e) + score * p.q.at(b, h, i, e));
          }
        }
      }
    }
  }
  const auto compare = [&](const Heads& got, const Heads& want, const char* name) {
    want.each([&](int64_t b, int64_t h, int64_t i, int64_t e) {
      const double exact = want.at(b, h, i, e);
      ASSERT_NEAR(got.at(b, h, i, e), exact, allowed(test.dtype, 4) * (1 + std::abs(exact)))
          << test.text() << " gradient of " << name << " at " << b << " " << h << " " << i << " "
          << e;
    });
  };
  compare(p.q_gradient, q, "q");
  compare(p.k_gradient, k, "k");
  compare(p.v_gradient, v, "v");
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType dtype : {DType::Float32, DType::Float64, DType::BFloat16, DType::Float16}) {
    for (const Order order : {Order::heads_first, Order::rows_first, Order::spread}) {
      for (const bool causal : {false, true}) {
        all.push_back({dtype, 2, 2, 2, 10, 12, 8, 8, order, Mask::none, causal});
        all.push_back({dtype, 1, 4, 2, 130, 70, 16, 24, order, Mask::boolean, causal});
        all.push_back({dtype, 1, 3, 1, 70, 300, 5, 7, order, Mask::added, causal, true});
        all.push_back({dtype, 2, 1, 1, 3, 40, 64, 32, order, Mask::keys_only, causal});
      }
    }
  }
  for (const int64_t queries : {1, 15, 16, 17, 63, 64, 65}) {
    for (const int64_t keys : {1, 127, 128, 129}) {
      all.push_back({DType::Float32, 1, 1, 1, queries, keys, 12, 9, Order::heads_first, Mask::none,
                     queries % 2 == 0});
    }
  }
  return all;
}

TEST(Attention, ForwardAgrees) {
  for (const Case& test : cases()) {
    expect_forward_agrees(test);
  }
}

TEST(Attention, BackwardAgrees) {
  for (const int threads : {1, 3}) {
    const int before = num_threads();
    set_num_threads(threads);
    for (const Case& test : cases()) {
      if (threads == 1 || test.dtype == DType::Float32) {
        expect_backward_agrees(test);
      }
    }
    set_num_threads(before);
  }
}

TEST(Attention, LogsumexpIsExact) {
  Problem p({});
  p.forward();
  double sum = 0;
  for (int64_t j = 0; j < p.test.keys; ++j) {
    double score = 0;
    for (int64_t e = 0; e < p.test.head_size; ++e) {
      score += p.q.at(1, 1, 3, e) * p.k.at(1, 1, j, e);
    }
    sum += std::exp(score * p.attention.scale);
  }
  EXPECT_NEAR(p.sums32[3 * static_cast<size_t>(p.test.queries) + 3], std::log(sum), 1e-6);
}

TEST(Attention, LargeScoresDoNotOverflow) {
  Problem p({});
  p.attention.scale = 1e4;
  p.forward();
  p.backward();
  p.out.each([&](int64_t b, int64_t h, int64_t i, int64_t e) {
    ASSERT_LE(std::abs(p.out.at(b, h, i, e)), 1.0);
    ASSERT_TRUE(std::isfinite(p.q_gradient.at(b, h, i, e)));
  });
}

TEST(Attention, QueryWithoutKeysGivesZerosAndNoGradient) {
  Case test;
  test.mask = Mask::boolean;
  Problem p(test);
  for (int64_t j = 0; j < test.keys; ++j) {
    p.mask.set(0, 0, 4, j, 0);
  }
  p.forward();
  p.backward();
  for (int64_t e = 0; e < test.head_size; ++e) {
    EXPECT_EQ(p.out.at(0, 0, 4, e), 0);
    EXPECT_EQ(p.q_gradient.at(0, 0, 4, e), 0);
    EXPECT_TRUE(std::isfinite(p.k_gradient.at(0, 0, 4, e)));
  }
  EXPECT_EQ(p.sums32[4], std::numeric_limits<float>::infinity());
}

// Masks made of the lowest number, rather than of -inf, hide every key of a row alike.
TEST(Attention, LowestMaskOfAWholeRowLeavesTheMean) {
  Case test;
  test.mask = Mask::added;
  Problem p(test);
  for (int64_t j = 0; j < test.keys; ++j) {
    p.mask.set(0, 0, 4, j, std::numeric_limits<float>::lowest());
  }
  p.forward();
  for (int64_t e = 0; e < test.value_size; ++e) {
    double mean = 0;
    for (int64_t j = 0; j < test.keys; ++j) {
      mean += p.v.at(0, 0, j, e) / static_cast<double>(test.keys);
    }
    EXPECT_NEAR(p.out.at(0, 0, 4, e), mean, 1e-5);
  }
}

TEST(Attention, NanSpreadsToItsQueryOnly) {
  Problem p({});
  p.q.set(0, 1, 2, 3, std::numeric_limits<double>::quiet_NaN());
  p.forward();
  p.out.each([&](int64_t b, int64_t h, int64_t i, int64_t e) {
    ASSERT_EQ(std::isnan(p.out.at(b, h, i, e)), b == 0 && h == 1 && i == 2);
  });
}

TEST(Attention, EmptySizes) {
  Case no_keys;
  no_keys.keys = 0;
  expect_forward_agrees(no_keys);
  expect_backward_agrees(no_keys);
  Case no_queries;
  no_queries.queries = 0;
  expect_backward_agrees(no_queries);
  Case no_batch;
  no_batch.batch = 0;
  expect_backward_agrees(no_batch);
  Case no_values;
  no_values.value_size = 0;
  expect_backward_agrees(no_values);
}

TEST(Attention, SameBitsForAnyNumberOfThreads) {
  const int before = num_threads();
  for (const bool causal : {false, true}) {
    // Enough queries for large tasks with few threads and small ones with many.
    const Case test = {DType::Float32,     1,          4,     2, 600, 700, 16, 16,
                       Order::heads_first, Mask::none, causal};
    set_num_threads(1);
    Problem first(test);
    first.forward();
    first.backward();
    for (const int threads : {2, 3, 8}) {
      set_num_threads(threads);
      Problem again(test);
      again.forward();
      again.backward();
      EXPECT_TRUE(again.out.same_bits(first.out)) << threads;
      EXPECT_TRUE(again.q_gradient.same_bits(first.q_gradient)) << threads;
      EXPECT_TRUE(again.k_gradient.same_bits(first.k_gradient)) << threads;
      EXPECT_TRUE(again.v_gradient.same_bits(first.v_gradient)) << threads;
    }
  }
  set_num_threads(before);
}

}  // namespace
}  // namespace rushlight
