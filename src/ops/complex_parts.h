// Operators that act on the parts of complex numbers (ComplexRule::Parts, ComplexRule::Product).
#pragma once

#include "ops/invocation.h"

namespace rushlight {

// Whether a tensor argument is complex, or complex results are asked for by dtype.
bool concerns_complex(const Invocation& inv);
// The functional form: its body twice, for the real and the imaginary parts, or four times.
void run_by_parts(Invocation& inv);

// The parts of a complex tensor, as views; past the doors.
Tensor real_part(const Tensor& tensor);
Tensor imag_part(const Tensor& tensor);
// Complex numbers of given parts, of one shape; past the doors.
Tensor join_parts(const Tensor& real, const Tensor& imag);

}  // namespace rushlight
