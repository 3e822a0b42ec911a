#include <rushlight/error.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "loop/text.h"

namespace rushlight::loop {
namespace {

std::string_view ir_name(DType dtype) {
  return rushlight::info(dtype).ir_name;
}

std::string constant_text(const Node& node) {
  if (node.dtype == DType::Bool) {
    return node.bits ? "true" : "false";
  }
  std::string digits;
  if (node.dtype == DType::UInt64) {
    digits = cat(node.bits);
  } else if (!is_floating(node.dtype)) {
    digits = cat(static_cast<int64_t>(node.bits));
  } else if (std::isnan(node.constant())) {
    digits = "nan";
  } else if (node.dtype == DType::Float32) {
    // The shortest text of the f32, which is shorter than that of the equal f64.
    char text[32];
    digits.assign(text, std::to_chars(text, text + 32, static_cast<float>(node.constant())).ptr);
  } else {
    digits = cat(node.constant());
  }
  return cat(digits, ":", ir_name(node.dtype));
}

class Printer {
 public:
  explicit Printer(std::span<const Expr> roots) : order_(post_order(roots)) {
    for (Expr root : roots) {
      ++uses_[root.node];
    }
    for (Expr expr : order_) {
      for (Expr input : expr->inputs) {
        ++uses_[input.node];
      }
    }
    for (Expr expr : order_) {
      render(expr);
    }
  }

  const std::string& lines() const { return lines_; }
  const std::string& text(Expr expr) const { return texts_.at(expr.node); }

 private:
  void render(Expr expr) {
    const Node& node = *expr.node;
    std::string text = node_text(node);
    bool leaf = info(node.op).arity == Arity::Leaf;
    int depth = leaf ? 0 : 1;
    for (Expr input : node.inputs) {
      depth = std::max(depth, depths_.at(input.node) + 1);
    }
    if (!leaf && (uses_.at(expr.node) > 1 || depth > kPrintedDepth)) {
      std::string name = cat("%", count_++);
      lines_ += cat(name, " = ", text, "\n");
      text = name;
      depth = 0;
    }
    depths_[expr.node] = depth;
    texts_[expr.node] = text;
  }

  std::string node_text(const Node& node) const {
    std::string_view name = info(node.op).text;
    int slot = node.slot;
    switch (node.op) {
      case Op::Const:
        return constant_text(node);
      case Op::Scalar:
        return cat("s", slot, ":", ir_name(node.dtype));
      case Op::Index:
        return cat("i", slot);
      case Op::Extent:
        return cat("n", slot);
      case Op::Load:
      case Op::LoadIf:
        return cat(name, ".", ir_name(node.buffer), "(b", slot, operands(node, ", "), ")");
      case Op::Cast:
      case Op::Bitcast:
        return cat(name, ".", ir_name(node.buffer), "(", operands(node, ""), ")");
      case Op::Reduce:
      case Op::Scan:
        return cat(name, ".", combine_text(node.combine), "(i", slot, operands(node, ", "), ")");
      default:
        return cat(name, "(", operands(node, ""), ")");
    }
  }

  std::string operands(const Node& node, std::string_view before) const {
    std::string out;
    for (Expr input : node.inputs) {
      out += out.empty() ? before : ", ";
      out += texts_.at(input.node);
    }
    return out;
  }

  std::vector<Expr> order_;
  std::unordered_map<const Node*, int> uses_;
  std::unordered_map<const Node*, int> depths_;
  std::unordered_map<const Node*, std::string> texts_;
  std::string lines_;
  int count_ = 0;
};

std::string quoted_name(const std::string& name) {
  std::string out = "\"";
  for (char c : name) {
    if (c == '"' || c == '\\') {
      out += '\\';
    }
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string declarations(const Kernel& kernel) {
  std::string out = cat("kernel ", quoted_name(kernel.name), "\n");
  for (size_t i = 0; i < kernel.axes.size(); ++i) {
    out += cat("axis ", i, " ", kAxisTexts[static_cast<int>(kernel.axes[i])], "\n");
  }
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    out += cat("buffer ", i, " ", ir_name(kernel.buffers[i].dtype));
    for (Layout layout : kernel.buffers[i].dims) {
      out += cat(" ", kLayoutTexts[static_cast<int>(layout)]);
    }
    out += "\n";
  }
  for (size_t i = 0; i < kernel.scalars.size(); ++i) {
    out += cat("scalar ", i, " ", ir_name(kernel.scalars[i]), "\n");
  }
  return out;
}

std::string store_text(const Store& store, const Printer& printer) {
  std::string out = cat(kStoreTexts[static_cast<int>(store.mode)], " b", store.buffer, "(");
  for (size_t i = 0; i < store.indices.size(); ++i) {
    out += cat(i ? ", " : "", printer.text(store.indices[i]));
  }
  out += cat(") = ", printer.text(store.value));
  if (store.mask) {
    out += cat(" if ", printer.text(store.mask));
  }
  return out + "\n";
}

}  // namespace

std::string print(Expr expr) {
  if (!expr) {
    return "null";
  }
  Printer printer({&expr, 1});
  return printer.lines() + printer.text(expr);
}

std::string print(const Kernel& kernel) {
  Printer printer(roots(kernel));
  std::string out = declarations(kernel) + printer.lines();
  for (const Store& store : kernel.stores) {
    out += store_text(store, printer);
  }
  return out;
}

}  // namespace rushlight::loop
