// Operators that draw numbers. Streams equal PyTorch's: see kernels/random.h.
#include "kernels/random.h"

#include <rushlight/generated/functions.h>

#include <cmath>

#include "ops/elementwise.h"
#include "ops/operator.h"
#include "ops/random_fill.h"
#include "ops/zero_gradient.h"
#include "tensor/geometry.h"

namespace rushlight {
namespace {

// Positions of "dtype, layout, device, pin_memory" and what follows, from the first of them.
TensorOptions options_at(const Invocation& inv, int first) {
  return detail::unbox_options(inv.arguments + first);
}

// The target of a factory: shape at argument `sizes`, options after it, then the generator.
const Tensor& factory_output(Invocation& inv, int sizes, DType fallback) {
  const TensorOptions options = options_at(inv, sizes + 1);
  return random_output(inv, inv.arguments[sizes].ints(), options.dtype_, fallback,
                       options.device_.value_or(Device()));
}
std::optional<Generator> factory_generator(const Invocation& inv, int sizes) {
  return generator_of(inv.arguments[sizes + 5]);
}

// The target of x_like: options at `first`, then the memory format, then the generator.
const Tensor& like_output(Invocation& inv, int first) {
  const Tensor& self = inv.arguments[0].tensor();
  const TensorOptions options = options_at(inv, first);
  const Value& format = inv.arguments[first + 4];
  const MemoryFormat wanted = format.is_none() ? MemoryFormat::Preserve : format.memory_format();
  const IntList strides = wanted == MemoryFormat::Preserve
                              ? preserved_strides(self.sizes(), self.strides())
                              : strides_for(self.sizes(), wanted, inv.op->name());
  return random_output(inv, self.sizes(), options.dtype_, self.dtype(),
                       options.device_.value_or(self.device()), strides);
}
std::optional<Generator> like_generator(const Invocation& inv, int first) {
  return generator_of(inv.arguments[first + 5]);
}

void check_positive(const char* op, const char* name, double value) {
  if (!(value > 0)) {
    char text[32];
    std::snprintf(text, sizeof(text), "%g", value);
    fail(ErrorKind::Runtime, "", op, " expects ", name, " > 0.0, but found ", name, "=", text);
  }
}

void check_continuous(const char* distribution, DType dtype) {
  if (!is_floating(dtype)) {
    fail(ErrorKind::Runtime, "", distribution,
         " distribution is a continuous probability distribution. dtype must be a floating point "
         "but you specified ",
         scalar_type_name(dtype));
  }
}

void randperm_into(Invocation& inv) {
  const int64_t count = inv.arguments[0].to_int();
  const TensorOptions options = options_at(inv, 1);
  if (count < 0) {
    fail(ErrorKind::Runtime, "", "Trying to create tensor with negative dimension ", count, ": [",
         count, "]");
  }
  const Tensor& out =
      random_output(inv, {count}, options.dtype_, DType::Int64, options.device_.value_or(Device()));
  const DType dtype = out.dtype();
  const int64_t most = dtype == DType::UInt8      ? 255
                       : dtype == DType::Int8     ? 127
                       : dtype == DType::Int16    ? 32767
                       : dtype == DType::Float16  ? 2049
                       : dtype == DType::BFloat16 ? 257
                                                  : INT64_MAX;
  if (count > most) {
    fail(ErrorKind::Runtime, "randperm", "n of ", count, " is too large for ", dtype,
         ": value cannot be converted without overflow");
  }
  const Tensor order = dtype == DType::Int64 && out.is_contiguous()
                           ? out
                           : make_tensor({count}, DType::Int64, out.device());
  fill_random(order, generator_of(inv.arguments[5]),
              [](void* data, int64_t size, bool, streams::State& state) {
                streams::permutation(static_cast<int64_t*>(data), size, state);
              });
  if (!order.is_same(out) && !out.is_meta()) {
    assign(out, order);
  }
}

// Draws with one probability an element, `p` broadcast to `out`.
void draw_each(const Tensor& out, const Tensor& p, const std::optional<Generator>& generator) {
  require_floating(p.dtype(), "bernoulli_tensor_cpu_p_");
  if (out.is_meta()) {
    return;
  }
  const DType p_dtype = p.dtype() == DType::Float64 ? DType::Float64 : DType::Float32;
  const Tensor spread = make_tensor(out.sizes(), p_dtype);
  assign(spread, p);
  for (int64_t i = 0; i < spread.numel(); ++i) {
    const double value = p_dtype == DType::Float64 ? static_cast<double*>(spread.data())[i]
                                                   : static_cast<float*>(spread.data())[i];
    if (!(value >= 0 && value <= 1)) {
      fail(ErrorKind::Runtime, "bernoulli", "Expected p_in >= 0 && p_in <= 1 to be true, but got ",
           value);
    }
  }
  const Tensor drawn = out.is_contiguous() ? out : make_tensor(out.sizes(), out.dtype());
  fill_random(drawn, generator, [&](void* data, int64_t count, bool, streams::State& state) {
    streams::bernoulli_each(data, out.dtype(), count, spread.data(), p_dtype, state);
  });
  if (!drawn.is_same(out)) {
    assign(out, drawn);
  }
}

void poisson_into(Invocation& inv) {
  const Tensor& self = inv.arguments[0].tensor();
  require_floating(self.dtype(), "poisson_cpu");
  const Tensor& out = random_output_like(inv);
  if (out.is_meta()) {
    return;
  }
  const Tensor rates = make_tensor(self.sizes(), self.dtype());
  assign(rates, self);
  const Tensor drawn = make_tensor(self.sizes(), self.dtype());
  fill_random(drawn, generator_of(inv.arguments[1]),
              [&](void* data, int64_t count, bool, streams::State& state) {
                streams::poisson(data, rates.data(), self.dtype(), count, state);
              });
  assign(out, drawn);
}

// mean + std * normal, in the dtype of the mean where that is a tensor, else of the deviation.
// The stream depends on how out= lies in memory, so it is drawn into directly.
void normal_into(Invocation& inv, const Tensor& mean, const Tensor& std, double mean_number,
                 double std_number) {
  const Tensor& model = mean.defined() ? mean : std;
  const DType dtype = model.dtype();
  require_floating(real_dtype(dtype), "normal_kernel_cpu");
  const IntList sizes = mean.defined() && std.defined()
                            ? broadcast_shapes(mean.sizes(), std.sizes(), "")
                            : IntList(model.sizes());
  DoorGuard closed(0, ~uint32_t{0});
  if (std.defined() && !std.is_meta() && std.numel() > 0 && min(std).item().to_double() < 0) {
    fail(ErrorKind::Runtime, "", "normal expects all elements of std >= 0.0");
  }
  // Where only the mean is a tensor, out= keeps its shape and the mean is added to it.
  const bool keeps_shape = inv.form == Form::Out && !std.defined();
  const Tensor out =
      random_output(inv, keeps_shape ? inv.results[0].tensor().sizes() : IntArrayRef(sizes),
                    std::nullopt, dtype, model.device());
  fill_normal(out, 0, std.defined() ? 1 : std_number, generator_of(inv.arguments[2]));
  const Tensor pairs = out.is_complex() ? view_as_real(out) : Tensor();
  if (std.defined()) {
    mul_(pairs.defined() ? pairs : out, pairs.defined() ? unsqueeze(std, -1) : std);
  }
  if (mean.defined()) {
    add_(out, mean);
  } else {
    add_(pairs.defined() ? select(pairs, -1, 0) : out, Scalar(mean_number));
  }
}

}  // namespace

RUSHLIGHT_OPERATORS(random) {
  op("rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
     "bool? pin_memory=None, Generator? generator=None) -> Tensor",
     kFunction | kOut)
      .doc("Numbers drawn uniformly from [0, 1).")
      .kernel_into([](Invocation& inv) {
        fill_uniform(factory_output(inv, 0, default_dtype()), 0, 1, factory_generator(inv, 0));
      })
      .not_differentiable();
  op("randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
     "bool? pin_memory=None, Generator? generator=None) -> Tensor",
     kFunction | kOut)
      .doc("Numbers drawn from the normal distribution with mean 0 and variance 1.")
      .kernel_into([](Invocation& inv) {
        fill_normal(factory_output(inv, 0, default_dtype()), 0, 1, factory_generator(inv, 0));
      })
      .not_differentiable();
  op("randint(SymInt high, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None, Generator? generator=None) -> Tensor",
     kFunction | kOut)
      .doc("Integers drawn uniformly from [0, high).")
      .kernel_into([](Invocation& inv) {
        fill_integers(factory_output(inv, 1, DType::Int64), 0, inv.arguments[0].to_int(),
                      factory_generator(inv, 1));
      })
      .not_differentiable();
  op("randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=None, "
     "Layout? layout=None, Device? device=None, bool? pin_memory=None, Generator? generator=None) "
     "-> Tensor",
     kFunction | kOut)
      .doc("Integers drawn uniformly from [low, high).")
      .kernel_into([](Invocation& inv) {
        fill_integers(factory_output(inv, 2, DType::Int64), inv.arguments[0].to_int(),
                      inv.arguments[1].to_int(), factory_generator(inv, 2));
      })
      .not_differentiable();
  op("rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
     "bool? pin_memory=None, MemoryFormat? memory_format=None, Generator? generator=None) -> "
     "Tensor",
     kFunction | kOut)
      .doc("Numbers drawn uniformly from [0, 1), in the shape of `self`.")
      .kernel_into(
          [](Invocation& inv) { fill_uniform(like_output(inv, 1), 0, 1, like_generator(inv, 1)); })
      .not_differentiable();
  op("randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
     "bool? pin_memory=None, MemoryFormat? memory_format=None, Generator? generator=None) -> "
     "Tensor",
     kFunction | kOut)
      .doc("Numbers drawn from the normal distribution, in the shape of `self`.")
      .kernel_into(
          [](Invocation& inv) { fill_normal(like_output(inv, 1), 0, 1, like_generator(inv, 1)); })
      .not_differentiable();
  op("randint_like(Tensor self, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None, "
     "Generator? generator=None) -> Tensor",
     kFunction | kOut)
      .doc("Integers drawn uniformly from [0, high), in the shape of `self`.")
      .kernel_into([](Invocation& inv) {
        fill_integers(like_output(inv, 2), 0, inv.arguments[1].to_int(), like_generator(inv, 2));
      })
      .not_differentiable();
  op("randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, ScalarType? dtype=None, "
     "Layout? layout=None, Device? device=None, bool? pin_memory=None, "
     "MemoryFormat? memory_format=None, Generator? generator=None) -> Tensor",
     kFunction | kOut)
      .doc("Integers drawn uniformly from [low, high), in the shape of `self`.")
      .kernel_into([](Invocation& inv) {
        fill_integers(like_output(inv, 3), inv.arguments[1].to_int(), inv.arguments[2].to_int(),
                      like_generator(inv, 3));
      })
      .not_differentiable();
  op("randperm(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
     "bool? pin_memory=None, Generator? generator=None) -> Tensor",
     kFunction | kOut)
      .doc("The integers 0 to n - 1 in random order.")
      .kernel_into(randperm_into)
      .not_differentiable();
  op("uniform(Tensor self, float from=0, float to=1, *, Generator? generator=None) -> Tensor",
     kInplace)
      .doc("Numbers drawn uniformly from [from, to).")
      .kernel_into([](Invocation& inv) {
        fill_uniform(random_output_like(inv), inv.arguments[1].to_double(),
                     inv.arguments[2].to_double(), generator_of(inv.arguments[3]));
      })
      .gradient("", zero_gradient);
  op("normal(Tensor self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor",
     kInplace)
      .doc("Numbers drawn from the normal distribution.")
      .kernel_into([](Invocation& inv) {
        fill_normal(random_output_like(inv), inv.arguments[1].to_double(),
                    inv.arguments[2].to_double(), generator_of(inv.arguments[3]));
      })
      .gradient("", zero_gradient);
  op("normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
     kFunction | kOut)
      .doc("Numbers drawn from normal distributions, a mean and deviation an element.")
      .kernel_into([](Invocation& inv) {
        normal_into(inv, inv.arguments[0].tensor(), inv.arguments[1].tensor(), 0, 1);
      })
      .gradient("", zero_gradient)
      .casts_out();
  op("normal.Tensor_float(Tensor mean, float std=1, *, Generator? generator=None) -> Tensor",
     kFunction | kOut)
      .doc("Numbers drawn from normal distributions, a mean an element.")
      .kernel_into([](Invocation& inv) {
        normal_into(inv, inv.arguments[0].tensor(), {}, 0, inv.arguments[1].to_double());
      })
      .gradient("", zero_gradient)
      .casts_out();
  op("normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
     kFunction | kOut)
      .doc("Numbers drawn from normal distributions, a deviation an element.")
      .kernel_into([](Invocation& inv) {
        normal_into(inv, {}, inv.arguments[1].tensor(), inv.arguments[0].to_double(), 1);
      })
      .gradient("", zero_gradient)
      .casts_out();
  op("normal.float_float(float mean, float std, SymInt[] size, *, ScalarType? dtype=None, "
     "Layout? layout=None, Device? device=None, bool? pin_memory=None, Generator? generator=None) "
     "-> Tensor",
     kFunction | kOut)
      .doc("Numbers drawn from one normal distribution.")
      .kernel_into([](Invocation& inv) {
        fill_normal(factory_output(inv, 2, default_dtype()), inv.arguments[0].to_double(),
                    inv.arguments[1].to_double(), factory_generator(inv, 2));
      })
      .not_differentiable();
  op("random.from(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor",
     kInplace)
      .doc("Integers drawn uniformly from [from, to).")
      .kernel_into([](Invocation& inv) {
        const Value& to = inv.arguments[2];
        fill_integers(random_output_like(inv), inv.arguments[1].to_int(),
                      to.is_none() ? std::nullopt : std::optional<int64_t>(to.to_int()),
                      generator_of(inv.arguments[3]));
      })
      .gradient("", zero_gradient);
  op("random.to(Tensor self, int to, *, Generator? generator=None) -> Tensor", kInplace)
      .doc("Integers drawn uniformly from [0, to).")
      .kernel_into([](Invocation& inv) {
        fill_integers(random_output_like(inv), 0, inv.arguments[1].to_int(),
                      generator_of(inv.arguments[2]));
      })
      .gradient("", zero_gradient);
  op("random(Tensor self, *, Generator? generator=None) -> Tensor", kInplace)
      .doc("Integers from 0 to the greatest that the dtype holds exactly.")
      .kernel_into([](Invocation& inv) {
        const Tensor& out = random_output_like(inv);
        fill_random(out, generator_of(inv.arguments[1]),
                    [&](void* data, int64_t count, bool, streams::State& state) {
                      streams::integers_of_type(data, out.dtype(), count, state);
                    });
      })
      .gradient("", zero_gradient);
  op("bernoulli(Tensor self, *, Generator? generator=None) -> Tensor", kFunction | kMethod | kOut)
      .doc("One with the probability that the element gives, else zero.")
      .kernel_into([](Invocation& inv) {
        const Tensor& self = inv.arguments[0].tensor();
        draw_each(random_output_like(inv), self, generator_of(inv.arguments[1]));
      })
      .gradient("", zero_gradient);
  op("bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor",
     kFunction | kMethod)
      .doc("One with probability p, else zero, in the shape of `self`.")
      .kernel_into([](Invocation& inv) {
        fill_bernoulli(random_output_like(inv), inv.arguments[1].to_double(), 1,
                       generator_of(inv.arguments[2]));
      })
      .gradient("", zero_gradient);
  op("bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor", kInplace)
      .doc("One with the probability that `p` gives, else zero.")
      .kernel_into([](Invocation& inv) {
        draw_each(random_output_like(inv), inv.arguments[1].tensor(),
                  generator_of(inv.arguments[2]));
      })
      .gradient("", zero_gradient);
  op("bernoulli.float(Tensor self, float p=0.5, *, Generator? generator=None) -> Tensor", kInplace)
      .doc("One with probability p, else zero.")
      .kernel_into([](Invocation& inv) {
        fill_bernoulli(random_output_like(inv), inv.arguments[1].to_double(), 1,
                       generator_of(inv.arguments[2]));
      })
      .gradient("", zero_gradient);
  op("exponential(Tensor self, float lambd=1, *, Generator? generator=None) -> Tensor", kInplace)
      .doc("Numbers drawn from the exponential distribution with rate `lambd`.")
      .kernel_into([](Invocation& inv) {
        const double rate = inv.arguments[1].to_double();
        const Tensor& out = random_output_like(inv);
        check_continuous("Exponential", out.dtype());
        check_positive("exponential_", "lambda", rate);
        fill_random(out, generator_of(inv.arguments[2]),
                    [&](void* data, int64_t count, bool, streams::State& state) {
                      streams::exponential(data, out.dtype(), count, rate, state);
                    });
      })
      .gradient("", zero_gradient);
  op("geometric(Tensor self, float p, *, Generator? generator=None) -> Tensor", kInplace)
      .doc("How many trials of probability p it takes to succeed once.")
      .kernel_into([](Invocation& inv) {
        const double p = inv.arguments[1].to_double();
        const Tensor& out = random_output_like(inv);
        if (!(p > 0 && p < 1)) {
          fail(ErrorKind::Runtime, "", "geometric_ expects p to be in (0, 1), but got p=", p);
        }
        if (out.dtype() == DType::Bool || out.is_complex()) {
          fail(ErrorKind::NotImplemented, "", "\"geometric_cpu\" not implemented for '",
               scalar_type_name(out.dtype()), "'");
        }
        fill_random(out, generator_of(inv.arguments[2]),
                    [&](void* data, int64_t count, bool, streams::State& state) {
                      streams::geometric(data, out.dtype(), count, p, state);
                    });
      })
      .gradient("", zero_gradient);
  op("cauchy(Tensor self, float median=0, float sigma=1, *, Generator? generator=None) -> Tensor",
     kInplace)
      .doc("Numbers drawn from the Cauchy distribution.")
      .kernel_into([](Invocation& inv) {
        const double sigma = inv.arguments[2].to_double();
        const Tensor& out = random_output_like(inv);
        check_continuous("Cauchy", out.dtype());
        check_positive("cauchy_", "sigma", sigma);
        fill_random(out, generator_of(inv.arguments[3]),
                    [&](void* data, int64_t count, bool, streams::State& state) {
                      streams::cauchy(data, out.dtype(), count, inv.arguments[1].to_double(), sigma,
                                      state);
                    });
      })
      .gradient("", zero_gradient);
  op("log_normal(Tensor self, float mean=1, float std=2, *, Generator? generator=None) -> Tensor",
     kInplace)
      .doc("Numbers whose logarithm is drawn from a normal distribution.")
      .kernel_into([](Invocation& inv) {
        const double std = inv.arguments[2].to_double();
        const Tensor& out = random_output_like(inv);
        check_positive("log_normal_", "std", std);
        require_floating(out.dtype(), "log_normal_cpu");
        fill_random(out, generator_of(inv.arguments[3]),
                    [&](void* data, int64_t count, bool, streams::State& state) {
                      streams::log_normal(data, out.dtype(), count, inv.arguments[1].to_double(),
                                          std, state);
                    });
      })
      .gradient("", zero_gradient);
  op("poisson(Tensor self, Generator? generator=None) -> Tensor", kFunction | kOut)
      .doc("Numbers drawn from Poisson distributions, a rate an element.")
      .kernel_into(poisson_into)
      .gradient("", zero_gradient);
}

}  // namespace rushlight
