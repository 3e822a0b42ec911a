// Calling an operator from binding code, past Python's parser.
#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>

#include "convert.h"
#include "ops/operator.h"

namespace rushlight::python {

// The operator's result for `self` as the first argument, others by name; what is not named has its
// default.
Tensor call_named(std::string_view op, const Tensor& self,
                  std::initializer_list<std::pair<std::string_view, Value>> arguments = {});

// The tensor as this dtype; itself where it is one already.
Tensor converted(const Tensor& tensor, DType dtype);

}  // namespace rushlight::python
