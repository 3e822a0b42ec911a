// One run of linear cross entropy over all rows, a chunk of them at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/linear_cross_entropy_tile.h"
#include "runtime/parallel.h"
#include "runtime/per_thread.h"

namespace rushlight {

// Tasks that one chunk of rows is cut into, and what their partial sums may take. They and the
// lengths below fix where sums are cut, so they must not depend on the number of threads.
inline constexpr int64_t kMostSlices = 32;
inline constexpr int64_t kSliceBytes = 12 << 20;
inline constexpr int64_t kChunkRows = 192;
inline constexpr int64_t kSlabBytes = 16 << 20;

struct LossScratch {
  Scratch weights;
  Scratch tile;
};
inline const PerThread<LossScratch> loss_scratch;

template <typename T>
class LossRun {
 public:
  LossRun(const LinearCrossEntropy& problem, T* loss, T* logsumexp,
          const LinearCrossEntropyGradients* wanted, bool holds)
      : problem_(problem),
        tiles_(problem),
        loss_(loss),
        logsumexp_(logsumexp),
        wanted_(wanted),
        holds_(holds),
        smooth_(static_cast<T>(problem.smoothing)),
        soft_(problem.smoothing != 0 && !tiles_.has_probabilities()) {
    plan();
    double total = 0;
    for (int64_t c = 0; c < problem.classes && problem.class_weight != nullptr; ++c) {
      total += static_cast<double>(tiles_.class_weight(c));
    }
    total_weight_ = static_cast<T>(
        problem.class_weight == nullptr ? static_cast<double>(problem.classes) : total);
  }

  // Statistics of all rows; with held scores the gradients as well.
  void run_forward() {
    for (int64_t row = 0; row < problem_.rows; row += chunk_) {
      load_chunk(row);
      measure_chunk();
      if (holds_) {
        differentiate_chunk({0, problem_.classes}, row == 0);
        add_input_gradient();
      }
    }
  }

  // Gradients from known statistics. Weights of half types sum their gradients in f32, a slab of
  // classes at a time.
  void run_backward() {
    const bool direct = problem_.dtype == kComputeDType<T> || wanted_->weight.data == nullptr;
    const int64_t row_bytes = std::max<int64_t>(problem_.features, 1) * int64_t{sizeof(T)};
    const int64_t slab =
        direct ? problem_.classes
               : std::max(kSlabBytes / row_bytes / kClassTile, int64_t{1}) * kClassTile;
    for (int64_t c = 0; c < problem_.classes; c += slab) {
      const ClassRange classes = {c, std::min(slab, problem_.classes - c)};
      for (int64_t row = 0; row < problem_.rows; row += chunk_) {
        load_chunk(row);
        differentiate_chunk(classes, row == 0);
        add_input_gradient();
      }
      if (!direct) {
        store_slab(classes);
      }
    }
  }

 private:
  static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

  // Of one slice of classes, a value a column each.
  struct Statistics {
    T* maximum;
    T* total;  // of exp(score - maximum)
    T* dot;    // of the wanted distribution and the scores
    T* mass;   // of the wanted distribution
  };

  void plan() {
    const int64_t features = std::max<int64_t>(problem_.features, 1);
    chunk_ = kChunkRows;
    if (holds_) {
      const int64_t fit = kHeldScores / (problem_.classes * int64_t{sizeof(T)});
      chunk_ =
          std::max<int64_t>(std::min(fit, chunk_) / tiles_.gemm().cols, 1) * tiles_.gemm().cols;
    }
    // Chunks of about equal length.
    const int64_t chunks = ceil_div(problem_.rows, chunk_);
    chunk_ = std::min(chunk_, tiles_.padded(ceil_div(problem_.rows, chunks)));
    const int64_t fit = kSliceBytes / (features * chunk_ * int64_t{sizeof(T)});
    const int64_t slices = std::clamp<int64_t>(fit, 4, kMostSlices);
    slice_ = ceil_div(ceil_div(problem_.classes, kClassTile), slices) * kClassTile;
  }

