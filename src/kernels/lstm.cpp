#include "kernels/lstm.h"

#include <algorithm>
#include <cmath>

#include "kernels/gemm_engine.h"
#include "kernels/lstm_engine.h"
#include "kernels/scratch.h"
#include "runtime/cpu.h"
#include "runtime/parallel.h"
#include "runtime/per_thread.h"

namespace rushlight {
namespace {

constexpr int64_t kGates = 4;
// Multiplications that are worth a task of their own.
constexpr int64_t kTaskWork = 1 << 18;

const PerThread<Scratch> weight_scratch;
const PerThread<Scratch> state_scratch;

constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

void forward_f64(int64_t n, int64_t hidden, double* gates, const double* before, double* cell,
                 double* output) {
  for (int64_t j = 0; j < n; ++j) {
    double* at = gates + j;
    at[0] = sigmoid(at[0]);
    at[hidden] = sigmoid(at[hidden]);
    at[2 * hidden] = std::tanh(at[2 * hidden]);
    at[3 * hidden] = sigmoid(at[3 * hidden]);
    cell[j] = at[hidden] * before[j] + at[0] * at[2 * hidden];
    output[j] = at[3 * hidden] * std::tanh(cell[j]);
  }
}

void backward_f64(int64_t n, int64_t hidden, const double* gates, const double* before,
                  const double* cell, const double* output_gradient, double* cell_gradient,
                  double* gate_gradients) {
  for (int64_t j = 0; j < n; ++j) {
    const double input = gates[j];
    const double forget = gates[hidden + j];
    const double value = gates[2 * hidden + j];
    const double out = gates[3 * hidden + j];
    const double squashed = std::tanh(cell[j]);
    const double above = output_gradient[j];
    const double inner = cell_gradient[j] + above * out * (1 - squashed * squashed);
    double* to = gate_gradients + j;
    to[0] = inner * value * input * (1 - input);
    to[hidden] = inner * before[j] * forget * (1 - forget);
    to[2 * hidden] = inner * input * (1 - value * value);
    to[3 * hidden] = above * squashed * out * (1 - out);
    cell_gradient[j] = inner * forget;
  }
}

// The weight, packed once for all steps: panels of neighbouring units, each cut in depth.
template <typename T>
class Panels {
 public:
  // `items` columns of the product, of which one panel never holds columns of two groups.
  Panels(const MatrixRef& source, int64_t group, int64_t groups, int64_t depth)
      : engine_(gemm_engine<T>()),
        depth_(depth),
        each_(ceil_div(group, engine_.cols)),
        data_(weight_scratch->get<T>(groups * each_ * engine_.cols * depth)) {
    T* out = data_;
    for (int64_t g = 0; g < groups; ++g) {
      for (int64_t j = 0; j < group; j += engine_.cols) {
        const int64_t skip = (g * group + j) * source.row_stride * element_size(source.dtype);
        engine_.pack(source.dtype, static_cast<const char*>(source.data) + skip, source.row_stride,
                     source.col_stride, std::min<int64_t>(engine_.cols, group - j), depth,
                     engine_.cols, out);
        out += engine_.cols * depth;
      }
    }
  }

  int64_t count() const { return each_; }  // of a group
  int64_t width() const { return engine_.cols; }

  // c (rows x cols) += a (rows x depth) times a panel.
  void add(int64_t panel, int64_t rows, int64_t cols, const T* a, int64_t a_stride, T* c,
           int64_t c_stride) const {
    const T* b = data_ + panel * engine_.cols * depth_;
    for (int64_t p = 0; p < depth_; p += kGemmDepth) {
      engine_.strip(rows, cols, std::min(kGemmDepth, depth_ - p), a + p, a_stride, 1,
                    b + p * engine_.cols, engine_.cols, 1, 1, c, c_stride);
    }
  }

