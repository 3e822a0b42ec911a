#include "kernels/index.h"

#include <algorithm>
#include <cstring>

#include "kernels/copy.h"
#include "kernels/element.h"
#include "kernels/index_update.h"
#include "runtime/parallel.h"

namespace rushlight::kernels {
namespace {

// A list of dimensions walked by two tensors, folded where both allow it.
struct Walk {
  IntList sizes;
  IntList base;
  IntList dense;

  void fold() {
    size_t kept = 0;
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d] == 1) {
        continue;
      }
      const bool joins = kept > 0 && base[kept - 1] == base[d] * sizes[d] &&
                         dense[kept - 1] == dense[d] * sizes[d];
      const size_t at = joins ? kept - 1 : kept++;
      sizes[at] = joins ? sizes[at] * sizes[d] : sizes[d];
      base[at] = base[d];
      dense[at] = dense[d];
    }
    sizes.resize(kept);
    base.resize(kept);
    dense.resize(kept);
  }
  int64_t count() const {
    int64_t product = 1;
    for (size_t d = 0; d < sizes.size(); ++d) {
      product *= sizes[d];
    }
    return product;
  }
  void place(int64_t at, int64_t* base_offset, int64_t* dense_offset) const {
    for (size_t d = sizes.size(); d-- > 0;) {
      const int64_t position = at % sizes[d];
      at /= sizes[d];
      *base_offset += position * base[d];
      *dense_offset += position * dense[d];
    }
  }
};

// The innermost dimension as a line; all others, outer and inner, as blocks around the index.
struct Plan {
  Walk blocks;
  int64_t line = 1;
  int64_t base_stride = 1;
  int64_t dense_stride = 1;

  explicit Plan(const IndexSpace& space) {
    Walk inner{space.inner_sizes, space.base_inner, space.dense_inner};
    inner.fold();
    if (!inner.sizes.empty()) {
      line = inner.sizes.back();
      base_stride = inner.base.back();
      dense_stride = inner.dense.back();
      inner.sizes.pop_back();
      inner.base.pop_back();
      inner.dense.pop_back();
    }
    blocks = {space.outer_sizes, space.base_outer, space.dense_outer};
    for (size_t d = 0; d < inner.sizes.size(); ++d) {
      blocks.sizes.push_back(inner.sizes[d]);
      blocks.base.push_back(inner.base[d]);
      blocks.dense.push_back(inner.dense[d]);
    }
  }
};

template <typename T>
void read_line(T* to, int64_t to_stride, const T* from, int64_t from_stride, int64_t count) {
  if (to_stride == 1 && from_stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    to[i * to_stride] = from[i * from_stride];
  }
}

template <typename T>
void read_all(T* dense, const T* base, const IndexSpace& space, const Plan& plan) {
  const int64_t blocks = plan.blocks.count();
  const int64_t grain = std::max<int64_t>(1, 16384 / plan.line);
  parallel_for(0, blocks * space.count, grain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t block = begin / space.count;
      const int64_t stop = std::min(end, (block + 1) * space.count);
      int64_t base_offset = 0;
      int64_t dense_offset = 0;
      plan.blocks.place(block, &base_offset, &dense_offset);
      const T* from = base + base_offset;
      T* to = dense + dense_offset;
      const int64_t first = begin - block * space.count;
      const int64_t last = stop - block * space.count;
      if (plan.line == 1) {
        for (int64_t i = first; i < last; ++i) {
          to[i * space.dense_index] = from[space.offsets[i]];
        }
      } else {
        for (int64_t i = first; i < last; ++i) {
          read_line(to + i * space.dense_index, plan.dense_stride, from + space.offsets[i],
                    plan.base_stride, plan.line);
        }
      }
      begin = stop;
    }
  });
}

// Positions of one block and one part of the line, in the order of the index.
template <Update U, typename T, typename G>
void write_part(T* base, const G* dense, const IndexSpace& space, const Plan& plan, int64_t first,
                int64_t last) {
  for (int64_t i = 0; i < space.count; ++i) {
    T* to = base + space.offsets[i];
    const G* from = dense + i * space.dense_index;
    if (plan.base_stride == 1 && plan.dense_stride == 1) {
      for (int64_t k = first; k < last; ++k) {
        to[k] = updated<U>(to[k], from[k]);
      }
    } else {
      for (int64_t k = first; k < last; ++k) {
        T& old = to[k * plan.base_stride];
        old = updated<U>(old, from[k * plan.dense_stride]);
      }
    }
  }
}

