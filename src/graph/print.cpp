// The text form of graphs.
//
//   storage 0 input 48
//   value 0 storage 0 float32 [3, 4] [4, 1] at 0 contiguous
//   %1 = add.Tensor(%0, 2.0, alpha=1)
//   %1 = inplace mul.Tensor(%1, %0)
#include <charconv>
#include <cmath>

#include "graph/graph.h"
#include "ops/operator.h"

namespace rushlight::graph {
namespace {

std::string real_text(double value) {
  if (std::isnan(value)) {
    return "nan";
  }
  if (std::isinf(value)) {
    return value < 0 ? "-inf" : "inf";
  }
  char buffer[40];
  auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
  std::string text(buffer, end);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string quoted(std::string_view text) {
  std::string made = "\"";
  for (char letter : text) {
    if (letter == '"' || letter == '\\') {
      made += '\\';
    }
    made += letter;
  }
  return made + "\"";
}

std::string scalar_text(const Scalar& value) {
  if (value.is_complex()) {
    std::complex<double> number = value.to_complex();
    return cat("complex(", real_text(number.real()), ", ", real_text(number.imag()), ")");
  }
  return value.is_boolean()          ? (value.to_bool() ? "true" : "false")
         : value.is_floating_point() ? real_text(value.to_double())
                                     : value.to_string();
}

template <typename List, typename F>
std::string list_text(const List& list, F&& item_text) {
  std::string made = "[";
  bool first = true;
  for (const auto& item : list) {
    made += first ? "" : ", ";
    made += item_text(item);
    first = false;
  }
  return made + "]";
}

std::string attribute_text(const Value& value) {
  switch (value.tag()) {
    case Value::Tag::None:
      return "none";
    case Value::Tag::Bool:
    case Value::Tag::Int:
    case Value::Tag::UInt:
    case Value::Tag::Float:
    case Value::Tag::Complex:
      return scalar_text(value.to_scalar());
    case Value::Tag::Ints:
      return list_text(value.ints(), [](int64_t item) { return std::to_string(item); });
    case Value::Tag::Floats:
      return "floats " + list_text(value.floats(), real_text);
    case Value::Tag::Bools:
      return "bools " + list_text(value.bools(),
                                  [](bool item) { return std::string(item ? "true" : "false"); });
    case Value::Tag::Scalars:
      return "scalars " + list_text(value.scalars(), scalar_text);
    case Value::Tag::String:
      return quoted(value.text());
    case Value::Tag::DType:
      return cat("dtype ", dtype_name(value.dtype()));
    case Value::Tag::Device:
      return "device " + value.device().to_string();
    case Value::Tag::Layout:
      return cat("layout ", static_cast<int>(value.layout()));
    case Value::Tag::MemoryFormat:
      return cat("memory_format ", static_cast<int>(value.memory_format()));
    case Value::Tag::Generator:
      return "generator";
    default:
      break;
  }
  fail(ErrorKind::Internal, "graph", "an attribute is a tensor");
}

std::string operand_text(const Graph& graph, const Slot& slot) {
  if (slot.count < 0) {
    return attribute_text(slot.attribute);
  }
  std::string made = slot.list ? "tensors [" : "";
  for (int i = 0; i < slot.count; ++i) {
    int value = graph.operands[static_cast<size_t>(slot.first + i)];
    made += i == 0 ? "" : ", ";
    made += value < 0 ? "none" : cat("%", value);
  }
  return slot.list ? made + "]" : made;
}

std::string value_text(const ValueInfo& value) {
  std::string made =
      cat("storage ", value.storage, " ", dtype_name(value.dtype), " ", IntArrayRef(value.sizes),
          " ", IntArrayRef(value.strides), " at ", value.offset);
  if ((value.flags & TensorImpl::kContiguous) != 0) {
    made += " contiguous";
  }
  if ((value.flags & TensorImpl::kWrappedNumber) != 0) {
    made += " number";
  }
  return made;
}

}  // namespace

std::string print(const Graph& graph, const Node& node) {
  std::string made;
  for (int i = 0; i < node.result_count; ++i) {
    int value = graph.result(node, i);
    made += i == 0 ? "" : ", ";
    made += value < 0 ? "none" : cat("%", value);
  }
  made += node.form == Form::Inplace ? " = inplace " : node.form == Form::Out ? " = out " : " = ";
  made += node.op->schema.full_name();
  made += "(";
  for (int i = 0; i < node.slot_count; ++i) {
    const Argument& argument = node.op->schema.arguments[static_cast<size_t>(i)];
    made += i == 0 ? "" : ", ";
    made += argument.name + "=" + operand_text(graph, graph.slot(node, i));
  }
  return made + ")";
}

std::string print(const Graph& graph) {
  std::string made;
  for (size_t i = 0; i < graph.storages.size(); ++i) {
    const StorageInfo& storage = graph.storages[i];
    made += cat("storage ", i, storage.input ? " input " : " ", storage.bytes, "\n");
  }
  for (size_t i = 0; i < graph.values.size(); ++i) {
    made += cat("value ", i, " ", value_text(graph.values[i]), "\n");
  }
  for (const Node& node : graph.nodes) {
    made += print(graph, node) + "\n";
  }
  return made;
}

std::string verify(const Graph& graph) {
  std::vector<bool> written(graph.storages.size());
  for (size_t i = 0; i < graph.storages.size(); ++i) {
    written[i] = graph.storages[i].input;
  }
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const ValueInfo& value = graph.values[i];
    if (value.storage < 0 || value.storage >= static_cast<int>(graph.storages.size())) {
      return cat("value ", i, " lies in storage ", value.storage, ", which is not there");
    }
    if (value.sizes.size() != value.strides.size()) {
      return cat("value ", i, " has ", value.sizes.size(), " sizes and ", value.strides.size(),
                 " strides");
    }
    int64_t low = value.offset;
    int64_t high = value.offset;
    bool empty = false;
    for (size_t d = 0; d < value.sizes.size(); ++d) {
      empty = empty || value.sizes[d] == 0;
      int64_t reach = (value.sizes[d] - 1) * value.strides[d];
      (reach < 0 ? low : high) += reach;
    }
    auto bytes = static_cast<int64_t>(graph.storages[static_cast<size_t>(value.storage)].bytes);
    if (!empty && (low < 0 || (high + 1) * element_size(value.dtype) > bytes)) {
      return cat("value ", i, " reaches out of its storage of ", bytes,
                 " bytes: ", value_text(value));
    }
  }
  for (const Node& node : graph.nodes) {
    std::string wrong;
    if (node.slot_count != static_cast<int>(node.op->schema.arguments.size())) {
      wrong = cat("it has ", node.slot_count, " arguments, its schema ",
                  node.op->schema.arguments.size());
    }
    auto check = [&](int value, bool needs_contents) {
      if (value >= static_cast<int>(graph.values.size())) {
        wrong = cat("%", value, " is not there");
      } else if (needs_contents && !written[static_cast<size_t>(graph.value(value).storage)]) {
        wrong = cat("%", value, " is read before anything is written to its storage");
      }
    };
    for_each_operand(graph, node, [&](int value) { check(value, !is_view(node)); });
    for_each_result(graph, node, [&](int value) {
      check(value, false);
      if (wrong.empty() && !is_view(node)) {
        written[static_cast<size_t>(graph.value(value).storage)] = true;
      }
    });
    if (!wrong.empty()) {
      return cat(print(graph, node), ": ", wrong);
    }
  }
  return "";
}

}  // namespace rushlight::graph
