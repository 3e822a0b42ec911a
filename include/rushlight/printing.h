// Tensors as text: PyTorch's repr, character for character.
#pragma once

#include <rushlight/tensor.h>

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

namespace rushlight {

struct PrintOptions {
  int precision = 4;                 // digits after the point
  int64_t threshold = 1000;          // tensors of more elements are summarised
  int64_t edge_items = 3;            // elements shown at each end of a summarised dimension
  int64_t line_width = 80;           // characters
  std::optional<bool> scientific{};  // absent: where the range of the values asks for it
};

// The options of the whole process.
RUSHLIGHT_API PrintOptions print_options();
RUSHLIGHT_API void set_print_options(const PrintOptions& options);

// "tensor([1., 2.], requires_grad=True)". `name` stands before the bracket: subclasses give theirs.
RUSHLIGHT_API std::string to_string(const Tensor& tensor, std::string_view name = "tensor");
RUSHLIGHT_API std::string to_string(const Tensor& tensor, std::string_view name,
                                    const PrintOptions& options);
RUSHLIGHT_API std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

// What grad_fn=<...> shows of a tensor, empty where it has none; installed by autograd.
extern std::string (*grad_fn_name)(const Tensor& tensor);

}  // namespace rushlight
