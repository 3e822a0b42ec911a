#include <rushlight/error.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "kernels/attention_products.h"
#include "runtime/parallel.h"
#include "runtime/per_thread.h"

namespace rushlight {
namespace {

struct ForwardScratch {
  Scratch tile;
  Scratch mask;
  Scratch sums;
  Scratch out;
};

const PerThread<ForwardScratch> forward_scratch;

// One tile of queries of one head against all keys. It is cut into panels of as many queries as the
// matrix engine takes columns, so that the scores of a panel stay in the first-level cache from one
// product to the other, and keys and values in the second-level cache from panel to panel.
template <typename T, typename Products>
class ForwardTask {
 public:
  ForwardTask(const Attention& attention, uint64_t call, int64_t batch, int64_t head,
              const AttentionSchedule::Span& queries)
      : attention_(attention),
        tile_(attention),
        batch_(batch),
        head_(head),
        query_(queries.first),
        queries_(queries.count),
        wide_(tile_.width(queries_)),
        products_(attention, tile_,
                  {call, batch, head, head / (attention.heads / attention.kv_heads), queries.first,
                   queries.count}) {}

  void run(const AttentionSchedule& schedule, const MutableHeadsRef& out, T* logsumexp,
           T* maximum) {
    products_.load_queries();
    const int64_t size = attention_.value_size;
    sums_ = scratch_.sums.get<T>(size * wide_);
    std::fill(sums_, sums_ + size * wide_, T{0});
    std::fill(maximum_, maximum_ + wide_, -std::numeric_limits<T>::infinity());
    std::fill(total_, total_ + wide_, T{0});
    const int64_t end = tile_.key_end(query_ + queries_);
    schedule.each_keys(batch_, head_, query_, end, [&](int64_t key, int64_t keys, bool partial) {
      add_keys(key, keys, partial);
      first_ = false;
    });
    store(out);
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
  int64_t panel_width(int64_t i) const { return std::min(tile_.panel(), wide_ - i); }
  int64_t panel_queries(int64_t i) const { return std::min(tile_.panel(), queries_ - i); }

  void add_keys(int64_t key, int64_t keys, bool partial) {
    products_.load_keys(key, keys);
    for (int64_t i = 0; i < queries_; i += tile_.panel()) {
      const int64_t seen = tile_.visible(key, keys, query_, i + panel_width(i));
      if (seen > 0) {
        add_to_panel(i, {key, seen, query_ + i, panel_queries(i)}, partial);
      }
    }
  }

  void add_to_panel(int64_t i, const Extent& at, bool partial) {
    const int64_t wide = panel_width(i);
    const int64_t size = attention_.value_size;
    T* scores = scratch_.tile.get<T>(kForwardKeys * tile_.panel());
    T* sums = sums_ + size * i;
    products_.scores(i, wide, at.keys, scores);
    tile_.hide(at, batch_, head_, scores, &scratch_.mask);
    if (attention_.modifier != nullptr) {
      attention_.modifier->scores({batch_, head_, at.key, at.keys, at.query, at.queries}, partial,
                                  scores, wide);
    }
    tile_.engine().softmax_step(scores, wide, at.keys, wide, maximum_ + i, total_ + i,
                                correction_ + i, products_.ahead(i / tile_.panel()));
    if (attention_.keep.data != nullptr) {
      tile_.drop(batch_, head_, at.key, at.keys, at.query, at.queries, scores);
    }
    if (!first_) {
      tile_.engine().scale_columns(sums, size, wide, correction_ + i);
    }
    products_.add_values(wide, at.keys, scores, sums);
  }

  void store(const MutableHeadsRef& out) {
    const int64_t size = attention_.value_size;
    for (int64_t i = 0; i < wide_; ++i) {
      correction_[i] = total_[i] == 0 ? 0 : 1 / total_[i];
    }
    for (int64_t i = 0; i < queries_; i += tile_.panel()) {
      T* sums = sums_ + size * i;
      tile_.engine().scale_columns(sums, size, panel_width(i), correction_ + i);
      tile_.store_columns(sums, panel_queries(i), size, out, batch_, head_, query_ + i,
                          &scratch_.out);
    }
  }

  const Attention& attention_;
  AttentionTile<T> tile_;
  ForwardScratch& scratch_ = *forward_scratch;
  int64_t batch_;
  int64_t head_;
  int64_t query_;
  int64_t queries_;
  int64_t wide_;
  Products products_;
  T* sums_ = nullptr;
  bool first_ = true;  // no sums yet
  alignas(64) T maximum_[kForwardQueries];
  alignas(64) T total_[kForwardQueries];
  alignas(64) T correction_[kForwardQueries];
};

template <typename T, typename Products>
void forward(const Attention& attention, const MutableHeadsRef& out, T* logsumexp, T* maximum) {
  static std::atomic<uint64_t> calls = 0;
  const uint64_t call = calls.fetch_add(1, std::memory_order_relaxed) + 1;
  // Large tasks read less memory, small ones are enough for all threads.
  const int64_t planes = attention.batch * attention.heads;
  const bool large = planes * (attention.queries / kForwardQueries) >= 4 * num_threads();
  const AttentionSchedule schedule(attention, large ? kForwardQueries : kQueryTile);
  const int64_t tiles = schedule.query_tiles();
  // About 10 us of work for a task.
  const int64_t work = std::min(schedule.query_tile(), attention.queries) * attention.keys *
                       (attention.head_size + attention.value_size + 16);
  const int64_t grain = 1 + (1 << 18) / (work + 1);
  parallel_for(0, planes * tiles, grain, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const int64_t plane = task / tiles;
      const AttentionSchedule::Span queries = schedule.queries(task % tiles);
      if (queries.count == 0) {
        continue;
      }
      const int64_t at = plane * attention.queries + queries.first;
      ForwardTask<T, Products>(attention, call, plane / attention.heads, plane % attention.heads,
                               queries)
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
    forward<double, ChainProducts<double>>(attention, out, static_cast<double*>(logsumexp),
                                           static_cast<double*>(maximum));
    return;
  }
  RUSHLIGHT_ASSERT(compute_dtype(attention.dtype) == DType::Float32);
  auto* sums = static_cast<float*>(logsumexp);
  auto* largest = static_cast<float*>(maximum);
  if (TileProducts::take(attention)) {
    forward<float, TileProducts>(attention, out, sums, largest);
  } else {
    forward<float, ChainProducts<float>>(attention, out, sums, largest);
  }
}

}  // namespace rushlight
