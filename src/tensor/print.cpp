// The layout of a printed tensor: brackets, lines, summaries, and what follows the numbers.
#include <rushlight/printing.h>

#include <algorithm>
#include <mutex>
#include <optional>

#include "tensor/print_number.h"

namespace rushlight {

std::string (*grad_fn_name)(const Tensor& tensor) = nullptr;

namespace {

std::mutex options_mutex;
PrintOptions global_options;

std::string tuple_text(IntArrayRef sizes) {
  std::string text = "(";
  for (size_t i = 0; i < sizes.size(); ++i) {
    text += cat(i == 0 ? "" : ", ", sizes[i]);
  }
  return text + (sizes.size() == 1 ? ",)" : ")");
}

class Printer {
 public:
  Printer(const Tensor& tensor, const PrintOptions& options)
      : tensor_(tensor), options_(options), summarize_(tensor.numel() > options.threshold) {
    std::vector<Scalar> values;
    collect(0, 0, values);
    if (!tensor.is_complex()) {
      first_.emplace(values, tensor.is_floating_point(), options);
      return;
    }
    std::vector<Scalar> real;
    std::vector<Scalar> imaginary;
    for (const Scalar& value : values) {
      real.emplace_back(value.to_complex().real());
      imaginary.emplace_back(value.to_complex().imag());
    }
    first_.emplace(real, true, options);
    second_.emplace(imaginary, true, options);
  }

  std::string text(size_t indent) const { return block(0, 0, indent); }

 private:
  // Calls visit(offset) for the indices of a dimension that are shown, and gap() between its ends.
  template <typename Visit, typename Gap>
  void shown(int64_t dim, int64_t offset, Visit&& visit, Gap&& gap) const {
    const int64_t size = tensor_.sizes()[dim];
    const int64_t stride = tensor_.strides()[dim];
    const int64_t edge = options_.edge_items;
    const bool cut = summarize_ && size > 2 * edge;
    for (int64_t i = 0; i < (cut ? edge : size); ++i) {
      visit(offset + i * stride);
    }
    if (cut) {
      gap();
      for (int64_t i = size - edge; i < size; ++i) {
        visit(offset + i * stride);
      }
    }
  }

  void collect(int64_t dim, int64_t offset, std::vector<Scalar>& out) const {
    if (dim == tensor_.dim()) {
      out.push_back(element(offset));
      return;
    }
    shown(dim, offset, [&](int64_t at) { collect(dim + 1, at, out); }, [] {});
  }

  Scalar element(int64_t offset) const {
    const char* data = static_cast<const char*>(tensor_.data());
    return read_element(data + offset * tensor_.element_size(), tensor_.dtype());
  }

  std::string number(int64_t offset) const {
    const Scalar value = element(offset);
    if (!second_) {
      return first_->format(value);
    }
    const std::string real = first_->format(value.to_complex().real());
    std::string imaginary = second_->format(value.to_complex().imag()) + "j";
    imaginary.erase(0, imaginary.find_first_not_of(' '));
    return real + (imaginary[0] == '-' ? "" : "+") + imaginary;
  }

  std::string vector(int64_t offset, size_t indent) const {
    const size_t length = first_->width() + 2 + (second_ ? second_->width() + 1 : 0);
    const size_t line = static_cast<size_t>(options_.line_width);
    const size_t per_line = std::max<size_t>(1, line > indent ? (line - indent) / length : 0);
    const std::string line_break = cat(",\n", std::string(indent + 1, ' '));
    std::string text = "[";
    size_t count = 0;
    const auto add = [&](const std::string& item) {
      if (count != 0) {
        text += count % per_line == 0 ? line_break : ", ";
      }
      text += item;
      ++count;
    };
    const bool all_cut = summarize_ && options_.edge_items == 0;
    shown(
        tensor_.dim() - 1, offset, [&](int64_t at) { add(number(at)); },
        [&] { add(all_cut ? "..." : " ..."); });
    return text + "]";
  }

