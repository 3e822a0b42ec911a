#include "core_call.h"

#include <vector>

#include "py.h"

namespace rushlight::python {

Tensor call_named(std::string_view name, const Tensor& self,
                  std::initializer_list<std::pair<std::string_view, Value>> arguments) {
  const Operator& op = find_operator(name);
  std::vector<Value> values;
  for (const Argument& argument : op.schema.arguments) {
    values.push_back(argument.default_value);
  }
  values[0] = Value::borrow(self);
  for (const auto& [key, value] : arguments) {
    int at = op.schema.find(key);
    RUSHLIGHT_ASSERT(at >= 0);
    values[static_cast<size_t>(at)] = value;
  }
  Value result;
  Invocation inv{&op, Form::Functional, static_cast<uint8_t>(values.size()),
                 1,   values.data(),    &result};
  {
    GilRelease release(self.numel() > 16384);
    invoke(inv);
  }
  return result.take_tensor();
}

Tensor converted(const Tensor& tensor, DType dtype) {
  return tensor.dtype() == dtype ? tensor : call_named("_to_copy", tensor, {{"dtype", dtype}});
}

}  // namespace rushlight::python
