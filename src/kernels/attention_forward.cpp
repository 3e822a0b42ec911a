#include <rushlight/error.h>

#include <algorithm>
#include <cmath>

#include "kernels/attention_tile.h"
#include "runtime/parallel.h"

namespace rushlight {
namespace {

struct ForwardScratch {
  Scratch q;
  Scratch k;
  Scratch v;
  Scratch tile;
  Scratch mask;
  Scratch sums;
  Scratch out;
};

thread_local ForwardScratch forward_scratch;

// One tile of queries of one head against all keys.
template <typename T>
class ForwardTask {
 public:
  ForwardTask(const Attention& attention, int64_t batch, int64_t head,
              const AttentionSchedule::Span& queries)
      : attention_(attention),
        tile_(attention),
        batch_(batch),
        head_(head),
        query_(queries.first),
        queries_(queries.count),
        wide_(tile_.width(queries_)) {}

  void run(const AttentionSchedule& schedule, const MutableHeadsRef& out, T* logsumexp,
           T* maximum) {
    const int64_t size = attention_.value_size;
    const T* q = tile_.columns(attention_.q, batch_, head_, query_, queries_, attention_.head_size,
                               &scratch_.q);
    T* sums = scratch_.sums.get<T>(size * wide_);
    std::fill(sums, sums + size * wide_, T{0});
    std::fill(maximum_, maximum_ + wide_, -std::numeric_limits<T>::infinity());
    std::fill(total_, total_ + wide_, T{0});
    const int64_t end = tile_.key_end(query_ + queries_);
    bool first = true;
    schedule.each_keys(batch_, head_, query_, end, [&](int64_t key, int64_t keys, bool partial) {
      add_keys(key, keys, partial, first, q, sums);
      first = false;
    });
    T* inverse = correction_;
    for (int64_t i = 0; i < wide_; ++i) {
      inverse[i] = total_[i] == 0 ? 0 : 1 / total_[i];
    }
    tile_.engine().scale_columns(sums, size, wide_, inverse);
    tile_.store_columns(sums, queries_, size, out, batch_, head_, query_, &scratch_.out);
    if (maximum != nullptr) {
      std::copy(maximum_, maximum_ + queries_, maximum);
    }
    if (logsumexp != nullptr) {
      for (int64_t i = 0; i < queries_; ++i) {
        logsumexp[i] =
            total_[i] == 0 ? std::numeric_limits<T>::infinity() : maximum_[i] + std::log(total_[i]);
      }
    }
  }

 private:
  void add_keys(int64_t key, int64_t keys, bool partial, bool first, const T* q, T* sums) {
    const int64_t kv_head = head_ / (attention_.heads / attention_.kv_heads);
    const int64_t size = attention_.value_size;
    const Rows<T> k = tile_.rows(attention_.k, batch_, kv_head, key, keys, attention_.head_size,
                                 false, &scratch_.k);
    const Rows<T> v =
        tile_.rows(attention_.v, batch_, kv_head, key, keys, size, false, &scratch_.v);
    T* scores = scratch_.tile.get<T>(kKeyTile * wide_);
    tile_.scores(batch_, head_, key, keys, query_, queries_, k, q, scores, &scratch_.mask);
    if (attention_.modifier != nullptr) {
      attention_.modifier->scores({batch_, head_, key, keys, query_, queries_}, partial, scores,
                                  wide_);
    }
    for (int64_t i = 0; i < wide_; i += tile_.panel()) {
      const int64_t count = std::min(tile_.panel(), wide_ - i);
      tile_.engine().softmax_step(scores + i, wide_, tile_.visible(key, keys, query_, i + count),
                                  count, maximum_ + i, total_ + i, correction_ + i);
    }
    if (attention_.keep.data != nullptr) {
      tile_.drop(batch_, head_, key, keys, query_, queries_, scores);
    }
    if (!first) {
      tile_.engine().scale_columns(sums, size, wide_, correction_);
    }
    tile_.over_keys({key, keys, query_, queries_}, size, v, scores, 1, sums);
  }

  const Attention& attention_;
  AttentionTile<T> tile_;
  ForwardScratch& scratch_ = forward_scratch;
  int64_t batch_;
  int64_t head_;
  int64_t query_;
  int64_t queries_;
  int64_t wide_;
  alignas(64) T maximum_[kQueryTile];
  alignas(64) T total_[kQueryTile];
  alignas(64) T correction_[kQueryTile];
};

template <typename T>
void forward(const Attention& attention, const MutableHeadsRef& out, T* logsumexp, T* maximum) {
  const AttentionSchedule schedule(attention);
  const int64_t tiles = schedule.query_tiles();
  // About 10 us of work for a task.
  const int64_t work = std::min(kQueryTile, attention.queries) * attention.keys *
                       (attention.head_size + attention.value_size + 16);
  const int64_t grain = 1 + (1 << 18) / (work + 1);
  parallel_for(
      0, attention.batch * attention.heads * tiles, grain, [&](int64_t first, int64_t last) {
        for (int64_t task = first; task < last; ++task) {
          const int64_t plane = task / tiles;
          const AttentionSchedule::Span queries = schedule.queries(task % tiles);
          if (queries.count == 0) {
            continue;
          }
          const int64_t at = plane * attention.queries + queries.first;
          ForwardTask<T>(attention, plane / attention.heads, plane % attention.heads, queries)
              .run(schedule, out, logsumexp == nullptr ? nullptr : logsumexp + at,
                   maximum == nullptr ? nullptr : maximum + at);
        }
      });
}

}  // namespace

void attention_forward(const Attention& attention, const MutableHeadsRef& out, void* logsumexp,
                       void* maximum) {
  RUSHLIGHT_ASSERT(attention.kv_heads > 0 && attention.heads % attention.kv_heads == 0);
  if (attention.dtype == DType::Float64) {
    forward(attention, out, static_cast<double*>(logsumexp), static_cast<double*>(maximum));
  } else {
    RUSHLIGHT_ASSERT(compute_dtype(attention.dtype) == DType::Float32);
    forward(attention, out, static_cast<float*>(logsumexp), static_cast<float*>(maximum));
  }
}

}  // namespace rushlight
