// What the losses share.
#pragma once

#include <rushlight/tensor.h>

namespace rushlight {

// `reduction`: 0 none, 1 mean, 2 sum, as in PyTorch's native functions.
Tensor reduce_loss(const Tensor& loss, int64_t reduction);

// One sample's class may be a line of one number.
bool is_line_of_one(const Tensor& self, const Tensor& target);

struct ClassShape {
  int64_t dim;  // of the classes
  int64_t classes;
  Tensor target;  // with the class dimension put in, size 1
};

// Of a loss with a target of classes; errors name `op`.
ClassShape check_class_target(std::string_view op, const Tensor& self, const Tensor& target,
                              const Tensor& weight, int64_t ignored);

}  // namespace rushlight
