#include "graph/graph.h"

#include <bit>
#include <unordered_map>

#include "ops/operator.h"

namespace rushlight::graph {

void Graph::clear() {
  nodes.clear();
  slots.clear();
  operands.clear();
  results.clear();
  values.clear();
  storages.clear();
  lines.clear();
}

bool is_view(const Node& node) {
  return node.op->kind == Kind::View;
}

namespace {

// Numbers what it is given in the order of first appearance.
class Symbols {
 public:
  uint64_t of(int64_t value) { return numbers_.try_emplace(value, numbers_.size()).first->second; }

 private:
  std::unordered_map<int64_t, uint64_t> numbers_;
};

uint64_t text_hash(std::string_view text) {
  uint64_t word = text.size();
  for (char letter : text) {
    word = word * 131 + static_cast<unsigned char>(letter);
  }
  return word;
}

// The same for equal values; 0 for those of which nothing is told.
uint64_t content(const Value& value) {
  uint64_t kind = (static_cast<uint64_t>(value.tag()) + 1) * 0x9E3779B97F4A7C15ull;
  switch (value.tag()) {
    case Value::Tag::None:
      return kind;
    case Value::Tag::Bool:
    case Value::Tag::Int:
      return kind ^ static_cast<uint64_t>(value.to_int());
    case Value::Tag::Float:
      return kind ^ std::bit_cast<uint64_t>(value.to_double());
    case Value::Tag::Ints: {
      Hash hash;
      for (int64_t item : value.ints()) {
        hash.mix(static_cast<uint64_t>(item));
      }
      return kind ^ hash.low;
    }
    case Value::Tag::String:
      return kind ^ text_hash(value.text());
    case Value::Tag::DType:
      return kind ^ static_cast<uint64_t>(value.dtype());
    default:
      return 0;
  }
}

// Scalars, floats and numbers in the place of tensors are run-time arguments of kernels: only which
// of them are equal counts, since equal calls run once.
bool is_number(const Argument& declared) {
  return declared.type == SchemaType::Scalar || declared.type == SchemaType::Float ||
         declared.type == SchemaType::Tensor;
}

// 0 and 1 decide about broadcasting and vector code; other sizes do not.
uint64_t size_class(int64_t value) {
  return value == 0 ? 0 : value == 1 ? 1 : 2;
}

void mix_value(Hash& hash, const ValueInfo& value, bool sizes) {
  hash.mix(static_cast<uint64_t>(value.storage) | static_cast<uint64_t>(value.dtype) << 32 |
           static_cast<uint64_t>(value.flags) << 40 |
           static_cast<uint64_t>(value.sizes.size()) << 48);
  for (size_t i = 0; i < value.sizes.size(); ++i) {
    if (sizes) {
      hash.mix(static_cast<uint64_t>(value.sizes[i]));
      hash.mix(static_cast<uint64_t>(value.strides[i]));
    } else {
      hash.mix(size_class(value.sizes[i]) << 2 | size_class(value.strides[i]));
    }
  }
  hash.mix(sizes ? static_cast<uint64_t>(value.offset) : (value.offset == 0 ? 0 : 1));
}

}  // namespace

Hash structural_hash(const Graph& graph, bool sizes) {
  Hash hash;
  Symbols numbers;
  for (const StorageInfo& storage : graph.storages) {
    hash.mix(storage.input ? 1 : 2);
  }
  for (const ValueInfo& value : graph.values) {
    mix_value(hash, value, sizes);
  }
  for (size_t at = 0; at < graph.nodes.size(); ++at) {
    const Node& node = graph.nodes[at];
    if (is_view(node)) {
      continue;
    }
    hash.mix(at);  // plans name nodes by their place, which views before them move
    hash.mix(reinterpret_cast<uintptr_t>(node.op) + static_cast<uint64_t>(node.form));
    bool fusible = node.op->kind == Kind::Elementwise || node.op->kind == Kind::Reduction;
    for (int i = 0; i < node.slot_count; ++i) {
      const Slot& slot = graph.slot(node, i);
      if (slot.count < 0) {
        uint64_t own = content(slot.attribute);
        if (is_number(node.op->schema.arguments[static_cast<size_t>(i)])) {
          hash.mix(static_cast<uint64_t>(slot.attribute.tag()));
          if (sizes) {
            hash.mix(numbers.of(static_cast<int64_t>(own)));
          }
        } else if (sizes || fusible) {
          hash.mix(own);
        }
        continue;
      }
      hash.mix(static_cast<uint64_t>(slot.count));
      for (int k = 0; k < slot.count; ++k) {
        hash.mix(static_cast<uint64_t>(graph.operands[static_cast<size_t>(slot.first + k)] + 1));
      }
    }
    for_each_result(graph, node, [&](int value) { hash.mix(static_cast<uint64_t>(value) << 8); });
  }
  return hash;
}

}  // namespace rushlight::graph
