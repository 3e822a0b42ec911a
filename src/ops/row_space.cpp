#include "ops/row_space.h"

#include <algorithm>
#include <cstdlib>

#include "kernels/scratch.h"
#include "ops/iteration.h"
#include "ops/streamed.h"
#include "runtime/parallel.h"
#include "runtime/per_thread.h"

namespace rushlight {
namespace {

constexpr int64_t kGrain = 16384;       // elements a task, at least
constexpr int64_t kColumns = 512;       // columns a task, where rows are few, at most
constexpr int64_t kFewestColumns = 64;  // and at least
constexpr int64_t kPieces = 8;          // wanted, so that threads share them evenly
constexpr size_t kMost = kMaxRowOperands;

}  // namespace

int64_t RowSpace::rows() const {
  int64_t count = 1;
  for (int64_t size : outer) {
    count *= size;
  }
  return count;
}

void RowSpace::fold() {
  size_t rank = outer.size();
  // Drop dimensions of size 1.
  size_t kept = 0;
  for (size_t i = 0; i < rank; ++i) {
    if (outer[i] == 1) {
      continue;
    }
    outer[kept] = outer[i];
    for (RowOperand& operand : operands) {
      operand.outer[kept] = operand.outer[i];
    }
    ++kept;
  }
  outer.resize(kept);
  // Join neighbours that every operand crosses without a gap.
  size_t out = 0;
  for (size_t i = 1; i < kept; ++i) {
    bool joins = true;
    for (const RowOperand& operand : operands) {
      joins = joins && operand.outer[out] == operand.outer[i] * outer[i];
    }
    if (!joins) {
      ++out;
    }
    outer[out] = joins ? outer[out] * outer[i] : outer[i];
    for (RowOperand& operand : operands) {
      operand.outer[out] = operand.outer[i];
    }
  }
  outer.resize(kept == 0 ? 0 : out + 1);
  for (RowOperand& operand : operands) {
    operand.outer.resize(outer.size());
  }
  bool axis_is_fine = true;
  for (const RowOperand& operand : operands) {
    axis_is_fine = axis_is_fine && (operand.axis == 0 || operand.axis == 1);
  }
  inner = -1;
  if (axis_is_fine && length > 1) {
    return;
  }
  for (size_t d = outer.size(); d-- > 0;) {
    bool fine = true;
    bool any = false;
    for (const RowOperand& operand : operands) {
      fine = fine && (operand.outer[d] == 0 || operand.outer[d] == 1);
      any = any || operand.outer[d] == 1;
    }
    if (fine && any) {
      inner = static_cast<int>(d);
      return;
    }
  }
}

RowOperand row_operand(const TensorImpl& tensor, IntArrayRef shape, IntArrayRef outer_dims,
                       IntArrayRef axis_dims, bool reduced, bool* axis_folds) {
  RowOperand made;
  made.element_size = element_size(tensor.dtype);
  made.data = tensor.device.is_meta()
                  ? nullptr
                  : storage_data(tensor.storage) + tensor.offset * made.element_size;
  auto lead = static_cast<int64_t>(shape.size()) - tensor.rank;
  auto stride_of = [&](int64_t dim) -> int64_t {
    int64_t at = dim - lead;
    if (at < 0 || tensor.sizes[static_cast<size_t>(at)] == 1) {
      return 0;
    }
    return tensor.strides[static_cast<size_t>(at)];
  };
  for (int64_t dim : outer_dims) {
    made.outer.push_back(stride_of(dim));
  }
  *axis_folds = true;
  if (reduced) {
    return made;
  }
  // Axis dimensions fold where each is the next one's stride times size; size 1 never matters.
  bool first = true;
  int64_t expected = 0;
  for (size_t i = axis_dims.size(); i-- > 0;) {
    int64_t size = shape[static_cast<size_t>(axis_dims[i])];
    if (size == 1) {
      continue;
    }
    int64_t stride = stride_of(axis_dims[i]);
    if (first) {
      made.axis = stride;
      first = false;
    } else if (stride != expected) {
      *axis_folds = false;
    }
    expected = stride * size;
    if (size == 0) {  // nothing lies along the axis, so it folds in any case
      *axis_folds = true;
      break;
    }
  }
  return made;
}

namespace {

// One task's arguments: the kernel's axes are (outer, axis) or (outer, axis, inner).
struct Prepared {
  std::array<void*, kMost> buffers;
  std::array<int64_t[3], kMost> strides;
  std::array<const int64_t*, kMost> pointers;
  int64_t extents[3];
};

// The outer dimension that the kernel's first axis runs over: the last one but `inner`.
int row_dim(const RowSpace& space) {
  for (int d = static_cast<int>(space.outer.size()) - 1; d >= 0; --d) {
    if (d != space.inner) {
      return d;
    }
  }
  return -1;
}

void prepare(const RowSpace& space, int row, int64_t begin_inner, int64_t count_inner,
             Prepared& out) {
  for (size_t k = 0; k < space.operands.size(); ++k) {
    const RowOperand& operand = space.operands[k];
    out.strides[k][0] = row < 0 ? 0 : operand.outer[static_cast<size_t>(row)];
    out.strides[k][1] = operand.axis;
    out.strides[k][2] = space.inner < 0 ? 0 : operand.outer[static_cast<size_t>(space.inner)];
    out.pointers[k] = out.strides[k];
  }
  (void)begin_inner;
  out.extents[0] = row < 0 ? 1 : space.outer[static_cast<size_t>(row)];
  out.extents[1] = space.length;
  out.extents[2] = count_inner;
}

// Points the buffers at `block` of the dimensions other than row and inner, and at an inner start.
void place(const RowSpace& space, int row, int64_t block, int64_t begin_inner, Prepared& out) {
  for (size_t k = 0; k < space.operands.size(); ++k) {
    const RowOperand& operand = space.operands[k];
    int64_t stride = space.inner < 0 ? 0 : operand.outer[static_cast<size_t>(space.inner)];
    out.buffers[k] = operand.data + begin_inner * stride * operand.element_size;
  }
  for (int d = static_cast<int>(space.outer.size()) - 1; d >= 0; --d) {
    if (d == row || d == space.inner) {
      continue;
    }
    int64_t size = space.outer[static_cast<size_t>(d)];
    int64_t position = block % size;
    block /= size;
    for (size_t k = 0; k < space.operands.size(); ++k) {
      const RowOperand& operand = space.operands[k];
      out.buffers[k] = static_cast<char*>(out.buffers[k]) +
                       position * operand.outer[static_cast<size_t>(d)] * operand.element_size;
    }
  }
}

const PerThread<Scratch> row_scratch;

// Whether a kernel along the axis may write elements of two bytes.
bool has_halves(const RowSpace& space) {
  return space.inner < 0 &&
         std::any_of(
             space.operands.begin(), space.operands.end(),
             [](const RowOperand& operand) { return operand.element_size == 2; });
}

uint64_t streamed_of(const RowSpace& space) {
  return streamed_operands(space.operands, static_cast<int>(space.operands.size()), [&](int k) {
    const RowOperand& operand = space.operands[static_cast<size_t>(k)];
    int64_t bytes = operand.element_size * (operand.axis == 0 ? 1 : space.length);
    for (size_t d = 0; d < space.outer.size(); ++d) {
      bytes *= operand.outer[d] == 0 ? 1 : space.outer[d];
    }
    return bytes;
  });
}

// How many columns a task has, by shape alone. Few rows of many columns are cut into columns, the
// narrower the longer these are, since several passes go over them.
int64_t task_width(const RowSpace& space, int64_t rows, int64_t inner, int64_t grain) {
  if (space.inner < 0 || rows >= 64) {
    return inner;
  }
  int64_t width = kColumns;
  while (width > kFewestColumns && rows * ((inner + width - 1) / width) < kPieces &&
         space.length * width > grain) {
    width /= 2;
  }
  return std::min(width, inner);
}

}  // namespace

void run_rows(const RowSpace& space, loop::KernelFunction kernel, const uint64_t* scalars,
              double element_cost) {
  int row = row_dim(space);
  int64_t rows_in_block = row < 0 ? 1 : space.outer[static_cast<size_t>(row)];
  int64_t inner = space.inner < 0 ? 1 : space.outer[static_cast<size_t>(space.inner)];
  int64_t rows = space.rows() / inner;
  auto grain = static_cast<int64_t>(static_cast<double>(kGrain) / element_cost);
  int64_t width = std::max<int64_t>(1, task_width(space, rows, inner, grain));
  int64_t pieces = (inner + width - 1) / width;
  int64_t work = std::max<int64_t>(1, space.length) * width;
  const uint64_t streamed = streamed_of(space);
  int64_t item_grain = std::max<int64_t>(1, grain / work);
  const bool halves = has_halves(space);
  auto run_items = [&](int64_t begin, int64_t end) {
    float* scratch =
        halves ? row_scratch->get<float>(space.length + loop::kScratchPadding) : nullptr;
    // Items are numbered piece by piece, rows within a piece.
    while (begin < end) {
      int64_t piece = begin / rows;
      int64_t at = begin - piece * rows;
      int64_t block = at / rows_in_block;
      int64_t stop = std::min({end - piece * rows, rows, (block + 1) * rows_in_block});
      int64_t from = piece * width;
      Prepared prepared;
      prepare(space, row, from, std::min(width, inner - from), prepared);
      place(space, row, block, from, prepared);
      loop::KernelArgs args{prepared.buffers.data(),
                            prepared.pointers.data(),
                            prepared.extents,
                            scalars,
                            streamed,
                            scratch};
      run_piece(kernel, args, at - block * rows_in_block, stop - block * rows_in_block);
      begin = piece * rows + stop;
    }
  };
  int64_t items = rows * pieces;
  if (items <= item_grain) {
    run_items(0, items);
  } else {
    parallel_for(0, items, item_grain, run_items);
  }
}

}  // namespace rushlight