  int64_t slices(const ClassRange& classes) const { return ceil_div(classes.count, slice_); }
  bool wants_input() const { return wanted_ != nullptr && wanted_->input != nullptr; }
  bool wants_weight() const { return wanted_ != nullptr && wanted_->weight.data != nullptr; }

  void load_chunk(int64_t row) {
    tiles_.load_inputs(row, std::min(chunk_, problem_.rows - row), wants_weight());
    if (holds_) {
      const int64_t wide = tiles_.padded(chunk_);
      held_.get<T>(problem_.classes * (wide + 16));  // of any chunk, see stride_of
      bases_.get<T>(ceil_div(problem_.classes, kClassTile) * wide);
    }
  }
  T* held(int64_t c) { return held_.get<T>(0) + c * tiles_.stride(); }
  T* bases(int64_t c) { return bases_.get<T>(0) + c / kClassTile * tiles_.wide(); }

  template <typename F>
  void each_tile(const ClassRange& classes, F&& body) {
    for (int64_t c = 0; c < classes.count; c += kClassTile) {
      body(ClassRange{classes.first + c, std::min(kClassTile, classes.count - c)});
    }
  }

  // Calls body(slice, its classes) for the slices of `classes`, on all threads.
  template <typename F>
  void each_slice(const ClassRange& classes, F&& body) {
    const int64_t work = std::min(slice_, classes.count) * tiles_.wide() * (problem_.features + 16);
    parallel_for(0, slices(classes), 1 + (1 << 18) / (work + 1), [&](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s) {
        const int64_t c = s * slice_;
        body(s, ClassRange{classes.first + c, std::min(slice_, classes.count - c)});
      }
    });
  }

  void measure_chunk() {
    const ClassRange all = {0, problem_.classes};
    const int64_t wide = tiles_.wide();
    T* base = statistics_.get<T>((4 * slices(all) + 1) * wide);
    picked_ = base + 4 * slices(all) * wide;
    std::fill(picked_, picked_ + wide, T{0});
    const auto of_slice = [&](int64_t s) {
      T* at = base + 4 * s * wide;
      return Statistics{at, at + wide, at + 2 * wide, at + 3 * wide};
    };
    each_slice(all, [&](int64_t s, const ClassRange& classes) {
      const Statistics own = of_slice(s);
      std::fill(own.maximum, own.maximum + wide, -std::numeric_limits<T>::infinity());
      std::fill(own.total, own.total + 3 * wide, T{0});
      each_tile(classes, [&](const ClassRange& tile) { measure_tile(tile, own); });
    });
    for (int64_t i = 0; i < tiles_.rows(); ++i) {
      T maximum = -std::numeric_limits<T>::infinity();
      for (int64_t s = 0; s < slices(all); ++s) {
        const T own = of_slice(s).maximum[i];
        maximum = own > maximum || own != own ? own : maximum;
      }
      const T origin = maximum == -std::numeric_limits<T>::infinity() ? 0 : maximum;
      T total = 0;
      T dot = 0;
      T mass = 0;
      for (int64_t s = 0; s < slices(all); ++s) {
        const Statistics own = of_slice(s);
        total += own.total[i] * std::exp(own.maximum[i] - origin);
        dot += own.dot[i];
        mass += own.mass[i];
      }
      finish_row(i, origin + std::log(total), dot, mass);
    }
  }

