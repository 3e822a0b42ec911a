// The iteration space of a fused group, and where in it values lie.
//
// A group runs over one full shape. Where it has row operators, some dimensions are the axis that
// these reduce; values then are full, or reduced: of the shape without the axis, kept as size 1 or
// not.
#pragma once

#include <optional>

#include "graph/graph.h"

namespace rushlight::compiler {

struct Space {
  IntList shape;
  IntList axis;  // sorted dimensions; empty: none

  bool is_axis(size_t dim) const;
};

enum class Fit : uint8_t { Full, Kept, Removed };  // Kept, Removed: reduced, axis as 1 or left out

// How a node that runs over `shape` lies in the space; nothing where it does not.
std::optional<Fit> fit_shape(const Space& space, IntArrayRef shape);

// One value as seen from the space: equal places are the same memory at each point.
struct Place {
  int storage = -1;
  DType dtype = DType::Float32;
  int64_t offset = 0;
  IntList strides;  // over the space's shape, 0 along broadcast dimensions and size 1

  bool operator==(const Place& other) const {
    return storage == other.storage && dtype == other.dtype && offset == other.offset &&
           IntArrayRef(strides) == IntArrayRef(other.strides);
  }
};
Place place_of(const graph::ValueInfo& value, const Space& space, Fit fit);

// The one stride of the place along the axis; nothing where the axis dimensions do not fold.
std::optional<int64_t> axis_stride(const Place& place, const Space& space);

// Whether a kernel with these operands reduces column by column: another dimension than the axis is
// vectorised, which fixes the order of combination.
bool reduces_columns(const std::vector<Place>& places, const Space& space);

}  // namespace rushlight::compiler
