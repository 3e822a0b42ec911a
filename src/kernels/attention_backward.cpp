#include <rushlight/error.h>

#include <algorithm>

#include "kernels/attention_tile.h"
#include "runtime/parallel.h"

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
};

thread_local BackwardScratch backward_scratch;

// Both kinds of task below add up tiles in the same order, so each gradient has the same bits
// whether its tiles are formed once, in one task for a whole head, or twice, in tasks that a short
// batch needs to occupy all threads.
template <typename T>
class BackwardTask {
 public:
  BackwardTask(const Attention& attention, const HeadsRef& out, const T* logsumexp,
               const HeadsRef& out_gradient, const AttentionGradients& gradients, int64_t batch,
               int64_t kv_head)
      : attention_(attention),
        tile_(attention),
        out_(out),
        logsumexp_(logsumexp),
        out_gradient_(out_gradient),
        gradients_(gradients),
        batch_(batch),
        kv_head_(kv_head),
        group_(attention.heads / attention.kv_heads) {}

  // Gradients of all that belongs to the head of k and v.
  void run_all() {
    const int64_t plane = round_queries() * attention_.head_size;
    q_sums_ = scratch_.q_sums.get<T>(group_ * plane);
    std::fill(q_sums_, q_sums_ + group_ * plane, T{0});
    for (int64_t key = 0; key < attention_.keys; key += kKeyTile) {
      run_keys(key);
    }
    for (int64_t member = 0; member < group_; ++member) {
      for (int64_t query = 0; query < attention_.queries; query += kQueryTile) {
        store_queries(member, query, q_sums_ + member * plane + query * attention_.head_size);
      }
    }
  }

  // Gradients of k and v for one tile of keys (and sums for q, if `run_all` asks for them).
  void run_keys(int64_t key) {
    const int64_t keys = std::min(kKeyTile, attention_.keys - key);
    const int64_t k_stride = tile_.round_to_vectors(attention_.head_size);
    const int64_t v_stride = tile_.round_to_vectors(attention_.value_size);
    T* k_sums = scratch_.k_sums.get<T>(keys * k_stride);
    T* v_sums = scratch_.v_sums.get<T>(keys * v_stride);
    std::fill(k_sums, k_sums + keys * k_stride, T{0});
    std::fill(v_sums, v_sums + keys * v_stride, T{0});
    load_keys(key, keys);
    const int64_t first = tile_.query_start(key) / kQueryTile * kQueryTile;
    for (int64_t member = 0; member < group_; ++member) {
      for (int64_t query = first; query < attention_.queries; query += kQueryTile) {
        load_queries(member, query, true);
        form_tile(member, key, keys);
        const Extent at = {key, keys, query_, queries_};
        tile_.over_queries(at, v_stride, dropped_, gradient_rows_, 1, v_sums);
        tile_.over_queries(at, k_stride, score_gradient_, q_rows_, scale(), k_sums);
        if (q_sums_ != nullptr) {
          T* sums = q_sums_ + (member * round_queries() + query) * attention_.head_size;
          add_to_queries(key, keys, sums);
        }
      }
    }
    tile_.store(k_sums, k_stride, keys, attention_.head_size, gradients_.k, batch_, kv_head_, key);
    tile_.store(v_sums, v_stride, keys, attention_.value_size, gradients_.v, batch_, kv_head_, key);
  }

  // The gradient of q for one tile of queries.
  void run_queries(int64_t member, int64_t query) {
    load_queries(member, query, false);
    T* sums = scratch_.q_sums.get<T>(attention_.head_size * wide_);
    std::fill(sums, sums + attention_.head_size * wide_, T{0});
    const int64_t end = tile_.key_end(query + queries_);
    for (int64_t key = 0; key < end; key += kKeyTile) {
      const int64_t keys = std::min(kKeyTile, attention_.keys - key);
      load_keys(key, keys);
      form_tile(member, key, keys);
      add_to_queries(key, keys, sums);
    }
    store_queries(member, query, sums);
  }

