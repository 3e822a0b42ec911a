#include <rushlight/error.h>

#include <algorithm>

#include "kernels/attention_tile.h"
#include "runtime/parallel.h"
#include "runtime/per_thread.h"

namespace rushlight {
namespace {

struct BackwardScratch {
  Scratch k;
  Scratch v;
  Scratch q;
  Scratch q_columns;
  Scratch gradient;
  Scratch gradient_columns;
  Scratch out;
  Scratch probability;
  Scratch dropped;
  Scratch score_gradient;
  Scratch mask;
  Scratch q_sums;
  Scratch k_sums;
  Scratch v_sums;
  Scratch rows;
  Scratch scores;
};

const PerThread<BackwardScratch> backward_scratch;

// Both kinds of task below add up tiles in the same order, so each gradient has the same bits
// whether its tiles are formed once, in one task for a whole head, or twice, in tasks that a short
// batch needs to occupy all threads.
template <typename T>
class BackwardTask {
 public:
  BackwardTask(const Attention& attention, const HeadsRef& out, const T* logsumexp,
               const T* logsumexp_gradient, const HeadsRef& out_gradient,
               const AttentionGradients& gradients, int64_t plane, int64_t sums_group)
      : attention_(attention),
        schedule_(attention),
        tile_(attention),
        out_(out),
        logsumexp_(logsumexp),
        logsumexp_gradient_(logsumexp_gradient),
        out_gradient_(out_gradient),
        gradients_(gradients),
        batch_(plane / attention.kv_heads),
        kv_head_(plane % attention.kv_heads),
        group_(attention.heads / attention.kv_heads),
        sums_group_(sums_group) {}

  // Gradients of all that belongs to the head of k and v.
  void run_all() {
    const int64_t tiles = schedule_.query_tiles();
    const int64_t size = group_ * tiles * sums_size();
    q_sums_ = scratch_.q_sums.get<T>(size);
    std::fill(q_sums_, q_sums_ + size, T{0});
    for (int64_t tile = 0; tile < schedule_.key_tiles(); ++tile) {
      run_keys(tile);
    }
    for (int64_t member = 0; member < group_; ++member) {
      for (int64_t tile = 0; tile < tiles; ++tile) {
        store_queries(member, tile, q_sums_ + (member * tiles + tile) * sums_size());
      }
    }
  }

  // Gradients of k and v for one tile of keys (and sums for q, if `run_all` asks for them).
  void run_keys(int64_t key_tile) {
    const auto [key, keys] = schedule_.keys(key_tile);
    if (keys == 0) {
      return;
    }
    const int64_t k_stride = tile_.round_to_vectors(attention_.head_size);
    const int64_t v_stride = tile_.round_to_vectors(attention_.value_size);
    T* k_sums = scratch_.k_sums.get<T>(keys * k_stride);
    T* v_sums = scratch_.v_sums.get<T>(keys * v_stride);
    std::fill(k_sums, k_sums + keys * k_stride, T{0});
    std::fill(v_sums, v_sums + keys * v_stride, T{0});
    load_keys(key, keys);
    const int64_t tiles = schedule_.query_tiles();
    const int64_t first = tile_.query_start(key) / schedule_.query_tile();
    for (int64_t member = 0; member < group_; ++member) {
      for (int64_t tile = first; tile < tiles; ++tile) {
        const AttentionSchedule::Span queries = schedule_.queries(tile);
        const uint8_t state = schedule_.state(batch_, head(member), queries.first, key);
        if (state == 0 || queries.count == 0) {
          continue;
        }
        load_queries(member, queries, true);
        form_tile(member, key, keys, state == 1);
        const Extent at = {key, keys, query_, queries_};
        tile_.over_queries(at, v_stride, dropped_, gradient_rows_, 1, v_sums);
        tile_.over_queries(at, k_stride, score_gradient_, q_rows_, scale(), k_sums);
        if (q_sums_ != nullptr) {
          add_to_queries(key, keys, q_sums_ + (member * tiles + tile) * sums_size());
        }
      }
    }
    tile_.store(k_sums, k_stride, keys, attention_.head_size, gradients_.k, batch_, kv_head_, key);
    tile_.store(v_sums, v_stride, keys, attention_.value_size, gradients_.v, batch_, kv_head_, key);
  }

  // The gradient of q for one tile of queries.
  void run_queries(int64_t member, int64_t tile) {
    const AttentionSchedule::Span queries = schedule_.queries(tile);
    if (queries.count == 0) {
      return;
    }
    load_queries(member, queries, false);
    T* sums = scratch_.q_sums.get<T>(attention_.head_size * wide_);
    std::fill(sums, sums + attention_.head_size * wide_, T{0});
    const int64_t end = tile_.key_end(query_ + queries_);
    for (int64_t key_tile = 0; key_tile < schedule_.key_tiles(); ++key_tile) {
      const auto [key, keys] = schedule_.keys(key_tile);
      const uint8_t state =
          keys == 0 || key >= end ? uint8_t{0} : schedule_.state(batch_, head(member), query_, key);
      if (state != 0) {
        load_keys(key, keys);
        form_tile(member, key, keys, state == 1);
        add_to_queries(key, keys, sums);
      }
    }
    store_queries(member, tile, sums);
  }

