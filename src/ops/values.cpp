#include <rushlight/values.h>

namespace rushlight::detail {

Tensor tensor_of_values(const std::vector<Scalar>& values, IntArrayRef sizes, DType dtype,
                        const TensorOptions& options) {
  const Tensor made = make_tensor(sizes, dtype);
  if (made.numel() != static_cast<int64_t>(values.size())) {
    fail(ErrorKind::Value, "tensor", "expected ", made.numel(), " values for the shape ", sizes,
         ", got ", values.size());
  }
  char* at = static_cast<char*>(made.data());
  for (const Scalar& value : values) {
    write_element(at, dtype, value);
    at += made.element_size();
  }
  const Tensor placed =
      options.device_ && !options.device_->is_cpu() ? to(made, *options.device_) : made;
  if (options.requires_grad_) {
    placed.requires_grad_();
  }
  return placed;
}

}  // namespace rushlight::detail
