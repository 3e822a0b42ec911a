// Powers whose exponent is one number for all elements.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <functional>

#include "loop/node.h"

namespace rushlight::codegen {

// Whether a value is made of numbers alone: the same for all elements of any kernel it stands in.
bool is_number(const loop::Node* node);

// x to the power of `exponent`, a scalar: what PyTorch multiplies, divides or takes the root of,
// else what `general` emits.
llvm::Value* power_of_number(llvm::IRBuilder<>& builder, llvm::Value* x, llvm::Value* exponent,
                             const std::function<llvm::Value*()>& general);

}  // namespace rushlight::codegen
