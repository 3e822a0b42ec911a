#include "kernels/fft.h"

#include <algorithm>
#include <cstring>

#include "kernels/fft_work.h"
#include "kernels/scratch.h"
#include "runtime/parallel.h"
#include "runtime/per_thread.h"

namespace rushlight::kernels {
namespace {

const PerThread<Scratch> group_scratch;
const PerThread<Scratch> line_scratch;
const PerThread<Scratch> turned_scratch;

using Kind = FftKind;
template <typename T>
using Work = FftWork<T>;

template <typename T>
T* transform(const FftEngine<T>& engine, const FftPlan<T>& plan, T* a, T* b);

// X[0] is the sum of all; the others are x[0] plus a convolution, each side in an order of its own.
template <typename T>
T* transform_by_powers(const FftEngine<T>& engine, const FftPlan<T>& plan, T* a, T* b) {
  const int64_t count = plan.length - 1;
  const int64_t element = 2 * engine.width;
  alignas(64) T start[2 * kFftMaxWidth];
  alignas(64) T sum[2 * kFftMaxWidth];
  std::copy(a, a + element, start);
  engine.pick(b, a, plan.powers.data(), count);
  T* c = transform(engine, *plan.convolution, b, a);
  for (int64_t i = 0; i < element; ++i) {
    sum[i] = start[i] + c[i];
  }
  engine.multiply(c, c, plan.filter.data(), count, true);
  T* d = transform(engine, *plan.convolution, c, c == a ? b : a);
  T* result = d == a ? b : a;
  engine.place(result, d, plan.powers.data(), count, start);
  std::copy(sum, sum + element, result);
  return result;
}

// Transforms a group in `a` with the help of `b`; returns which holds the result.
template <typename T>
T* transform(const FftEngine<T>& engine, const FftPlan<T>& plan, T* a, T* b) {
  if (plan.convolution == nullptr) {
    return engine.stages(plan.stages.data(), static_cast<int>(plan.stages.size()), a, b);
  }
  if (plan.by_powers()) {
    return transform_by_powers(engine, plan, a, b);
  }
  const FftPlan<T>& inner = *plan.convolution;
  const int64_t element = 2 * engine.width;
  engine.multiply(a, a, plan.chirp.data(), plan.length, false);
  std::fill(a + plan.length * element, a + plan.room * element, T(0));
  T* c = transform(engine, inner, a, b);
  engine.multiply(c, c, plan.filter.data(), plan.room, true);
  T* d = transform(engine, inner, c, c == a ? b : a);
  engine.multiply(d, d, plan.chirp_back.data(), plan.length, true);
  return d;
}

// A group of lines, one in each lane.
template <typename T>
void run_group(const Work<T>& work, int64_t first, int count) {
  const FftEngine<T>& engine = work.engine;
  FftAccess<const T> in = input_access(work);
  FftAccess<T> out = output_access(work);
  place_lines(work, first, count, in, out);
  const int64_t made = work.all ? work.lines.n : work.half() + 1;
  const int64_t room = std::max(work.plan->room, made) * 2 * engine.width;
  T* a = group_scratch->get<T>(2 * room);
  T* b = a + room;
  const int64_t n = work.plan->length;
  const T scale = work.lines.scale;
  switch (work.kind) {
    case Kind::Forward:
    case Kind::Backward:
      engine.load(a, in, n, work.swap());
      engine.store(transform(engine, *work.plan, a, b), out, n, work.swap(), scale);
      return;
    case Kind::FromReal: {
      engine.load(a, in, n, false);
      T* made = transform(engine, *work.plan, a, b);
      if (work.halved) {
        engine.split_real(made, work.roots->values.data(), n);
      }
      if (work.all && work.halved) {
        engine.mirror(made, work.lines.n, false);
      }
      engine.store(made, out, work.all ? work.lines.n : work.half() + 1, false, scale);
      return;
    }
    case Kind::ToReal:
      engine.load(a, in, work.half() + 1, !work.halved);
      if (work.halved) {
        engine.join_real(a, work.roots->values.data(), n);
      } else {
        engine.mirror(a, n, true);
      }
      engine.store(transform(engine, *work.plan, a, b), out, n, work.swap(), scale);
      return;
  }
}

template <typename T>
void run_groups(const Work<T>& work) {
  const int64_t width = work.engine.width;
  // Groups of neighbouring columns do not run on into the next ones.
  const int64_t inner = work.sizes.back();
  const int64_t run = 2 * inner >= width ? inner : work.count;
  const int64_t in_run = (run + width - 1) / width;
  const int64_t cost = std::max<int64_t>(1, work.plan->room * width);
  const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 14) / cost);
  parallel_for(0, work.count / run * in_run, grain, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      const int64_t at = g % in_run * width;
      const auto count = static_cast<int>(std::min(width, run - at));
      run_group(work, g / in_run * run + at, count);
    }
  });
}

