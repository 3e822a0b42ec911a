// Gamma, Dirichlet and binomial numbers: float32 and float64, with PyTorch's streams. Gamma and
// Dirichlet numbers have gradients by their parameters: how a number moves at its fixed quantile.
#include "kernels/random_gamma.h"

#include <rushlight/generated/functions.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/copy.h"
#include "ops/elementwise.h"
#include "ops/gradient.h"
#include "ops/operator.h"
#include "ops/random_fill.h"
#include "ops/zero_gradient.h"
#include "runtime/parallel.h"
#include "tensor/geometry.h"

namespace rushlight {
namespace {

void require_single_or_double(DType dtype, std::string_view kernel) {
  if (dtype != DType::Float32 && dtype != DType::Float64) {
    fail(ErrorKind::NotImplemented, "", "\"", kernel, "\" not implemented for '",
         scalar_type_name(dtype), "'");
  }
}

// Gamma numbers of `dtype` in row-major order; `self` says the shape parameters.
Tensor gamma_numbers(const Tensor& self, DType dtype, const std::optional<Generator>& generator) {
  const Tensor shapes = make_tensor(self.sizes(), dtype);
  assign(shapes, self);
  const Tensor drawn = make_tensor(self.sizes(), dtype);
  fill_random(drawn, generator, [&](void* data, int64_t count, bool, streams::State& state) {
    streams::standard_gamma(data, shapes.data(), dtype, count, state);
  });
  return drawn;
}

void standard_gamma_into(Invocation& inv) {
  const Tensor& self = inv.arguments[0].tensor();
  require_single_or_double(self.dtype(), "gamma_cpu");
  const Tensor& out = random_output_like(inv);
  if (!out.is_meta()) {
    assign(out, gamma_numbers(self, self.dtype(), generator_of(inv.arguments[1])));
  }
}

template <typename T>
void normalize_rows(const Tensor& out, const Tensor& drawn) {
  const int64_t width = out.sizes().back();
  const auto* from = static_cast<const double*>(drawn.data());
  auto* into = static_cast<T*>(out.data());
  const double least = std::numeric_limits<T>::min();
  const double most = std::nextafter(T(1), T(0));
  for (int64_t row = 0; row < (width == 0 ? 0 : out.numel() / width); ++row) {
    double sum = 0;
    for (int64_t i = 0; i < width; ++i) {
      sum += from[row * width + i];
    }
    for (int64_t i = 0; i < width; ++i) {
      const double share = from[row * width + i] / sum;
      into[row * width + i] = static_cast<T>(std::min(most, std::max(least, share)));
    }
  }
}

void sample_dirichlet_into(Invocation& inv) {
  const Tensor& self = inv.arguments[0].tensor();
  require_single_or_double(self.dtype(), "dirichlet");
  if (self.dim() == 0) {
    fail(ErrorKind::Runtime, "_sample_dirichlet", "concentration has no last dimension");
  }
  const Tensor& out = random_output_like(inv);
  if (out.is_meta()) {
    return;
  }
  const Tensor drawn = gamma_numbers(self, DType::Float64, generator_of(inv.arguments[1]));
  const Tensor made = make_tensor(self.sizes(), self.dtype());
  if (self.dtype() == DType::Float32) {
    normalize_rows<float>(made, drawn);
  } else {
    normalize_rows<double>(made, drawn);
  }
  assign(out, made);
}

void binomial_into(Invocation& inv) {
  const Tensor& counts = inv.arguments[0].tensor();
  const Tensor& p = inv.arguments[1].tensor();
  const DType dtype = counts.dtype();
  require_single_or_double(dtype, "binomial_cpu");
  if (p.dtype() != dtype) {
    fail(ErrorKind::Runtime, "", "Found dtype ", scalar_type_name(dtype), " but expected ",
         scalar_type_name(p.dtype()));
  }
  const IntList sizes = broadcast_shapes(counts.sizes(), p.sizes(), "binomial");
  const Tensor& out = random_output(inv, sizes, std::nullopt, dtype, counts.device());
  if (out.is_meta()) {
    return;
  }
  const Tensor trials = make_tensor(sizes, dtype);
  const Tensor chances = make_tensor(sizes, dtype);
  assign(trials, expand(counts, sizes));
  assign(chances, expand(p, sizes));
  const Tensor drawn = make_tensor(sizes, dtype);
  fill_random(drawn, generator_of(inv.arguments[2]),
              [&](void* data, int64_t count, bool, streams::State& state) {
                streams::binomial(data, trials.data(), chances.data(), dtype, count, state);
              });
  assign(out, drawn);
}

// `slope` of the elements of tensors of one shape, in double precision.
template <typename Slope>
Tensor slopes(const std::vector<Tensor>& inputs, Slope&& slope) {
  const Tensor& model = inputs.front();
  const Tensor made = make_tensor(model.sizes(), DType::Float64, model.device());
  std::vector<Tensor> wide;
  std::vector<const double*> from;
  for (const Tensor& input : inputs) {
    wide.push_back(contiguous(to(expand(input, model.sizes()), DType::Float64)));
    from.push_back(model.is_meta() ? nullptr : static_cast<const double*>(wide.back().data()));
  }
  if (!model.is_meta()) {
    parallel_for(0, model.numel(), 64, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        static_cast<double*>(made.data())[i] = slope(from, i);
      }
    });
  }
  return kernels::as_dtype(made, model.dtype());
}

