// The names that the printer and the parser share. docs/loop-ir.md has the grammar.
#pragma once

#include <string_view>

#include "loop/kernel.h"

namespace rushlight::loop {

inline constexpr std::string_view kAxisTexts[] = {"parallel", "reduce", "scan"};
inline constexpr std::string_view kLayoutTexts[] = {"zero", "unit", "any"};
inline constexpr std::string_view kStoreTexts[] = {"store", "store.add", "store.mul", "store.max",
                                                   "store.min"};

// The printer gives nodes nested deeper than this a line of their own.
inline constexpr int kPrintedDepth = 6;
// The parser takes this much, so that hostile text cannot exhaust the stack.
inline constexpr int kParsedDepth = 200;

}  // namespace rushlight::loop