// Columns [first, first + width) of a line, into the lanes of its rows.
template <typename T>
void run_columns(const FftEngine<T>& engine, const FftSplit<T>& split, const FftAccess<const T>& in,
                 bool swap, int64_t first, T* turned) {
  const int64_t width = engine.width;
  const int64_t room = split.of_columns->room * 2 * width;
  T* a = group_scratch->get<T>(2 * room);
  const auto count = static_cast<int>(std::min(width, split.columns - first));
  FftAccess<const T> columns{{}, in.step * split.columns, in.imag, count};
  for (int l = 0; l < count; ++l) {
    columns.lines[l] = in.lines[0] + (first + l) * in.step;
  }
  engine.load(a, columns, split.rows, swap);
  const T* made = transform(engine, *split.of_columns, a, a + room);
  engine.turn(turned + first * 2 * width, split.columns, made, split.rows, count,
              split.each.data() + first / width * 2 * split.rows, split.within.data());
}

template <typename T>
void run_rows(const FftEngine<T>& engine, const FftSplit<T>& split, const FftAccess<T>& out,
              bool swap, T scale, int64_t first, T* turned) {
  const int64_t width = engine.width;
  T* b = group_scratch->get<T>(split.of_rows->room * 2 * width);
  const auto count = static_cast<int>(std::min(width, split.rows - first));
  FftAccess<T> rows{{}, out.step * split.rows, out.imag, count};
  for (int l = 0; l < count; ++l) {
    rows.lines[l] = out.lines[0] + (first + l) * out.step;
  }
  const T* made = transform(engine, *split.of_rows, turned + first * split.columns * 2, b);
  engine.store(made, rows, split.columns, swap, scale);
}

// One line, as columns and rows of its own. All of it is read before anything is written.
template <typename T>
void split_line(const FftEngine<T>& engine, const FftSplit<T>& split, const FftAccess<const T>& in,
                const FftAccess<T>& out, bool swap, T scale) {
  const int64_t width = engine.width;
  const int64_t row_groups = (split.rows + width - 1) / width;
  const int64_t column_groups = (split.columns + width - 1) / width;
  T* turned = turned_scratch->get<T>(row_groups * width * split.columns * 2);
  constexpr int64_t kTask = 1 << 14;
  const int64_t column_grain = std::max<int64_t>(1, kTask / (split.rows * width));
  parallel_for(0, column_groups, column_grain, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      run_columns(engine, split, in, swap, g * width, turned);
    }
  });
  const int64_t row_grain = std::max<int64_t>(1, kTask / (split.columns * width));
  parallel_for(0, row_groups, row_grain, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      run_rows(engine, split, out, swap, scale, g * width, turned);
    }
  });
}

// out = a * b; with the parts of `a`, or of the result, swapped.
template <typename T>
void multiply_line(T* out, const T* a, const T* b, int64_t count, bool swap_in, bool swap_out) {
  const int in = swap_in ? 1 : 0;
  const int to = swap_out ? 1 : 0;
  for (int64_t k = 0; k < count; ++k) {
    const T re = a[2 * k + in];
    const T im = a[2 * k + 1 - in];
    out[2 * k + to] = re * b[2 * k] - im * b[2 * k + 1];
    out[2 * k + 1 - to] = re * b[2 * k + 1] + im * b[2 * k];
  }
}

