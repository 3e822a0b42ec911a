#include "kernels/scatter.h"

#include <algorithm>

#include "kernels/element.h"
#include "kernels/index_update.h"
#include "runtime/parallel.h"

namespace rushlight::kernels {
namespace {

// Strides of the three tensors along one dimension.
struct Steps {
  int64_t base;
  int64_t dense;
  int64_t index;
};

// The shape of the index, as lines along the last dimension. Lines that differ only in their
// position along `dim` belong to one group, which one thread walks in order.
struct Space {
  int64_t groups = 1;
  int64_t along = 1;  // size of `dim` where it is not the last dimension
  int64_t line = 1;
  bool last = true;  // whether `dim` is the last dimension
  Steps dim_steps{};
  Steps line_steps{};
  IntList sizes;
  std::vector<Steps> steps;

  Space(const Tensor& base, const Tensor& dense, const Tensor& index, int64_t dim) {
    const int64_t inner = index.dim() - 1;
    last = dim == inner;
    for (int64_t d = 0; d < index.dim(); ++d) {
      const Steps step{base.stride(d), dense.stride(d), index.stride(d)};
      if (d == inner) {
        line = index.size(d);
        line_steps = step;
      }
      if (d == dim) {
        dim_steps = step;
        along = last ? 1 : index.size(d);
      }
      if (d != inner && d != dim) {
        groups *= index.size(d);
        sizes.push_back(index.size(d));
        steps.push_back(step);
      }
    }
  }
  Steps place(int64_t group) const {
    Steps at{0, 0, 0};
    for (size_t d = sizes.size(); d-- > 0;) {
      const int64_t position = group % sizes[d];
      group /= sizes[d];
      at.base += position * steps[d].base;
      at.dense += position * steps[d].dense;
      at.index += position * steps[d].index;
    }
    return at;
  }
};

// One line of elements; base[index * dim] is that of the first. A function of its own, for where it
// is part of a larger one its loop keeps the steps in memory.
template <typename B, typename T, typename Visit>
[[gnu::noinline]] void walk_line(B* base, T* dense, const int64_t* index, int64_t count,
                                 int64_t dim, const Steps& steps, const Visit& visit) {
  const Steps step = steps;
  if (step.dense == 1 && step.index == 1 && step.base == 0 && dim == 1) {
    for (int64_t i = 0; i < count; ++i) {
      visit(base[index[i]], dense[i]);
    }
    return;
  }
  if (step.dense == 1 && step.index == 1) {
    for (int64_t i = 0; i < count; ++i, base += step.base) {
      visit(base[index[i] * dim], dense[i]);
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    visit(base[*index * dim], *dense);
    base += step.base;
    dense += step.dense;
    index += step.index;
  }
}

// Calls visit(base element, dense element) for a group and a part of its lines.
template <typename B, typename T, typename Visit>
void walk(const Space& space, B* base, T* dense, const int64_t* index, int64_t group, int64_t first,
          int64_t end, const Visit& visit) {
  const Steps at = space.place(group);
  Steps line = space.line_steps;
  Steps next = space.dim_steps;
  if (space.last) {
    line.base = 0;
    next = {0, 0, 0};
  }
  for (int64_t d = 0; d < space.along; ++d) {
    walk_line(base + at.base + first * line.base,
              dense + at.dense + d * next.dense + first * line.dense,
              index + at.index + d * next.index + first * line.index, end - first,
              space.dim_steps.base, line, visit);
  }
}

constexpr int64_t kShort = 64;

// The same for groups [begin, end), each of which is one short line along `dim`.
template <typename B, typename T, typename Visit>
void walk_short(const Space& space, B* base, T* dense, const int64_t* index, int64_t begin,
                int64_t end, const Visit& visit) {
  const int64_t count = space.line;
  const int64_t dim = space.dim_steps.base;
  const int64_t dense_step = space.line_steps.dense;
  const int64_t index_step = space.line_steps.index;
  const bool adjacent = dim == 1 && dense_step == 1 && index_step == 1;
  const Steps next = space.steps.empty() ? Steps{} : space.steps.back();
  const int64_t row = space.sizes.empty() ? 1 : space.sizes.back();
  while (begin < end) {
    const Steps at = space.place(begin);
    const int64_t stop = std::min(end, (begin / row + 1) * row);
    B* to = base + at.base;
    T* from = dense + at.dense;
    const int64_t* where = index + at.index;
    for (; begin < stop; ++begin) {
      if (adjacent) {
        for (int64_t i = 0; i < count; ++i) {
          visit(to[where[i]], from[i]);
        }
      } else {
        for (int64_t i = 0; i < count; ++i) {
          visit(to[where[i * index_step] * dim], from[i * dense_step]);
        }
      }
      to += next.base;
      from += next.dense;
      where += next.index;
    }
  }
}

// Calls `body` with the ranges of groups that threads take.
template <typename Body>
void for_groups(const Space& space, Body&& body) {
  parallel_for(0, space.groups, std::max<int64_t>(1, 16384 / space.line), body);
}

// Splits groups among threads, and within a group the lines where they do not meet.
template <typename Body>
void for_parts(const Space& space, bool may_split_line, Body&& body) {
  constexpr int64_t kPart = 256;
  const int64_t parts = may_split_line ? (space.line + kPart - 1) / kPart : 1;
  const int64_t part = may_split_line ? kPart : space.line;
  const int64_t work = std::max<int64_t>(1, space.along * std::min(space.line, part));
  parallel_for(0, space.groups * parts, std::max<int64_t>(1, 16384 / work),
               [&](int64_t begin, int64_t end) {
                 for (int64_t task = begin; task < end; ++task) {
                   const int64_t first = task % parts * part;
                   body(task / parts, first, std::min(space.line, first + part));
                 }
               });
}

}  // namespace

void gather_along(const Tensor& out, const Tensor& base, int64_t dim, const Tensor& index) {
  if (index.numel() == 0) {
    return;
  }
  const Space space(base, out, index, dim);
  const auto* indices = index.data_ptr<int64_t>();
  by_element_size(base.element_size(), [&]<typename T>(T) {
    const auto copy = [](T& from, T& to) { to = from; };
    if (space.last && space.line <= kShort) {
      return for_groups(space, [&](int64_t begin, int64_t end) {
        walk_short(space, static_cast<T*>(base.data()), static_cast<T*>(out.data()), indices, begin,
                   end, copy);
      });
    }
    for_parts(space, true, [&](int64_t group, int64_t first, int64_t end) {
      walk(space, static_cast<T*>(base.data()), static_cast<T*>(out.data()), indices, group, first,
           end, copy);
    });
  });
}

void scatter_along(const Tensor& base, int64_t dim, const Tensor& index, const Tensor& source,
                   Update update) {
  if (index.numel() == 0) {
    return;
  }
  const Space space(base, source, index, dim);
  const auto* indices = index.data_ptr<int64_t>();
  const auto write = [&]<typename B, typename T, Update U>(B* to, T* from,
                                                           std::integral_constant<Update, U>) {
    const auto change = [](B& old, T& given) { old = updated<U>(old, given); };
    if (space.last && space.line <= kShort) {
      return for_groups(space, [&](int64_t begin, int64_t end) {
        walk_short(space, to, from, indices, begin, end, change);
      });
    }
    for_parts(space, !space.last, [&](int64_t group, int64_t first, int64_t end) {
      walk(space, to, from, indices, group, first, end, change);
    });
  };
  if (updates_in_float(base, index, update)) {
    update_in_float(base, update, [&]<typename T>(const Tensor& wide, T, auto kind) {
      write(static_cast<float*>(wide.data()), static_cast<T*>(source.data()), kind);
    });
    return;
  }
  by_update_and_type(update, base.dtype(), [&]<typename T>(T, auto kind) {
    write(static_cast<T*>(base.data()), static_cast<T*>(source.data()), kind);
  });
}

}  // namespace rushlight::kernels
