#include "ops/iteration.h"

#include <algorithm>
#include <cstdlib>

#include "ops/streamed.h"
#include "runtime/parallel.h"

namespace rushlight {
namespace {

constexpr int64_t kGrain = 16384;  // elements a task, at least

}  // namespace

Iteration::Iteration(IntArrayRef shape) : rank(static_cast<int>(shape.size())) {
  if (rank > kMaxRank) {
    fail(ErrorKind::Runtime, "", "tensors of more than ", kMaxRank, " dimensions are not offered");
  }
  for (int i = 0; i < rank; ++i) {
    sizes[i] = shape[static_cast<size_t>(i)];
    numel *= sizes[i];
  }
}

void Iteration::add(const TensorImpl& tensor, int64_t unit) {
  RUSHLIGHT_ASSERT(operand_count < kMaxOperands);
  Operand& operand = operands[static_cast<size_t>(operand_count++)];
  operand.element_size = element_size(tensor.dtype) / unit;
  operand.unit = unit;
  operand.data = storage_data(tensor.storage) + tensor.offset * operand.element_size * operand.unit;
  int lead = rank - tensor.rank;
  bool fits = lead >= 0;
  for (int i = 0; fits && i < rank; ++i) {
    int64_t size = i < lead ? 1 : tensor.sizes[static_cast<size_t>(i - lead)];
    fits = size == 1 || size == sizes[i];
    operand.strides[i] =
        size == 1 ? 0 : operand.unit * tensor.strides[static_cast<size_t>(i - lead)];
  }
  // The last guard of memory, behind the operators' own words.
  if (!fits) {
    fail(ErrorKind::Runtime, "", "The size of tensor a ",
         IntArrayRef(sizes, static_cast<size_t>(rank)), " must match the size of tensor b ",
         IntArrayRef(tensor.sizes), " at every dimension where that is not 1");
  }
}

void Iteration::fold() {
  // Drop dimensions of size 1.
  int kept = 0;
  for (int i = 0; i < rank; ++i) {
    if (sizes[i] == 1) {
      continue;
    }
    sizes[kept] = sizes[i];
    for (int k = 0; k < operand_count; ++k) {
      operands[k].strides[kept] = operands[k].strides[i];
    }
    ++kept;
  }
  rank = kept;
  auto swap_dims = [&](int a, int b) {
    std::swap(sizes[a], sizes[b]);
    for (int k = 0; k < operand_count; ++k) {
      std::swap(operands[k].strides[a], operands[k].strides[b]);
    }
  };
  // Whether dimension b should lie outside dimension a (a before b now).
  auto out_of_order = [&](int a, int b) {
    for (int k = 0; k < operand_count; ++k) {
      int64_t first = std::abs(operands[k].strides[a]);
      int64_t second = std::abs(operands[k].strides[b]);
      if (first == 0 || second == 0 || first == second) {
        continue;
      }
      return first < second;
    }
    return false;
  };
  for (int i = 1; i < rank; ++i) {
    for (int j = i; j > 0 && out_of_order(j - 1, j); --j) {
      swap_dims(j - 1, j);
    }
  }
  // Fold a dimension into the one inside it where every operand is contiguous across both.
  int out = 0;
  for (int i = 1; i < rank; ++i) {
    bool joins = true;
    for (int k = 0; k < operand_count && joins; ++k) {
      joins = operands[k].strides[out] == operands[k].strides[i] * sizes[i];
    }
    if (!joins) {
      ++out;
    }
    sizes[out] = joins ? sizes[out] * sizes[i] : sizes[i];
    for (int k = 0; k < operand_count; ++k) {
      operands[k].strides[out] = operands[k].strides[i];
    }
  }
  rank = rank == 0 ? 0 : out + 1;
  if (rank == 0) {
    rank = 1;
    sizes[0] = 1;
    for (int k = 0; k < operand_count; ++k) {
      operands[k].strides[0] = k == 0 ? operands[k].unit : 0;
    }
  }
}

bool Iteration::flat() const {
  if (rank != 1) {
    return false;
  }
  for (int k = 0; k < operand_count; ++k) {
    const Operand& operand = operands[static_cast<size_t>(k)];
    if (operand.strides[0] != 0 && operand.strides[0] != operand.unit) {
      return false;
    }
  }
  return true;
}

namespace {

struct Prepared {
  std::array<void*, kMaxOperands> buffers;
  std::array<const int64_t*, kMaxOperands> strides;
  std::array<int64_t[2], kMaxOperands> pairs;
  int64_t extents[2];
};

void prepare(const Iteration& space, bool flat, Prepared& out) {
  int inner = space.rank - 1;
  for (int k = 0; k < space.operand_count; ++k) {
    const Operand& operand = space.operands[static_cast<size_t>(k)];
    out.buffers[k] = operand.data;
    out.pairs[k][0] = flat ? operand.strides[inner] : (inner > 0 ? operand.strides[inner - 1] : 0);
    out.pairs[k][1] = operand.strides[inner];
    out.strides[k] = out.pairs[k];
  }
  out.extents[0] = flat ? space.sizes[inner] : (inner > 0 ? space.sizes[inner - 1] : 1);
  out.extents[1] = space.sizes[inner];
}

// Points the buffers at position `at` of the dimensions outside the last two.
void place(const Iteration& space, int64_t at, Prepared& out) {
  for (int k = 0; k < space.operand_count; ++k) {
    out.buffers[k] = space.operands[static_cast<size_t>(k)].data;
  }
  for (int d = space.rank - 3; d >= 0; --d) {
    int64_t position = at % space.sizes[d];
    at /= space.sizes[d];
    for (int k = 0; k < space.operand_count; ++k) {
      const Operand& operand = space.operands[static_cast<size_t>(k)];
      out.buffers[k] =
          static_cast<char*>(out.buffers[k]) + position * operand.strides[d] * operand.element_size;
    }
  }
}

// Fewer elements than this are never streamed, whatever their size.
constexpr int64_t kLeastStreamed = kStreamedBytes / 16;

uint64_t streamed_of(const Iteration& space) {
  if (space.numel < kLeastStreamed) {
    return 0;
  }
  return streamed_operands(space.operands, space.operand_count, [&](int k) {
    const Operand& operand = space.operands[static_cast<size_t>(k)];
    int64_t bytes = operand.element_size;
    for (int d = 0; d < space.rank; ++d) {
      bytes *= operand.strides[d] == 0 ? 1 : space.sizes[d];
    }
    return bytes;
  });
}

// A single row too long for one task: pieces of the inner axis as rows of their own.
void run_split_row(const Iteration& space, loop::KernelFunction kernel, const uint64_t* scalars,
                   uint64_t streamed, int64_t grain) {
  int inner = space.rank - 1;
  int64_t length = space.sizes[inner];
  parallel_for(0, length, grain, [&](int64_t begin, int64_t end) {
    Prepared piece;
    prepare(space, false, piece);
    for (int k = 0; k < space.operand_count; ++k) {
      const Operand& operand = space.operands[static_cast<size_t>(k)];
      piece.buffers[k] = operand.data + begin * operand.strides[inner] * operand.element_size;
    }
    piece.extents[1] = end - begin;
    loop::KernelArgs args{piece.buffers.data(), piece.strides.data(), piece.extents, scalars,
                          streamed};
    run_piece(kernel, args, 0, 1);
  });
}

}  // namespace

void run_iteration(const Iteration& space, loop::KernelFunction kernel, const uint64_t* scalars,
                   double element_cost) {
  if (space.numel == 0) {
    return;
  }
  bool flat = space.flat();
  const uint64_t streamed = streamed_of(space);
  auto grain = std::max<int64_t>(1024, static_cast<int64_t>(kGrain / element_cost) & ~int64_t{63});
  if (flat) {
    Prepared prepared;
    prepare(space, true, prepared);
    loop::KernelArgs args{prepared.buffers.data(), prepared.strides.data(), prepared.extents,
                          scalars, streamed};
    if (space.numel <= grain) {
      kernel(&args, 0, space.numel);
      return;
    }
    parallel_for(0, space.numel, grain,
                 [&](int64_t begin, int64_t end) { run_piece(kernel, args, begin, end); });
    return;
  }
  int inner = space.rank - 1;
  int64_t rows = inner > 0 ? space.sizes[inner - 1] : 1;
  int64_t row_length = space.sizes[inner];
  int64_t blocks = space.numel / (rows * row_length);
  if (blocks * rows == 1 && row_length > grain) {
    run_split_row(space, kernel, scalars, streamed, grain);
    return;
  }
  // A task is a run of rows; rows are numbered across all outer dimensions.
  int64_t row_grain = std::max<int64_t>(1, grain / row_length);
  auto run_rows = [&](int64_t begin, int64_t end) {
    Prepared prepared;
    prepare(space, false, prepared);
    loop::KernelArgs args{prepared.buffers.data(), prepared.strides.data(), prepared.extents,
                          scalars, streamed};
    while (begin < end) {
      int64_t block = begin / rows;
      int64_t stop = std::min(end, (block + 1) * rows);
      place(space, block, prepared);
      run_piece(kernel, args, begin - block * rows, stop - block * rows);
      begin = stop;
    }
  };
  if (blocks * rows <= row_grain) {
    run_rows(0, blocks * rows);
  } else {
    parallel_for(0, blocks * rows, row_grain, run_rows);
  }
}

bool has_rows(const Iteration& space, int operand, int64_t rows, int64_t cols) {
  const int64_t* strides = space.operands[static_cast<size_t>(operand)].strides;
  if (space.flat()) {
    return space.numel == rows * cols && strides[0] == 1;
  }
  return space.rank == 2 && space.sizes[0] == rows && space.sizes[1] == cols &&
         strides[0] == cols && strides[1] == 1;
}

void run_block(const Iteration& space, int64_t cols, const Block& block,
               loop::KernelFunction kernel, const uint64_t* scalars) {
  const bool flat = space.flat();
  Prepared prepared;
  prepare(space, flat, prepared);
  loop::KernelArgs args{prepared.buffers.data(), prepared.strides.data(), prepared.extents,
                        scalars};
  if (!flat) {
    for (int k = 0; k < space.operand_count; ++k) {
      const Operand& operand = space.operands[static_cast<size_t>(k)];
      prepared.buffers[k] = operand.data + block.col * operand.strides[1] * operand.element_size;
    }
    prepared.extents[1] = block.cols;
    kernel(&args, block.row, block.row + block.rows);
    return;
  }
  if (block.cols == cols) {
    kernel(&args, block.row * cols, (block.row + block.rows) * cols);
    return;
  }
  for (int64_t i = block.row; i < block.row + block.rows; ++i) {
    const int64_t first = i * cols + block.col;
    kernel(&args, first, first + block.cols);
  }
}

}  // namespace rushlight