// As transform_by_powers, of a line; `other` is as long.
template <typename T>
void line_by_powers(const Work<T>& work, T* line, T* other, bool swap, T scale) {
  const FftPlan<T>& plan = *work.plan;
  const int64_t count = plan.length - 1;
  const FftAccess<const T> in{{other}, 2, 1, 1};
  const FftAccess<T> out{{other}, 2, 1, 1};
  const int re = swap ? 1 : 0;
  const T start[2] = {line[re], line[1 - re]};
  for (int64_t q = 0; q < count; ++q) {
    const T* from = line + int64_t{2} * plan.powers[static_cast<size_t>(q)];
    other[2 * q] = from[re];
    other[2 * q + 1] = from[1 - re];
  }
  split_line(work.engine, *work.split, in, out, false, T(1));
  line[re] = (start[0] + other[0]) * scale;
  line[1 - re] = (start[1] + other[1]) * scale;
  multiply_line(other, other, plan.filter.data(), count, false, false);
  split_line(work.engine, *work.split, in, out, true, T(1));
  for (int64_t q = 0; q < count; ++q) {
    T* to = line + int64_t{2} * plan.powers[static_cast<size_t>(q == 0 ? 0 : count - q)];
    to[re] = (start[0] + other[2 * q]) * scale;
    to[1 - re] = (start[1] + other[2 * q + 1]) * scale;
  }
}

// `line`, complex elements one after another with the plan's room, is transformed in place.
template <typename T>
void transform_line(const Work<T>& work, T* line, T* other, bool swap, T scale) {
  const FftPlan<T>& plan = *work.plan;
  const FftAccess<const T> in{{line}, 2, 1, 1};
  const FftAccess<T> out{{line}, 2, 1, 1};
  if (plan.convolution == nullptr) {
    split_line(work.engine, *work.split, in, out, swap, scale);
    return;
  }
  if (plan.by_powers()) {
    line_by_powers(work, line, other, swap, scale);
    return;
  }
  multiply_line(line, line, plan.chirp.data(), plan.length, swap, false);
  std::fill(line + 2 * plan.length, line + 2 * plan.room, T(0));
  split_line(work.engine, *work.split, in, out, false, T(1));
  multiply_line(line, line, plan.filter.data(), plan.room, false, false);
  split_line(work.engine, *work.split, in, out, true, scale);
  multiply_line(line, line, plan.chirp.data(), plan.length, false, swap);
}

template <typename T>
void read_line(T* line, const FftAccess<const T>& in, int64_t count) {
  const T* from = in.lines[0];
  for (int64_t j = 0; j < count; ++j) {
    line[2 * j] = from[j * in.step];
    line[2 * j + 1] = in.imag != 0 ? from[j * in.step + in.imag] : T(0);
  }
}

template <typename T>
void write_line(const T* line, const FftAccess<T>& out, int64_t count) {
  T* to = out.lines[0];
  for (int64_t j = 0; j < count; ++j) {
    to[j * out.step] = line[2 * j];
    if (out.imag != 0) {
      to[j * out.step + out.imag] = line[2 * j + 1];
    }
  }
}

// All elements of the transform of a real line of odd length.
template <typename T>
void mirror_line(T* line, const FftAccess<const T>& in, int64_t n) {
  read_line(line, in, n / 2 + 1);
  line[1] = T(0);
  for (int64_t k = 1; 2 * k < n; ++k) {
    line[2 * (n - k)] = line[2 * k];
    line[2 * (n - k) + 1] = -line[2 * k + 1];
  }
}

template <typename T>
void run_line(const Work<T>& work, int64_t number) {
  FftAccess<const T> in = input_access(work);
  FftAccess<T> out = output_access(work);
  place_lines(work, number, 1, in, out);
  const T scale = work.lines.scale;
  const int64_t n = work.plan->length;
  const bool simple = work.kind == Kind::Forward || work.kind == Kind::Backward;
  if (simple && work.plan->convolution == nullptr) {
    split_line(work.engine, *work.split, in, out, work.swap(), scale);
    return;
  }
  // A real line needs room for what it is made into, or of.
  const int64_t room = 2 * std::max(work.plan->room, n + 1);
  const int64_t made = 2 * (work.all ? work.lines.n : work.half() + 1);
  T* line = line_scratch->get<T>(room + std::max(room, made));
  T* other = line + room;
  if (work.kind != Kind::ToReal) {
    read_line(line, in, n);
  } else if (work.halved) {
    const bool there = in.step == 2;
    if (!there) {
      read_line(other, in, n + 1);
    }
    work.engine.join_line(line, there ? in.lines[0] : other, work.roots->values.data(), n);
  } else {
    mirror_line(line, in, n);
  }
  transform_line(work, line, other, work.swap(), scale);
  if (work.kind != Kind::FromReal || !work.halved) {
    write_line(line, out, work.kind == Kind::FromReal && !work.all ? work.half() + 1 : n);
    return;
  }
  const bool there = out.step == 2;
  work.engine.split_line(line, there ? out.lines[0] : other, work.roots->values.data(), n,
                         work.all);
  if (!there) {
    write_line(other, out, made / 2);
  }
}