 private:
  T scale() const { return static_cast<T>(attention_.scale); }
  int64_t head(int64_t member) const { return kv_head_ * group_ + member; }
  int64_t round_queries() const {
    return (attention_.queries + kQueryTile - 1) / kQueryTile * kQueryTile;
  }

  void load_keys(int64_t key, int64_t keys) {
    k_ = tile_.rows(attention_.k, batch_, kv_head_, key, keys, attention_.head_size, false,
                    &scratch_.k);
    v_ = tile_.rows(attention_.v, batch_, kv_head_, key, keys, attention_.value_size, false,
                    &scratch_.v);
  }

  void load_queries(int64_t member, int64_t query, bool with_rows) {
    const int64_t own = head(member);
    query_ = query;
    queries_ = std::min(kQueryTile, attention_.queries - query);
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
    const T* sums = logsumexp_ + (batch_ * attention_.heads + own) * attention_.queries + query;
    std::copy(sums, sums + queries_, own_logsumexp_);
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
  void form_tile(int64_t member, int64_t key, int64_t keys) {
    const int64_t own = head(member);
    T* probability = scratch_.probability.get<T>(kKeyTile * wide_);
    T* gradient = scratch_.score_gradient.get<T>(kKeyTile * wide_);
    tile_.scores(batch_, own, key, keys, query_, queries_, k_, q_columns_, probability,
                 &scratch_.mask);
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
  }

  void add_to_queries(int64_t key, int64_t keys, T* sums) {
    tile_.over_keys({key, keys, query_, queries_}, attention_.head_size, k_, score_gradient_,
                    scale(), sums);
  }

  void store_queries(int64_t member, int64_t query, const T* sums) {
    const int64_t queries = std::min(kQueryTile, attention_.queries - query);
    tile_.store_columns(sums, queries, attention_.head_size, gradients_.q, batch_, head(member),
                        query, &scratch_.rows);
  }

  const Attention& attention_;
  AttentionTile<T> tile_;
  BackwardScratch& scratch_ = backward_scratch;
  const HeadsRef& out_;
  const T* logsumexp_;
  const HeadsRef& out_gradient_;
  const AttentionGradients& gradients_;
  int64_t batch_;
  int64_t kv_head_;
  int64_t group_;
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
              const HeadsRef& out_gradient, const AttentionGradients& gradients) {
  const int64_t planes = attention.batch * attention.kv_heads;
  const auto task = [&](int64_t plane) {
    return BackwardTask<T>(attention, out, logsumexp, out_gradient, gradients,
                           plane / attention.kv_heads, plane % attention.kv_heads);
  };
  const int64_t key_tiles = (attention.keys + kKeyTile - 1) / kKeyTile;
  const int64_t query_tiles = (attention.queries + kQueryTile - 1) / kQueryTile;
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
      task(i / key_tiles).run_keys(i % key_tiles * kKeyTile);
    }
  });
  const int64_t per_plane = group * query_tiles;
  parallel_for(0, planes * per_plane, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t inside = i % per_plane;
      task(i / per_plane).run_queries(inside / query_tiles, inside % query_tiles * kQueryTile);
    }
  });
}

}  // namespace

void attention_backward(const Attention& attention, const HeadsRef& out, const void* logsumexp,
                        const HeadsRef& out_gradient, const AttentionGradients& gradients) {
  RUSHLIGHT_ASSERT(attention.kv_heads > 0 && attention.heads % attention.kv_heads == 0);
  if (attention.dtype == DType::Float64) {
    backward(attention, out, static_cast<const double*>(logsumexp), out_gradient, gradients);
  } else {
    RUSHLIGHT_ASSERT(compute_dtype(attention.dtype) == DType::Float32);
    backward(attention, out, static_cast<const float*>(logsumexp), out_gradient, gradients);
  }
}

}  // namespace rushlight
