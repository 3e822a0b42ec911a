#include "kernels/index.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

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

// Few single elements of each of many blocks: those of a run of blocks are read without finding
// each block's place.
template <typename T>
void read_few(T* dense, const T* base, const IndexSpace& space, const Walk& blocks) {
  const int64_t run = blocks.sizes.back();
  const int64_t base_step = blocks.base.back();
  const int64_t dense_step = blocks.dense.back();
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(space.count, 1));
  parallel_for(0, blocks.count(), grain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      int64_t base_offset = 0;
      int64_t dense_offset = 0;
      blocks.place(begin, &base_offset, &dense_offset);
      const T* from = base + base_offset;
      T* to = dense + dense_offset;
      const int64_t stop = std::min(end, (begin / run + 1) * run);
      for (; begin < stop; ++begin) {
        for (int64_t i = 0; i < space.count; ++i) {
          to[i * space.dense_index] = from[space.offsets[i]];
        }
        from += base_step;
        to += dense_step;
      }
    }
  });
}

template <typename T>
void read_all(T* dense, const T* base, const IndexSpace& space, const Plan& plan) {
  constexpr int64_t kFew = 32;
  const int64_t blocks = plan.blocks.count();
  if (plan.line == 1 && space.count <= kFew && !plan.blocks.sizes.empty()) {
    return read_few(dense, base, space, plan.blocks);
  }
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
        const int64_t* offsets = space.offsets;
        const int64_t step = space.dense_index;
        for (int64_t i = first; i < last; ++i) {
          to[i * step] = from[offsets[i]];
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

template <Update U, typename T, typename G>
void write_line(T* __restrict to, int64_t to_stride, const G* __restrict given,
                int64_t given_stride, int64_t count) {
  if (to_stride == 1 && given_stride == 1) {
    if constexpr (U == Update::Set) {
      std::memcpy(to, given, static_cast<size_t>(count) * sizeof(T));
    } else {
      for (int64_t k = 0; k < count; ++k) {
        to[k] = updated<U>(to[k], given[k]);
      }
    }
    return;
  }
  if (to_stride == 1 && given_stride == 0 && U == Update::Set) {
    std::fill_n(to, count, updated<U>(*to, *given));
    return;
  }
  for (int64_t k = 0; k < count; ++k) {
    T& old = to[k * to_stride];
    old = updated<U>(old, given[k * given_stride]);
  }
}

// Positions of one block and one part of the line, in the order of the index.
template <Update U, typename T, typename G>
void write_part(T* base, const G* dense, const IndexSpace& space, const Plan& plan, int64_t first,
                int64_t last) {
  base += first * plan.base_stride;
  dense += first * plan.dense_stride;
  const int64_t* offsets = space.offsets;
  const int64_t step = space.dense_index;
  if (last - first == 1) {
    for (int64_t i = 0; i < space.count; ++i) {
      base[offsets[i]] = updated<U>(base[offsets[i]], dense[i * step]);
    }
    return;
  }
  for (int64_t i = 0; i < space.count; ++i) {
    write_line<U>(base + offsets[i], plan.base_stride, dense + i * step, plan.dense_stride,
                  last - first);
  }
}

// Offsets cut into ranges, from one bound to the next, that about as many positions lie in.
std::vector<int64_t> even_ranges(const IndexSpace& space, int64_t ranges) {
  constexpr int64_t kSteps = 256;
  const auto [least, greatest] = std::minmax_element(space.offsets, space.offsets + space.count);
  const int64_t step = (*greatest - *least) / kSteps + 1;
  std::array<int64_t, kSteps> counts{};
  for (int64_t i = 0; i < space.count; ++i) {
    ++counts[static_cast<size_t>((space.offsets[i] - *least) / step)];
  }
  std::vector<int64_t> bounds{*least};
  int64_t before = 0;
  for (int64_t s = 0; s < kSteps; ++s) {
    before += counts[static_cast<size_t>(s)];
    const auto made = static_cast<int64_t>(bounds.size());
    if (before * ranges >= space.count * made) {
      bounds.push_back(*least + (s + 1) * step);
    }
  }
  return bounds;
}

// A few long lines at many positions: each thread writes the lines of a range of the memory, for
// threads that share lines fetch each other's parts of them. False where the positions lie too
// close together to be divided, or there is enough else to divide.
template <Update U, typename T, typename G>
bool write_ranges(T* base, const G* dense, const IndexSpace& space, const Plan& plan) {
  constexpr int64_t kLongLine = 64;
  const int64_t threads = num_threads();
  if (threads == 1 || plan.blocks.count() != 1 || plan.line < kLongLine || space.count < threads ||
      space.count * plan.line < 32768) {
    return false;
  }
  const std::vector<int64_t> bounds = even_ranges(space, threads);
  const auto ranges = static_cast<int64_t>(bounds.size()) - 1;
  if (ranges < threads) {
    return false;
  }
  parallel_for(0, ranges, 1, [&](int64_t begin, int64_t end) {
    const int64_t from = bounds[static_cast<size_t>(begin)];
    const int64_t to = bounds[static_cast<size_t>(end)];
    for (int64_t i = 0; i < space.count; ++i) {
      if (space.offsets[i] >= from && space.offsets[i] < to) {
        write_line<U>(base + space.offsets[i], plan.base_stride, dense + i * space.dense_index,
                      plan.dense_stride, plan.line);
      }
    }
  });
  return true;
}

// Tasks never share a written element: they differ in the position, in the block or in the part of
// the line.
template <Update U, typename T, typename G>
void write_all(T* base, const G* dense, const IndexSpace& space, const Plan& plan) {
  if (write_ranges<U>(base, dense, space, plan)) {
    return;
  }
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
  switch (bound.text) {
    case IndexText::Embedding:
      fail(bound.kind, bound.op, "index out of range in self: index ", index, " for dimension ",
           bound.dim, " with size ", bound.size);
    case IndexText::Flat:
      fail(bound.kind, bound.op, "out of range: tried to access index ", index, " on a tensor of ",
           bound.size, " elements.");
    case IndexText::Dimension:
      break;
  }
  fail(bound.kind, bound.op, "index ", index, " is out of bounds for dimension ", bound.dim,
       " with size ", bound.size);
}

// The indices of a bound: what is outside, also where the differences wrap around, has the sign bit
// set. A copy of its own, which loops keep in registers.
struct Inside {
  uint64_t shift;
  uint64_t last;

  explicit Inside(const IndexBound& bound)
      : shift(bound.wrap ? static_cast<uint64_t>(bound.size) : 0),
        last(static_cast<uint64_t>(bound.size) - 1) {}
  uint64_t outside(int64_t index) const {
    const auto at = static_cast<uint64_t>(index);
    return (at + shift) | (last - at);
  }
};

int64_t from_the_start(int64_t index, int64_t size) {
  return index < 0 ? index + size : index;
}

}  // namespace

void check_index(const int64_t* index, int64_t count, const IndexBound& bound) {
  parallel_for(0, count, 65536, [&](int64_t begin, int64_t end) {
    const Inside inside(bound);
    uint64_t signs = 0;
    for (int64_t i = begin; i < end; ++i) {
      signs |= inside.outside(index[i]);
    }
    if (signs >> 63 == 0) {
      return;
    }
    for (int64_t i = begin; i < end; ++i) {
      if (inside.outside(index[i]) >> 63 != 0) {
        fail_bound(index[i], bound);
      }
    }
  });
}

void add_offsets(int64_t* offsets, const int64_t* index, int64_t count, int64_t stride,
                 const IndexBound& bound) {
  check_index(index, count, bound);
  for (int64_t i = 0; i < count; ++i) {
    offsets[i] += from_the_start(index[i], bound.size) * stride;
  }
}

void read_flat(const Tensor& out, const Tensor& base, const Tensor& index,
               const IndexBound& bound) {
  const auto* positions = index.data_ptr<int64_t>();
  const int64_t size = bound.size;
  by_element_size(base.element_size(), [&]<typename T>(T) {
    const T* from = static_cast<const T*>(base.data());
    T* to = static_cast<T*>(out.data());
    parallel_for(0, index.numel(), 16384, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = positions[i];
        if (at < -size || at >= size) {
          fail_bound(at, bound);
        }
        to[i] = from[from_the_start(at, size)];
      }
    });
  });
}

}  // namespace rushlight::kernels
