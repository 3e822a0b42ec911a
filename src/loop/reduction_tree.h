// The fixed order in which a reduce axis is combined, independent of threads, vector width, slice
// offset and tail. Both the interpreter and generated code follow it.
//
// Element k of the axis goes to accumulator lane k % kLanes; lanes start at the identity and take
// their elements in increasing k. At the end lanes are folded in halves: lane i combines with lane
// i + n/2 for n = kLanes, kLanes/2, ..., 2, and lane 0 is the result. On AVX2 the lanes of f32 are
// eight registers, on AVX-512 four. When the vectorised axis is another one (columns), each column
// does the same with kColumnLanes lanes.
#pragma once

namespace rushlight::loop {

inline constexpr int kLanes = 64;        // values of up to 4 bytes
inline constexpr int kLanesWide = 32;    // values of 8 bytes
inline constexpr int kColumnLanes = 1;   // reduce axis outside the vectorised axis: plain order

}  // namespace rushlight::loop