template <typename T>
void run_lines(const Work<T>& work) {
  const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 14) / work.plan->room);
  if (work.count <= grain) {  // the columns and rows of a line go to several threads
    for (int64_t i = 0; i < work.count; ++i) {
      run_line(work, i);
    }
    return;
  }
  parallel_for(0, work.count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      run_line(work, i);
    }
  });
}

// Whether elements of a line follow one another on both sides.
template <typename T>
bool one_by_one(const Work<T>& work) {
  const int64_t in = work.kind == Kind::FromReal ? 1 : 2;
  const int64_t out = work.kind == Kind::ToReal ? 1 : 2;
  return work.lines.in_step == in && work.lines.out_step == out;
}

// Whether lines should go one by one, and their split.
template <typename T>
std::shared_ptr<const FftSplit<T>> choose_split(const Work<T>& work) {
  const int64_t width = work.engine.width;
  const int64_t length =
      work.plan->convolution == nullptr ? work.plan->length : work.plan->convolution->length;
  if (length < 64) {
    return nullptr;
  }
  auto split = fft_cached<FftSplit<T>>(length);
  if (split->rows == 0) {
    return nullptr;
  }
  const auto count = static_cast<double>(work.count);
  const double lanes = static_cast<double>((work.count + width - 1) / width * width);
  // Groups of long lines leave the first-level cache, then the second.
  const int64_t bytes = 4 * length * width * static_cast<int64_t>(sizeof(T));
  const double memory = bytes <= (128 << 10) ? 1.0 : bytes <= (2 << 20) ? 1.5 : 4.0;
  // Lines with gaps and those that are convolved are gone through one number at a time, real ones
  // once more.
  const bool real = work.kind == Kind::FromReal || work.kind == Kind::ToReal;
  const bool singly = !one_by_one(work) || work.plan->convolution != nullptr;
  const double each = singly ? 3.0 : real ? 1.7 : 1.3;
  return count * split->cost * each < lanes * memory ? split : nullptr;
}

template <typename T>
void run(Kind kind, const FftLines<T>& lines, bool all = false) {
  Work<T> work{.kind = kind, .lines = lines, .all = all};
  order_dimensions(work);
  if (work.count == 0) {
    return;
  }
  const bool real = kind == Kind::FromReal || kind == Kind::ToReal;
  // Where all elements of a real line are one, its odd ones are at no distance from the even ones,
  // which is how an access says that there are none.
  const bool one_element = kind == Kind::FromReal && lines.in_step == 0;
  work.halved = real && lines.n % 2 == 0 && !one_element;
  if (work.halved) {
    work.roots = fft_cached<FftRoots<T>>(lines.n);
  }
  work.plan = fft_cached<FftPlan<T>>(work.halved ? lines.n / 2 : lines.n);
  work.split = choose_split(work);
  if (work.split != nullptr) {
    run_lines(work);
  } else {
    run_groups(work);
  }
}

}  // namespace

template <typename T>
void fft_complex(const FftLines<T>& lines, bool forward) {
  run(forward ? Kind::Forward : Kind::Backward, lines);
}

template <typename T>
void fft_from_real(const FftLines<T>& lines, bool all) {
  run(Kind::FromReal, lines, all);
}

template <typename T>
void fft_to_real(const FftLines<T>& lines) {
  run(Kind::ToReal, lines);
}

template void fft_complex(const FftLines<float>& lines, bool forward);
template void fft_complex(const FftLines<double>& lines, bool forward);
template void fft_from_real(const FftLines<float>& lines, bool all);
template void fft_from_real(const FftLines<double>& lines, bool all);
template void fft_to_real(const FftLines<float>& lines);
template void fft_to_real(const FftLines<double>& lines);

}  // namespace rushlight::kernels