// Tasks never share a written element: they differ in the block or in the part of the line.
template <Update U, typename T, typename G>
void write_all(T* base, const G* dense, const IndexSpace& space, const Plan& plan) {
  constexpr int64_t kPart = 64;
  const int64_t blocks = plan.blocks.count();
  const int64_t parts = (plan.line + kPart - 1) / kPart;
  const int64_t work = std::max<int64_t>(1, space.count * std::min(plan.line, kPart));
  parallel_for(0, blocks * parts, std::max<int64_t>(1, 16384 / work),
               [&](int64_t begin, int64_t end) {
                 while (begin < end) {
                   const int64_t block = begin / parts;
                   const int64_t stop = std::min(end, (block + 1) * parts);
                   int64_t base_offset = 0;
                   int64_t dense_offset = 0;
                   plan.blocks.place(block, &base_offset, &dense_offset);
                   write_part<U>(base + base_offset, dense + dense_offset, space, plan,
                                 (begin - block * parts) * kPart,
                                 std::min(plan.line, (stop - block * parts) * kPart));
                   begin = stop;
                 }
               });
}

bool is_empty(const IndexSpace& space) {
  auto has_zero = [](const IntList& sizes) {
    return std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
  };
  return space.count == 0 || has_zero(space.outer_sizes) || has_zero(space.inner_sizes);
}

}  // namespace

void read_indexed(const Tensor& dense, const Tensor& base, const IndexSpace& space) {
  if (is_empty(space)) {
    return;
  }
  const Plan plan(space);
  by_element_size(base.element_size(), [&]<typename T>(T) {
    read_all(static_cast<T*>(dense.data()), static_cast<const T*>(base.data()), space, plan);
  });
}

void write_indexed(const Tensor& base, const Tensor& dense, const IndexSpace& space,
                   Update update) {
  if (is_empty(space)) {
    return;
  }
  const Plan plan(space);
  if (updates_in_float(base, dense, update)) {
    update_in_float(
        base, update,
        [&]<typename G, Update U>(const Tensor& wide, G, std::integral_constant<Update, U>) {
          write_all<U>(static_cast<float*>(wide.data()), static_cast<const G*>(dense.data()), space,
                       plan);
        });
    return;
  }
  by_update_and_type(update, base.dtype(),
                     [&]<typename T, Update U>(T, std::integral_constant<Update, U>) {
                       write_all<U>(static_cast<T*>(base.data()),
                                    static_cast<const T*>(dense.data()), space, plan);
                     });
}

Tensor index_values(const Tensor& index) {
  return as_contiguous(as_dtype(index, DType::Int64));
}

namespace {

[[noreturn]] void fail_bound(int64_t index, const IndexBound& bound) {
  if (bound.embedding_text) {
    fail(bound.kind, bound.op, "index out of range in self: index ", index, " for dimension ",
         bound.dim, " with size ", bound.size);
  }
  fail(bound.kind, bound.op, "index ", index, " is out of bounds for dimension ", bound.dim,
       " with size ", bound.size);
}

}  // namespace

void check_index(const int64_t* index, int64_t count, const IndexBound& bound) {
  const int64_t low = bound.wrap ? -bound.size : 0;
  bool outside = false;
  for (int64_t i = 0; i < count; ++i) {
    outside |= index[i] < low || index[i] >= bound.size;
  }
  if (!outside) {
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    if (index[i] < low || index[i] >= bound.size) {
      fail_bound(index[i], bound);
    }
  }
}

void add_offsets(int64_t* offsets, const int64_t* index, int64_t count, int64_t stride,
                 const IndexBound& bound) {
  check_index(index, count, bound);
  for (int64_t i = 0; i < count; ++i) {
    offsets[i] += (index[i] < 0 ? index[i] + bound.size : index[i]) * stride;
  }
}

}  // namespace rushlight::kernels