  void measure_tile(const ClassRange& classes, const Statistics& own) {
    const int64_t stride = tiles_.stride();
    T* tile = holds_ ? held(classes.first) : loss_scratch->tile.get<T>(kClassTile * stride);
    tiles_.scores(classes, tiles_.weights(classes, &loss_scratch->weights), tile);
    if (tiles_.has_probabilities()) {
      tiles_.each_wanted(classes, [&](int64_t i, int64_t j, T wanted) {
        own.dot[i] += wanted * tile[j * stride + i];
        own.mass[i] += wanted;
      });
    } else {
      pick(classes, [&](int64_t i, int64_t j) { picked_[i] = tile[j * stride + i]; });
    }
    for (int64_t j = 0; soft_ && j < classes.count; ++j) {
      const T weight = tiles_.class_weight(classes.first + j);
      for (int64_t i = 0; i < tiles_.wide(); ++i) {
        own.dot[i] += weight * tile[j * stride + i];
      }
    }
    alignas(64) T correction[kChunkRows];
    tiles_.engine().softmax_step(tile, stride, classes.count, tiles_.wide(), own.maximum, own.total,
                                 correction, {});
    if (holds_) {
      std::copy(own.maximum, own.maximum + tiles_.wide(), bases(classes.first));
    }
  }

  // Calls visit(column, class within the range) where a column's target lies in the range.
  template <typename F>
  void pick(const ClassRange& classes, F&& visit) {
    for (int64_t i = 0; i < tiles_.rows(); ++i) {
      const int64_t target = tiles_.target(tiles_.first() + i);
      const int64_t j = target - classes.first;
      if (target != problem_.ignore_index && j >= 0 && j < classes.count) {
        visit(i, j);
      }
    }
  }

  void finish_row(int64_t i, T logsumexp, T dot, T mass) {
    const int64_t at = (tiles_.first() + i) * problem_.row_step;
    logsumexp_[at] = logsumexp;
    if (tiles_.has_probabilities()) {
      loss_[at] = mass * logsumexp - dot;
      return;
    }
    const int64_t target = tiles_.target(tiles_.first() + i);
    if (target == problem_.ignore_index) {
      loss_[at] = 0;
      return;
    }
    T loss = (1 - smooth_) * tiles_.class_weight(target) * (logsumexp - picked_[i]);
    if (soft_) {
      loss += smooth_ / static_cast<T>(problem_.classes) * (total_weight_ * logsumexp - dot);
    }
    loss_[at] = loss;
  }

  // What multiplies the probability, the target and the uniform share of each column.
  struct Factors {
    T logsumexp[kChunkRows];
    T probability[kChunkRows];
    T target[kChunkRows];
    T share[kChunkRows];
    T loss[kChunkRows];
  };

  void fill_factors(Factors& f) {
    for (int64_t i = 0; i < tiles_.wide(); ++i) {
      f.logsumexp[i] = std::numeric_limits<T>::infinity();
      f.probability[i] = f.target[i] = f.share[i] = f.loss[i] = 0;
    }
    const auto* losses = static_cast<const T*>(wanted_->loss_gradient);
    const auto* sums = static_cast<const T*>(wanted_->logsumexp_gradient);
    for (int64_t i = 0; i < tiles_.rows(); ++i) {
      const int64_t at = (tiles_.first() + i) * problem_.row_step;
      const T lse = logsumexp_[at];
      f.logsumexp[i] = lse;
      T loss = losses != nullptr ? losses[at] : static_cast<T>(wanted_->loss_scale);
      T direct = static_cast<T>(2 * wanted_->square_scale) * lse;
      T mass = mass_of(i);
      const int64_t target = tiles_.has_probabilities() ? 0 : tiles_.target(tiles_.first() + i);
      if (!tiles_.has_probabilities() && target == problem_.ignore_index) {
        loss = direct = mass = 0;
      } else if (!tiles_.has_probabilities()) {
        f.target[i] = loss * (1 - smooth_) * tiles_.class_weight(target);
        f.share[i] = loss * smooth_ / static_cast<T>(problem_.classes);
      }
      direct += sums != nullptr ? sums[at] : 0;
      f.loss[i] = loss;
      f.probability[i] = loss * mass + direct;
    }
  }

  // The total of a row's wanted distribution.
  T mass_of(int64_t i) {
    const int64_t row = tiles_.first() + i;
    if (!tiles_.has_probabilities()) {
      const int64_t target = tiles_.target(row);
      if (target == problem_.ignore_index) {
        return 0;
      }
      return (1 - smooth_) * tiles_.class_weight(target) +
             smooth_ / static_cast<T>(problem_.classes) * total_weight_;
    }
    return masses_[static_cast<size_t>(row)];
  }