 private:
  const GemmEngine<T>& engine_;
  int64_t depth_;
  int64_t each_;
  T* data_;
};

int64_t grain_of(const LstmLayer& layer, int64_t width) {
  return std::max<int64_t>(1, kTaskWork / (kGates * layer.batch * layer.hidden * width + 1));
}

}  // namespace

template <>
const LstmEngine<float>& lstm_engine<float>() {
#if defined(__x86_64__)
  if (cpu_level() >= CpuLevel::v4) {
    return v4::lstm_f32;
  }
  if (cpu_level() >= CpuLevel::v3) {
    return v3::lstm_f32;
  }
#endif
  return base::lstm_f32;
}

template <>
const LstmEngine<double>& lstm_engine<double>() {
  static constexpr LstmEngine<double> engine = {forward_f64, backward_f64};
  return engine;
}

template <typename T>
void lstm_layer(const LstmLayer& layer, const T* products, const LstmState<T>& before,
                const MatrixRef& weight, T* output, T* cells, T* gates) {
  const int64_t hidden = layer.hidden;
  const int64_t row = kGates * hidden;
  const Panels<T> panels(weight, hidden, kGates, hidden);
  const LstmEngine<T>& engine = lstm_engine<T>();
  const T* h = before.hidden;
  const T* c = before.cell;
  for (int64_t n = 0; n < layer.steps; ++n) {
    const int64_t t = layer.step(n);
    const T* given = products + t * layer.batch * row;
    T* own = gates + t * layer.batch * row;
    T* next_h = output + t * layer.state_size();
    T* next_c = cells + t * layer.state_size();
    const auto units = [&](int64_t first, int64_t last) {
      for (int64_t panel = first; panel < last; ++panel) {
        const int64_t j = panel * panels.width();
        const int64_t wide = std::min(panels.width(), hidden - j);
        for (int64_t gate = 0; gate < kGates; ++gate) {
          const int64_t at = gate * hidden + j;
          for (int64_t b = 0; b < layer.batch; ++b) {
            std::copy(given + b * row + at, given + b * row + at + wide, own + b * row + at);
          }
          panels.add(gate * panels.count() + panel, layer.batch, wide, h, hidden, own + at, row);
        }
        for (int64_t b = 0; b < layer.batch; ++b) {
          const int64_t state = b * hidden + j;
          engine.forward(wide, hidden, own + b * row + j, c + state, next_c + state,
                         next_h + state);
        }
      }
    };
    parallel_for(0, panels.count(), grain_of(layer, panels.width()), units);
    h = next_h;
    c = next_c;
  }
}

template <typename T>
void lstm_layer_gradient(const LstmLayer& layer, const LstmAbove<T>& above, const T* cell_before,
                         const MatrixRef& weight, const T* cells, const T* gates, T* products,
                         T* hidden_before, T* cell_before_gradient) {
  const int64_t hidden = layer.hidden;
  const int64_t row = kGates * hidden;
  const int64_t size = layer.state_size();
  const MatrixRef turned = {weight.data, weight.dtype, weight.col_stride, weight.row_stride};
  const Panels<T> panels(turned, hidden, 1, row);
  const LstmEngine<T>& engine = lstm_engine<T>();
  T* dh = state_scratch->get<T>(size);
  T* dc = cell_before_gradient;
  std::fill(dc, dc + size, T{0});
  const T* later = nullptr;  // the gradients by the gates of the step after
  // Step -1 makes the gradient by the state before the first step.
  for (int64_t n = layer.steps - 1; n >= -1; --n) {
    const int64_t t = n >= 0 ? layer.step(n) : 0;
    const T* before = n > 0 ? cells + layer.step(n - 1) * size : cell_before;
    T* sums = n >= 0 ? dh : hidden_before;
    T* own = products + t * layer.batch * row;
    const auto units = [&](int64_t first, int64_t last) {
      for (int64_t panel = first; panel < last; ++panel) {
        const int64_t j = panel * panels.width();
        const int64_t wide = std::min(panels.width(), hidden - j);
        for (int64_t b = 0; b < layer.batch; ++b) {
          T* to = sums + b * hidden + j;
          if (n >= 0 && above.output != nullptr) {
            const T* from = above.output + t * size + b * hidden + j;
            std::copy(from, from + wide, to);
          } else {
            std::fill(to, to + wide, T{0});
          }
          if (n >= 0 && above.cells != nullptr) {
            for (int64_t i = 0; i < wide; ++i) {
              dc[b * hidden + j + i] += above.cells[t * size + b * hidden + j + i];
            }
          }
        }
        if (later != nullptr) {
          panels.add(panel, layer.batch, wide, later, row, sums + j, hidden);
        }
        for (int64_t b = 0; n >= 0 && b < layer.batch; ++b) {
          const int64_t state = b * hidden + j;
          engine.backward(wide, hidden, gates + (t * layer.batch + b) * row + j, before + state,
                          cells + t * size + state, sums + state, dc + state, own + b * row + j);
        }
      }
    };
    parallel_for(0, panels.count(), grain_of(layer, panels.width()), units);
    later = own;
  }
}

template void lstm_layer(const LstmLayer&, const float*, const LstmState<float>&, const MatrixRef&,
                         float*, float*, float*);
template void lstm_layer(const LstmLayer&, const double*, const LstmState<double>&,
                         const MatrixRef&, double*, double*, double*);
template void lstm_layer_gradient(const LstmLayer&, const LstmAbove<float>&, const float*,
                                  const MatrixRef&, const float*, const float*, float*, float*,
                                  float*);
template void lstm_layer_gradient(const LstmLayer&, const LstmAbove<double>&, const double*,
                                  const MatrixRef&, const double*, const double*, double*, double*,
                                  double*);

}  // namespace rushlight
