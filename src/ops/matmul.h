// Matrix products that hand on their result block by block.
#pragma once

#include <rushlight/value.h>

#include "kernels/gemm.h"

namespace rushlight {

class Operator;

// Whether `run_product` knows the operator: mm, addmm, linear.
bool is_product(const Operator& op);

// Runs a product into `out`, contiguous and of the result's shape, and tells `done` of each block
// of it, seen as a matrix whose rows are those of the last dimension.
void run_product(const Operator& op, const Value* arguments, const Tensor& out,
                 const BlockDone& done);

}  // namespace rushlight