  void find_masses() {
    if (!tiles_.has_probabilities() || !masses_.empty()) {
      return;
    }
    masses_.resize(static_cast<size_t>(problem_.rows));
    const T keep = 1 - smooth_;
    const T share = smooth_ / static_cast<T>(problem_.classes);
    parallel_for(0, problem_.rows, 1 + (1 << 15) / problem_.classes, [&](int64_t b, int64_t e) {
      T given[kClassTile];
      for (int64_t row = b; row < e; ++row) {
        T mass = 0;
        for (int64_t c = 0; c < problem_.classes; c += kClassTile) {
          const int64_t count = std::min(kClassTile, problem_.classes - c);
          const MatrixRef at = offset(problem_.probabilities, row, c);
          tiles_.gemm().load_row(at.dtype, at.data, at.col_stride, count, given);
          for (int64_t j = 0; j < count; ++j) {
            mass += tiles_.class_weight(c + j) * (given[j] * keep + share);
          }
        }
        masses_[static_cast<size_t>(row)] = mass;
      }
    });
  }

  void differentiate_chunk(const ClassRange& classes, bool first_chunk) {
    find_masses();
    fill_factors(factors_);
    const int64_t size = tiles_.panels() * tiles_.panel_size();
    sums_count_ = slices(classes);
    T* sums = wants_input() ? sums_.get<T>(sums_count_ * size) : nullptr;
    if (wants_weight() && problem_.dtype != kComputeDType<T>) {
      slab_.get<T>(classes.count * problem_.features);
    }
    if (wanted_->bias != nullptr && bias_sums_.empty()) {
      bias_sums_.resize(static_cast<size_t>(problem_.classes));
    }
    each_slice(classes, [&](int64_t s, const ClassRange& own) {
      T* own_sums = sums == nullptr ? nullptr : sums + s * size;
      if (own_sums != nullptr) {
        std::fill(own_sums, own_sums + size, T{0});
      }
      each_tile(own, [&](const ClassRange& tile) {
        differentiate_tile(tile, classes.first, first_chunk, own_sums);
      });
    });
    if (wanted_->bias != nullptr && tiles_.first() + tiles_.rows() == problem_.rows) {
      store_bias(classes);
    }
  }

  void differentiate_tile(const ClassRange& classes, int64_t slab_first, bool first_chunk,
                          T* sums) {
    const auto weights = tiles_.weights(classes, &loss_scratch->weights);
    T* tile =
        holds_ ? held(classes.first) : loss_scratch->tile.get<T>(kClassTile * tiles_.stride());
    if (!holds_) {
      tiles_.scores(classes, weights, tile);
      tiles_.engine().probabilities(tile, tiles_.stride(), classes.count, tiles_.wide(),
                                    factors_.logsumexp);
    }
    score_gradients(classes, tile);
    if (wants_weight()) {
      const T beta = first_chunk ? 0 : 1;
      if (problem_.dtype == kComputeDType<T>) {
        const MutableMatrixRef at = offset(wanted_->weight, classes.first, 0);
        tiles_.over_inputs(classes, tile, beta, static_cast<T*>(at.data), at.row_stride);
      } else {
        T* at = slab_.get<T>(0) + (classes.first - slab_first) * problem_.features;
        tiles_.over_inputs(classes, tile, beta, at, problem_.features);
      }
    }
    if (wanted_->bias != nullptr) {
      for (int64_t j = 0; j < classes.count; ++j) {
        T total = first_chunk ? 0 : bias_sums_[static_cast<size_t>(classes.first + j)];
        for (int64_t i = 0; i < tiles_.rows(); ++i) {
          total += tile[j * tiles_.stride() + i];
        }
        bias_sums_[static_cast<size_t>(classes.first + j)] = total;
      }
    }
    if (sums != nullptr) {
      tiles_.over_classes(classes, weights, tile, sums);
    }
  }

