// What picks the compiled kernel of an element-wise operator, and how such a kernel is built.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/elementwise_expression.h"
#include "ops/iteration.h"

namespace rushlight {

struct KernelForm;

// Small fields packed into words; long attribute texts go in as hashes.
struct Signature {
  uint64_t words[3] = {0, 0, 0};
  uint8_t used = 0;  // bits

  void add(unsigned value, int bits) {
    int word = used / 64;
    int at = used % 64;
    words[word] |= static_cast<uint64_t>(value) << at;
    if (at + bits > 64) {
      words[word + 1] |= static_cast<uint64_t>(value) >> (64 - at);
    }
    used = static_cast<uint8_t>(used + bits);
  }
  void add(const KernelForm& form);
  void add_value(const Value& value);
  bool operator==(const Signature& other) const {
    return words[0] == other.words[0] && words[1] == other.words[1] && words[2] == other.words[2] &&
           used == other.used;
  }
};

// Where a kernel's run-time scalar comes from.
struct ScalarSource {
  int argument;
  DType dtype;
  bool imaginary = false;  // of a complex number, this part
};

struct ElementwiseKernel {
  loop::Kernel kernel;
  std::vector<ScalarSource> scalars;
  double cost = 1;  // rough cycles an element
};

// The rest of what a kernel is built from: what it computes in, and how operands lie in memory.
struct KernelForm {
  DType compute;
  DType out;
  bool flat;
  int operand_count = 0;
  loop::Layout layouts[kMaxOperands];  // along the inner axis, the output first
};

ElementwiseKernel build_elementwise(const Operator& op, const Invocation& inv,
                                    const KernelForm& form, Rule rule,
                                    const std::vector<int>& tensors,
                                    const std::vector<int>& conditions,
                                    const ElementwiseFunction& function);

// elementwise_expression for a body that is given by its parts.
loop::Expr build_expression(const Operator& op, const Invocation& inv, Rule rule,
                            const std::vector<int>& conditions, const ElementwiseFunction& function,
                            const ElementwiseTyping& typing, ElementwiseOperands& operands);

// A result for these operands: their common memory order where all with the full shape share one,
// else contiguous.
Tensor make_like_operands(const Invocation& inv, const std::vector<int>& tensors, IntArrayRef shape,
                          DType dtype, Device device);

// Whether writing `out` element by element would change `input` before it is read: they overlap
// and are not the same view.
bool must_copy_before_write(const Tensor& out, const Tensor& input);

}  // namespace rushlight