 private:
  T scale() const { return static_cast<T>(attention_.scale); }
  int64_t head(int64_t member) const { return kv_head_ * group_ + member; }
  // Sums for one tile of queries.
  int64_t sums_size() const { return tile_.width(schedule_.query_tile()) * attention_.head_size; }

  void load_keys(int64_t key, int64_t keys) {
    k_ = tile_.rows(attention_.k, batch_, kv_head_, key, keys, attention_.head_size, false,
                    &scratch_.k);
    v_ = tile_.rows(attention_.v, batch_, kv_head_, key, keys, attention_.value_size, false,
                    &scratch_.v);
  }

  void load_queries(int64_t member, const AttentionSchedule::Span& queries, bool with_rows) {
    const int64_t own = head(member);
    const int64_t query = queries.first;
    query_ = query;
    queries_ = queries.count;
    wide_ = tile_.width(queries_);
    q_columns_ = tile_.columns(attention_.q, batch_, own, query, queries_, attention_.head_size,
                               &scratch_.q_columns);
    gradient_columns_ = tile_.columns(out_gradient_, batch_, own, query, queries_,
                                      attention_.value_size, &scratch_.gradient_columns);
    const T* out_columns =
        tile_.columns(out_, batch_, own, query, queries_, attention_.value_size, &scratch_.out);
    std::fill(delta_, delta_ + wide_, T{0});
    for (int64_t e = 0; e < attention_.value_size; ++e) {
      for (int64_t i = 0; i < wide_; ++i) {
        delta_[i] += out_columns[e * wide_ + i] * gradient_columns_[e * wide_ + i];
      }
    }
    const int64_t at = (batch_ * attention_.heads + own) * attention_.queries + query;
    for (int64_t i = 0; i < queries_; ++i) {
      const T sum = logsumexp_[at + i];
      own_logsumexp_[i] = sum == -std::numeric_limits<T>::infinity() ? -sum : sum;
      delta_[i] -= logsumexp_gradient_ == nullptr ? 0 : logsumexp_gradient_[at + i];
    }
    // Columns without a query get probabilities of zero.
    std::fill(own_logsumexp_ + queries_, own_logsumexp_ + wide_,
              std::numeric_limits<T>::infinity());
    if (with_rows) {
      q_rows_ = tile_.rows(attention_.q, batch_, own, query, queries_, attention_.head_size, true,
                           &scratch_.q);
      gradient_rows_ = tile_.rows(out_gradient_, batch_, own, query, queries_,
                                  attention_.value_size, true, &scratch_.gradient);
    }
  }

  // Probabilities and gradients of scores for the tile at `key` of the loaded keys and queries.
  void form_tile(int64_t member, int64_t key, int64_t keys, bool partial) {
    const int64_t own = head(member);
    T* probability = scratch_.probability.get<T>(kKeyTile * wide_);
    T* gradient = scratch_.score_gradient.get<T>(kKeyTile * wide_);
    tile_.scores(batch_, own, key, keys, query_, queries_, k_, q_columns_, probability,
                 &scratch_.mask);
    const T* scores = modify(own, key, keys, partial, probability);
    const Extent at = {key, keys, query_, queries_};
    tile_.by_keys(at, attention_.value_size, v_, gradient_columns_, 1, gradient);
    for (int64_t i = 0; i < wide_; i += tile_.panel()) {
      const int64_t count = std::min(tile_.panel(), wide_ - i);
      tile_.engine().probabilities(probability + i, wide_,
                                   tile_.visible(key, keys, query_, i + count), count,
                                   own_logsumexp_ + i);
    }
    dropped_ = probability;
    if (attention_.keep.data != nullptr) {
      T* dropped = scratch_.dropped.get<T>(kKeyTile * wide_);
      std::copy(probability, probability + keys * wide_, dropped);
      tile_.drop(batch_, own, key, keys, query_, queries_, dropped);
      tile_.drop(batch_, own, key, keys, query_, queries_, gradient);
      dropped_ = dropped;
    }
    for (int64_t i = 0; i < wide_; i += tile_.panel()) {
      const int64_t count = std::min(tile_.panel(), wide_ - i);
      tile_.engine().score_gradient(gradient + i, probability + i, wide_,
                                    tile_.visible(key, keys, query_, i + count), count, delta_ + i);
    }
    score_gradient_ = gradient;
    if (attention_.modifier != nullptr) {
      attention_.modifier->gradients({batch_, own, key, keys, query_, queries_}, partial, scores,
                                     gradient, wide_, sums_group_);
    }
  }