  // From probabilities (held scores: exp(score - base)) to gradients of scores.
  void score_gradients(const ClassRange& classes, T* tile) {
    const int64_t wide = tiles_.wide();
    const int64_t stride = tiles_.stride();
    alignas(64) T scale[kChunkRows];
    std::copy(factors_.probability, factors_.probability + wide, scale);
    if (holds_) {
      const T* base = bases(classes.first);
      for (int64_t i = 0; i < tiles_.rows(); ++i) {
        const T origin = base[i] == -std::numeric_limits<T>::infinity() ? 0 : base[i];
        scale[i] *= std::exp(origin - factors_.logsumexp[i]);
      }
    }
    for (int64_t j = 0; j < classes.count; ++j) {
      T* row = tile + j * stride;
      const T weight = soft_ ? tiles_.class_weight(classes.first + j) : T{0};
      for (int64_t i = 0; i < wide; ++i) {
        row[i] = row[i] * scale[i] - weight * factors_.share[i];
      }
    }
    if (tiles_.has_probabilities()) {
      tiles_.each_wanted(classes, [&](int64_t i, int64_t j, T wanted) {
        tile[j * stride + i] -= factors_.loss[i] * wanted;
      });
    } else {
      pick(classes, [&](int64_t i, int64_t j) { tile[j * stride + i] -= factors_.target[i]; });
    }
  }

  // Adds the slices' sums in their order, and turns them into rows.
  void add_input_gradient() {
    if (!wants_input()) {
      return;
    }
    const int64_t cols = tiles_.gemm().cols;
    const int64_t panel = tiles_.panel_size();
    const int64_t size = tiles_.panels() * panel;
    T* sums = sums_.get<T>(0);
    T* out = static_cast<T*>(wanted_->input) + tiles_.first() * problem_.features;
    parallel_for(0, tiles_.panels(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        T* own = sums + p * panel;
        for (int64_t s = 1; s < sums_count_; ++s) {
          const T* other = own + s * size;
          for (int64_t k = 0; k < panel; ++k) {
            own[k] += other[k];
          }
        }
        for (int64_t i = p * cols; i < std::min((p + 1) * cols, tiles_.rows()); ++i) {
          for (int64_t f = 0; f < problem_.features; ++f) {
            out[i * problem_.features + f] += own[f * cols + i - p * cols];
          }
        }
      }
    });
  }

  void store_slab(const ClassRange& classes) {
    const T* sums = slab_.get<T>(0);
    parallel_for(0, classes.count, 64, [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j) {
        const MutableMatrixRef at = offset(wanted_->weight, classes.first + j, 0);
        tiles_.gemm().store_row(problem_.dtype, sums + j * problem_.features, problem_.features,
                                at.data, at.col_stride);
      }
    });
  }

  void store_bias(const ClassRange& classes) {
    auto* at = static_cast<char*>(wanted_->bias) +
               classes.first * wanted_->bias_stride * element_size(problem_.dtype);
    tiles_.gemm().store_row(problem_.dtype, bias_sums_.data() + classes.first, classes.count, at,
                            wanted_->bias_stride);
  }

  const LinearCrossEntropy& problem_;
  ScoreTiles<T> tiles_;
  T* loss_;
  T* logsumexp_;
  const LinearCrossEntropyGradients* wanted_;
  bool holds_;
  T smooth_;
  bool soft_;
  T total_weight_ = 0;
  int64_t chunk_ = 0;
  int64_t slice_ = 0;
  int64_t sums_count_ = 0;
  T* picked_ = nullptr;
  Scratch statistics_;
  Scratch held_;
  Scratch bases_;
  Scratch sums_;
  Scratch slab_;
  std::vector<T> masses_;
  std::vector<T> bias_sums_;
  alignas(64) Factors factors_;
};

}  // namespace rushlight
