// The fixed order in which a reduce axis is combined, independent of threads, vector width, slice
// offset and tail. Both the interpreter and generated code follow it.
//
// Element k of the axis goes to accumulator lane k % kLanes; lanes start at the identity and take
// their elements in increasing k: lane = combine(lane, element). At the end lanes are folded in
// halves: lane[i] = combine(lane[i], lane[i + n/2]) for n = kLanes, kLanes/2, ..., 2, and lane 0 is
// the result. On AVX2 the lanes of f32 are
// eight registers, on AVX-512 four.
//
// That holds for the kernel's last axis, the one that is contiguous when it is reduced. Any other
// reduce axis (columns: the vectorised axis lies inside) has kColumnLanes lanes, so it is combined
// in plain order. Whoever builds a kernel chooses by ordering its axes. A scan is the plain fold
// of elements 0..k, from the identity.
#pragma once

#include <cstdint>

namespace rushlight::loop {

inline constexpr int kLanes = 64;       // values of up to 4 bytes
inline constexpr int kLanesWide = 32;   // values of 8 bytes
inline constexpr int kColumnLanes = 1;  // reduce axis outside the vectorised axis: plain order

// The lanes of a reduction over `axis`, in a kernel of `axes` axes, of values of `size` bytes.
constexpr int lanes(int axis, int axes, int64_t size) {
  return axis + 1 < axes ? kColumnLanes : size > 4 ? kLanesWide : kLanes;
}

}  // namespace rushlight::loop