  // Applies the modifier; gives the scores as they were where its gradients read them.
  const T* modify(int64_t own, int64_t key, int64_t keys, bool partial, T* tile) {
    if (attention_.modifier == nullptr) {
      return nullptr;
    }
    T* kept = nullptr;
    if (attention_.modifier->reads_scores()) {
      kept = scratch_.scores.get<T>(kKeyTile * wide_);
      std::copy(tile, tile + keys * wide_, kept);
    }
    attention_.modifier->scores({batch_, own, key, keys, query_, queries_}, partial, tile, wide_);
    return kept;
  }

  void add_to_queries(int64_t key, int64_t keys, T* sums) {
    tile_.over_keys({key, keys, query_, queries_}, attention_.head_size, k_, score_gradient_,
                    scale(), sums);
  }

  void store_queries(int64_t member, int64_t tile, const T* sums) {
    const auto [query, queries] = schedule_.queries(tile);
    if (queries != 0) {
      tile_.store_columns(sums, queries, attention_.head_size, gradients_.q, batch_, head(member),
                          query, &scratch_.rows);
    }
  }

  const Attention& attention_;
  AttentionSchedule schedule_;
  AttentionTile<T> tile_;
  BackwardScratch& scratch_ = *backward_scratch;
  const HeadsRef& out_;
  const T* logsumexp_;
  const T* logsumexp_gradient_;
  const HeadsRef& out_gradient_;
  const AttentionGradients& gradients_;
  int64_t batch_;
  int64_t kv_head_;
  int64_t group_;
  int64_t sums_group_;
  T* q_sums_ = nullptr;
  Rows<T> k_ = {};
  Rows<T> v_ = {};
  Rows<T> q_rows_ = {};
  Rows<T> gradient_rows_ = {};
  const T* q_columns_ = nullptr;
  const T* gradient_columns_ = nullptr;
  const T* dropped_ = nullptr;
  const T* score_gradient_ = nullptr;
  int64_t query_ = 0;
  int64_t queries_ = 0;
  int64_t wide_ = 0;
  alignas(64) T delta_[kQueryTile];
  alignas(64) T own_logsumexp_[kQueryTile];
};

template <typename T>
void backward(const Attention& attention, const HeadsRef& out, const T* logsumexp,
              const T* logsumexp_gradient, const HeadsRef& out_gradient,
              const AttentionGradients& gradients) {
  const int64_t planes = attention.batch * attention.kv_heads;
  const auto task = [&](int64_t plane, int64_t sums_group = 0) {
    return BackwardTask<T>(attention, out, logsumexp, logsumexp_gradient, out_gradient, gradients,
                           plane, sums_group);
  };
  const int64_t groups = attention.modifier == nullptr ? 0 : attention.modifier->groups();
  if (groups > 0) {
    parallel_for(0, groups, 1, [&](int64_t first, int64_t last) {
      for (int64_t group = first; group < last; ++group) {
        for (int64_t plane = group; plane < planes; plane += groups) {
          task(plane, group).run_all();
        }
      }
    });
    return;
  }
  const AttentionSchedule schedule(attention);
  const int64_t key_tiles = schedule.key_tiles();
  const int64_t query_tiles = schedule.query_tiles();
  const int64_t group = attention.heads / attention.kv_heads;
  const bool enough = planes >= 2 * num_threads() || query_tiles * group + key_tiles <= 2;
  if (num_threads() == 1 || enough) {
    const int64_t work = group * attention.queries * attention.keys *
                         (3 * attention.head_size + 2 * attention.value_size + 16);
    parallel_for(0, planes, 1 + (1 << 18) / (work + 1), [&](int64_t first, int64_t last) {
      for (int64_t plane = first; plane < last; ++plane) {
        task(plane).run_all();
      }
    });
    return;
  }
  parallel_for(0, planes * key_tiles, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      task(i / key_tiles).run_keys(i % key_tiles);
    }
  });
  const int64_t per_plane = group * query_tiles;
  parallel_for(0, planes * per_plane, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t inside = i % per_plane;
      task(i / per_plane).run_queries(inside / query_tiles, inside % query_tiles);
    }
  });
}

}  // namespace

void attention_backward(const Attention& attention, const HeadsRef& out, const void* logsumexp,
                        const HeadsRef& out_gradient, const AttentionGradients& gradients,
                        const void* logsumexp_gradient) {
  RUSHLIGHT_ASSERT(attention.kv_heads > 0 && attention.heads % attention.kv_heads == 0);
  if (attention.dtype == DType::Float64) {
    backward(attention, out, static_cast<const double*>(logsumexp),
             static_cast<const double*>(logsumexp_gradient), out_gradient, gradients);
  } else {
    RUSHLIGHT_ASSERT(compute_dtype(attention.dtype) == DType::Float32);
    backward(attention, out, static_cast<const float*>(logsumexp),
             static_cast<const float*>(logsumexp_gradient), out_gradient, gradients);
  }
}

}  // namespace rushlight
