#include "graph/dot.h"

#include <algorithm>

#include "ops/operator.h"

namespace rushlight::graph {
namespace {

// Within double quotes; "\l" ends a line that is set to the left.
std::string quoted(std::string_view text) {
  std::string made = "\"";
  for (char letter : text) {
    if (letter == '\n') {
      made += "\\l";
      continue;
    }
    if (letter == '"' || letter == '\\') {
      made += '\\';
    }
    made += letter;
  }
  return made + "\"";
}

std::string shape_text(const ValueInfo& value) {
  return cat(dtype_name(value.dtype), " ", IntArrayRef(value.sizes));
}

// The operator and its attributes, and a line for each result.
std::string node_label(const Graph& graph, const Node& node) {
  std::string label = print(graph, node);
  const size_t start = label.find(" = ");
  label = start == std::string::npos ? label : label.substr(start + 3);
  label += "\n";
  for_each_result(graph, node, [&](int value) {
    label += cat("%", value, ": ", shape_text(graph.value(value)), "\n");
  });
  if (node.line >= 0) {
    label += graph.lines[static_cast<size_t>(node.line)] + "\n";
  }
  return label;
}

std::string_view fill(const Node& node) {
  if (is_view(node)) {
    return "white";
  }
  if (node.form != Form::Functional) {
    return "lightsalmon";
  }
  return node.op->kind == Kind::Elementwise ? "palegreen"
         : node.op->kind == Kind::Reduction ? "khaki"
                                            : "lightblue";
}

class Drawing {
 public:
  explicit Drawing(const Graph& graph)
      : graph_(graph),
        writers_(graph.storages.size(), -1),
        makers_(graph.values.size(), -1),
        drawn_(graph.storages.size()) {}

  std::string body() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      add(static_cast<int>(i));
    }
    return std::move(text_);
  }

 private:
  void add(int number) {
    const Node& node = graph_.nodes[static_cast<size_t>(number)];
    const std::string own = cat("n", number);
    for_each_operand(graph_, node, [&](int value) { connect(source(value), own, value, false); });
    if (node.form != Form::Functional) {
      for_each_result(graph_, node, [&](int value) { connect(source(value), own, value, true); });
    }
    text_ += cat("  ", own, " [label=", quoted(node_label(graph_, node)),
                 ", fillcolor=", std::string(fill(node)), "];\n");
    for_each_result(graph_, node, [&](int value) {
      makers_[static_cast<size_t>(value)] = number;
      if (!is_view(node)) {
        writers_[static_cast<size_t>(graph_.value(value).storage)] = number;
      }
    });
  }

  // What a value is read from: the view that made it, or who wrote its storage after that.
  std::string source(int value) {
    const int maker = makers_[static_cast<size_t>(value)];
    const auto storage = static_cast<size_t>(graph_.value(value).storage);
    const int last = std::max(maker, writers_[storage]);
    if (last >= 0) {
      return cat("n", last);
    }
    std::string input = cat("s", storage);
    if (!drawn_[storage]) {
      drawn_[storage] = true;
      text_ += cat(
          "  ", input, " [shape=ellipse, fillcolor=lightgrey, label=",
          quoted(cat("input ", storage, "\n%", value, ": ", shape_text(graph_.value(value)), "\n")),
          "];\n");
    }
    return input;
  }

  void connect(const std::string& from, const std::string& to, int value, bool written) {
    text_ += cat("  ", from, " -> ", to, " [label=\"%", value, "\"", written ? ", style=bold" : "",
                 "];\n");
  }

  const Graph& graph_;
  std::vector<int> writers_;  // by storage: the node that wrote it last
  std::vector<int> makers_;   // by value: the node that gave it
  std::vector<bool> drawn_;   // by storage: whether its input is in the text
  std::string text_;
};

}  // namespace

std::string to_dot(const Graph& graph, std::string_view name) {
  return cat("digraph ", quoted(name),
             " {\n  node [shape=box, style=filled, fontname=monospace];\n", Drawing(graph).body(),
             "}\n");
}

}  // namespace rushlight::graph