  std::string block(int64_t dim, int64_t offset, size_t indent) const {
    const int64_t left = tensor_.dim() - dim;
    if (left == 0) {
      return number(offset);
    }
    if (left == 1) {
      return vector(offset, indent);
    }
    std::string separator = ",";
    separator.append(static_cast<size_t>(left - 1), '\n');
    separator.append(indent + 1, ' ');
    std::string text = "[";
    const auto add = [&](const std::string& item) {
      text += text.size() == 1 ? "" : separator;
      text += item;
    };
    shown(
        dim, offset, [&](int64_t at) { add(block(dim + 1, at, indent + 1)); }, [&] { add("..."); });
    return text + "]";
  }

  const Tensor& tensor_;
  const PrintOptions& options_;
  bool summarize_;
  std::optional<NumberStyle> first_;
  std::optional<NumberStyle> second_;  // of imaginary parts
};

// Whether the dtype is what a reader assumes from the numbers.
bool is_default_dtype(DType dtype) {
  const DType complex = default_dtype() == DType::Float64 ? DType::Complex128 : DType::Complex64;
  return dtype == default_dtype() || dtype == complex || dtype == DType::Int64 ||
         dtype == DType::Bool;
}

std::string contents(const Tensor& tensor, const PrintOptions& options, size_t indent,
                     std::vector<std::string>& suffixes) {
  const std::string dtype = cat("dtype=torch.", dtype_name(tensor.dtype()));
  const std::string size = "size=" + tuple_text(tensor.sizes());
  if (!tensor.is_cpu()) {
    suffixes.push_back("device='" + tensor.device().to_string() + "'");
  }
  if (tensor.is_meta()) {
    suffixes.push_back(size);
    if (tensor.dtype() != default_dtype()) {
      suffixes.push_back(dtype);
    }
    return "...";
  }
  if (tensor.numel() == 0) {
    if (tensor.dim() != 1) {
      suffixes.push_back(size);
    }
    // No element shows what the dtype is.
    if (tensor.dtype() != default_dtype()) {
      suffixes.push_back(dtype);
    }
    return "[]";
  }
  if (options.edge_items == 0) {
    suffixes.push_back(size);
  }
  if (!is_default_dtype(tensor.dtype())) {
    suffixes.push_back(dtype);
  }
  return Printer(tensor, options).text(indent);
}

std::string join(std::string text, const std::vector<std::string>& suffixes, size_t indent,
                 const PrintOptions& options) {
  const size_t line_start = text.rfind('\n');
  // PyTorch counts from before the line's first character, and two more for a single line.
  size_t line = line_start == std::string::npos ? text.size() + 2 : text.size() - line_start + 1;
  for (const std::string& suffix : suffixes) {
    if (line + suffix.size() + 2 > static_cast<size_t>(options.line_width)) {
      text += cat(",\n", std::string(indent, ' '), suffix);
      line = indent + suffix.size();
    } else {
      text += cat(", ", suffix);
      line += suffix.size() + 2;
    }
  }
  return text + ")";
}

}  // namespace

PrintOptions print_options() {
  std::lock_guard lock(options_mutex);
  return global_options;
}

void set_print_options(const PrintOptions& options) {
  std::lock_guard lock(options_mutex);
  global_options = options;
}

std::string to_string(const Tensor& tensor, std::string_view name, const PrintOptions& options) {
  if (!tensor.defined()) {
    return "None";
  }
  const std::string start = std::string(name) + "(";
  std::vector<std::string> suffixes;
  const std::string text = contents(tensor, options, start.size(), suffixes);
  const std::string function = grad_fn_name != nullptr ? grad_fn_name(tensor) : "";
  if (!function.empty()) {
    suffixes.push_back("grad_fn=<" + function + ">");
  } else if (tensor.requires_grad()) {
    suffixes.push_back("requires_grad=True");
  }
  return join(start + text, suffixes, start.size(), options);
}

std::string to_string(const Tensor& tensor, std::string_view name) {
  return to_string(tensor, name, print_options());
}

std::string Tensor::to_string() const {
  return rushlight::to_string(*this);
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  return out << to_string(tensor);
}

}  // namespace rushlight