void refuse_second_order(Gradient& g) {
  fail(ErrorKind::Runtime, "", "the derivative for '", g.op().name(), "' is not implemented");
}

}  // namespace

RUSHLIGHT_OPERATORS(random_gamma) {
  op("_standard_gamma(Tensor self, Generator? generator=None) -> Tensor", kFunction)
      .doc("Numbers drawn from gamma distributions of scale 1, a shape parameter an element.")
      .kernel_into(standard_gamma_into)
      .gradient("self result", [](Gradient& g) {
        g.set(0, mul(g.grad(), _standard_gamma_grad(g.tensor(0), g.result())));
      });
  op("_standard_gamma_grad(Tensor self, Tensor output) -> Tensor", kFunction)
      .doc("How gamma numbers `output` move with their shape parameters `self`.")
      .kernel([](const Tensor& self, const Tensor& output) -> Tensor {
        require_single_or_double(self.dtype(), "_standard_gamma_grad_cpu");
        return slopes({self, output}, [](const std::vector<const double*>& from, int64_t i) {
          return kernels::standard_gamma_slope(from[0][i], from[1][i]);
        });
      })
      .gradient("", refuse_second_order);
  op("_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor", kFunction)
      .doc("Points of a simplex drawn from Dirichlet distributions, one a row of `self`.")
      .kernel_into(sample_dirichlet_into)
      .gradient("self result", [](Gradient& g) {
        const Tensor shapes = g.tensor(0);
        const Tensor point = g.result();
        const Tensor total = expand(sum(shapes, {-1}, true), shapes.sizes());
        const Tensor mean = sum(mul(point, g.grad()), {-1}, true);
        g.set(0, mul(_dirichlet_grad(point, shapes, total), sub(g.grad(), mean)));
      });
  op("_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor", kFunction)
      .doc("How the coordinates `x` of Dirichlet points move with `alpha`, over 1 - x.")
      .kernel([](const Tensor& x, const Tensor& alpha, const Tensor& total) -> Tensor {
        require_single_or_double(x.dtype(), "_dirichlet_grad_cpu");
        return slopes({x, alpha, total}, [](const std::vector<const double*>& from, int64_t i) {
          return kernels::dirichlet_slope(from[0][i], from[1][i], from[2][i]);
        });
      })
      .gradient("", refuse_second_order);
  op("binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor", kFunction)
      .doc("How many of `count` trials succeed with probability `prob`.")
      .kernel_into(binomial_into)
      .gradient("", zero_gradient);
}

}  // namespace rushlight
