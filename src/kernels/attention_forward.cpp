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
  ForwardTask(const Attention& attention, int64_t batch, int64_t head, int64_t query)
      : attention_(attention),
        tile_(attention),
        batch_(batch),
        head_(head),
        query_(query),
        queries_(std::min(kQueryTile, attention.queries - query)),
        wide_(tile_.width(queries_)) {}

  void run(const MutableHeadsRef& out, T* logsumexp) {
    const int64_t size = attention_.value_size;
    const T* q = tile_.columns(attention_.q, batch_, head_, query_, queries_, attention_.head_size,
                               &scratch_.q);
    T* sums = scratch_.sums.get<T>(size * wide_);
    std::fill(sums, sums + size * wide_, T{0});
    std::fill(maximum_, maximum_ + wide_, -std::numeric_limits<T>::infinity());
    std::fill(total_, total_ + wide_, T{0});
    const int64_t end = tile_.key_end(query_ + queries_);
    for (int64_t key = 0; key < end; key += kKeyTile) {
      add_keys(key, std::min(kKeyTile, end - key), q, sums);
    }
    T* inverse = correction_;
    for (int64_t i = 0; i < wide_; ++i) {
      inverse[i] = total_[i] == 0 ? 0 : 1 / total_[i];
    }
    tile_.engine().scale_columns(sums, size, wide_, inverse);
    tile_.store_columns(sums, queries_, size, out, batch_, head_, query_, &scratch_.out);
    if (logsumexp != nullptr) {
      for (int64_t i = 0; i < queries_; ++i) {
        logsumexp[i] =
            total_[i] == 0 ? std::numeric_limits<T>::infinity() : maximum_[i] + std::log(total_[i]);
      }
    }
  }

 private:
  void add_keys(int64_t key, int64_t keys, const T* q, T* sums) {
    const int64_t kv_head = head_ / (attention_.heads / attention_.kv_heads);
    const int64_t size = attention_.value_size;
    const Rows<T> k = tile_.rows(attention_.k, batch_, kv_head, key, keys, attention_.head_size,
                                 false, &scratch_.k);
    const Rows<T> v =
        tile_.rows(attention_.v, batch_, kv_head, key, keys, size, false, &scratch_.v);
    T* scores = scratch_.tile.get<T>(kKeyTile * wide_);
    tile_.scores(batch_, head_, key, keys, query_, queries_, k, q, scores, &scratch_.mask);
    for (int64_t i = 0; i < wide_; i += tile_.panel()) {
      const int64_t count = std::min(tile_.panel(), wide_ - i);
      tile_.engine().softmax_step(scores + i, wide_, tile_.visible(key, keys, query_, i + count),
                                  count, maximum_ + i, total_ + i, correction_ + i);
    }
    if (attention_.keep.data != nullptr) {
      tile_.drop(batch_, head_, key, keys, query_, queries_, scores);
    }
    if (key > 0) {
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
void forward(const Attention& attention, const MutableHeadsRef& out, T* logsumexp) {
  const int64_t tiles = (attention.queries + kQueryTile - 1) / kQueryTile;
  // About 10 us of work for a task.
  const int64_t work = std::min(kQueryTile, attention.queries) * attention.keys *
                       (attention.head_size + attention.value_size + 16);
  const int64_t grain = 1 + (1 << 18) / (work + 1);
  parallel_for(
      0, attention.batch * attention.heads * tiles, grain, [&](int64_t first, int64_t last) {
        for (int64_t task = first; task < last; ++task) {
          const int64_t plane = task / tiles;
          const int64_t query = task % tiles * kQueryTile;
          T* sums = logsumexp == nullptr ? nullptr : logsumexp + plane * attention.queries;
          ForwardTask<T>(attention, plane / attention.heads, plane % attention.heads, query)
              .run(out, sums == nullptr ? nullptr : sums + query);
        }
      });
}

}  // namespace

void attention_forward(const Attention& attention, const MutableHeadsRef& out, void* logsumexp) {
  RUSHLIGHT_ASSERT(attention.kv_heads > 0 && attention.heads % attention.kv_heads == 0);
  if (attention.dtype == DType::Float64) {
    forward(attention, out, static_cast<double*>(logsumexp));
  } else {
    RUSHLIGHT_ASSERT(compute_dtype(attention.dtype) == DType::Float32);
    forward(attention, out, static_cast<float*>(logsumexp));
  }
}

}  // namespace rushlight
