// Orders of arguments that PyTorch deprecated and still takes.
#pragma once

#include "arguments.h"

namespace rushlight::python {

// The signature that the call fits once its arguments are in today's order, with a warning; null
// where there is none. Fills the frame.
const Signature* choose_deprecated(const OverloadSet& set, const Arguments& arguments,
                                   Frame& frame);

}  // namespace rushlight::python
