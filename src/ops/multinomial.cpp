// Drawing categories by weight.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "ops/elementwise.h"
#include "ops/operator.h"
#include "ops/random_fill.h"
#include "tensor/geometry.h"

namespace rushlight {
namespace {

void check_weights(const Tensor& weights, int64_t draws, bool replacement) {
  if (weights.dim() < 1 || weights.dim() > 2) {
    fail(ErrorKind::Runtime, "multinomial", "prob_dist must be 1 or 2 dim, but has ",
         weights.dim());
  }
  if (!is_floating(weights.dtype()) || is_float8(weights.dtype())) {
    fail(ErrorKind::Runtime, "", "multinomial only supports floating-point dtypes for input, got: ",
         scalar_type_name(weights.dtype()));
  }
  const int64_t categories = weights.sizes().back();
  if (draws <= 0) {
    fail(ErrorKind::Runtime, "multinomial", "cannot sample n_sample <= 0 samples, got ", draws);
  }
  if (categories < 1) {
    fail(ErrorKind::Runtime, "multinomial", "there are no categories: sizes are ", weights.sizes());
  }
  if (!replacement && draws > categories) {
    fail(ErrorKind::Runtime, "multinomial",
         "cannot sample n_sample > prob_dist.size(-1) samples without replacement: ", draws, " > ",
         categories);
  }
  if (categories > (int64_t{1} << 24)) {
    fail(ErrorKind::Runtime, "multinomial", "number of categories cannot exceed 2^24, got ",
         categories);
  }
}

// Keys of a race: weight / exponential; the largest come first. Drawn and divided in the dtype of
// the weights, in the order that those have in memory.
std::vector<double> race_keys(const Tensor& weights, IntArrayRef strides,
                              const std::optional<Generator>& generator) {
  const int64_t count = weights.numel();
  const Tensor times = make_strided(weights.sizes(), preserved_strides(weights.sizes(), strides),
                                    weights.dtype(), weights.device());
  fill_random(times, generator, [&](void* data, int64_t size, bool, streams::State& state) {
    streams::exponential(data, weights.dtype(), size, 1, state);
  });
  const DType wide = weights.dtype() == DType::Float64 ? DType::Float64 : DType::Float32;
  const Tensor a = make_tensor(weights.sizes(), wide);
  const Tensor b = make_tensor(weights.sizes(), wide);
  assign(a, weights);
  assign(b, times);
  std::vector<double> keys(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    if (wide == DType::Float64) {
      keys[i] = static_cast<double*>(a.data())[i] / static_cast<double*>(b.data())[i];
      continue;
    }
    const float key = static_cast<float*>(a.data())[i] / static_cast<float*>(b.data())[i];
    keys[i] = weights.dtype() == DType::Float16    ? to_float(to_half(key))
              : weights.dtype() == DType::BFloat16 ? to_float(to_bfloat16(key))
                                                   : key;
  }
  return keys;
}

void check_row(const double* weights, int64_t categories) {
  double sum = 0;
  for (int64_t j = 0; j < categories; ++j) {
    if (!std::isfinite(weights[j]) || weights[j] < 0) {
      fail(ErrorKind::Runtime, "multinomial",
           "probability tensor contains either `inf`, `nan` or element < 0");
    }
    sum += weights[j];
  }
  if (!(sum > 0)) {
    fail(ErrorKind::Runtime, "multinomial",
         "invalid multinomial distribution (sum of probabilities <= 0)");
  }
}

void draw_without_replacement(const Tensor& weights, IntArrayRef strides, int64_t draws,
                              int64_t* out, const std::optional<Generator>& generator) {
  const int64_t categories = weights.sizes().back();
  const int64_t rows = weights.numel() / categories;
  const Tensor exact = make_tensor(weights.sizes(), DType::Float64);
  assign(exact, weights);
  for (int64_t r = 0; r < rows; ++r) {
    check_row(static_cast<double*>(exact.data()) + r * categories, categories);
  }
  const std::vector<double> keys = race_keys(weights, strides, generator);
  std::vector<int64_t> order(static_cast<size_t>(categories));
  for (int64_t r = 0; r < rows; ++r, out += draws) {
    const double* row = keys.data() + r * categories;
    std::iota(order.begin(), order.end(), int64_t{0});
    std::partial_sort(order.begin(), order.begin() + draws, order.end(), [&](int64_t a, int64_t b) {
      return row[a] != row[b] ? row[a] > row[b] : a < b;
    });
    std::copy_n(order.begin(), draws, out);
  }
}

void multinomial_into(Invocation& inv) {
  const Tensor& self = inv.arguments[0].tensor();
  const int64_t draws = inv.arguments[1].to_int();
  const bool replacement = inv.arguments[2].to_bool();
  check_weights(self, draws, replacement);
  IntList sizes(self.sizes());
  sizes.back() = draws;
  const Tensor& out = random_output(inv, sizes, std::nullopt, DType::Int64, self.device());
  if (out.dtype() != DType::Int64) {
    fail(ErrorKind::Runtime, "multinomial",
         "expects Long tensor out, got: ", scalar_type_name(out.dtype()));
  }
  if (self.is_meta() || self.numel() == 0) {
    return;
  }
  const Tensor weights = make_tensor(self.sizes(), self.dtype());
  assign(weights, self);
  const Tensor drawn = make_tensor(sizes, DType::Int64);
  const std::optional<Generator> generator = generator_of(inv.arguments[3]);
  // One draw needs no replacement, and the race is what PyTorch runs for it.
  if (!replacement || draws == 1) {
    draw_without_replacement(weights, self.strides(), draws, static_cast<int64_t*>(drawn.data()),
                             generator);
  } else {
    const int64_t categories = self.sizes().back();
    fill_random(drawn, generator, [&](void* data, int64_t, bool, streams::State& state) {
      streams::multinomial(static_cast<int64_t*>(data), weights.data(), weights.dtype(),
                           self.numel() / categories, categories, draws, state);
    });
  }
  assign(out, drawn);
}

}  // namespace

RUSHLIGHT_OPERATORS(multinomial) {
  op("multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, "
     "Generator? generator=None) -> Tensor",
     kFunction | kMethod | kOut)
      .doc("Indices drawn from each row of weights, which need not sum to one.")
      .kernel_into(multinomial_into)
      .not_differentiable();
}

}  // namespace rushlight
