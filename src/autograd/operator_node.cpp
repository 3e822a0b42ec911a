#include "autograd/operator_node.h"

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <string_view>
#include <tuple>
#include <unordered_set>

#include "autograd/meta.h"
#include "ops/reads_result.h"

namespace rushlight::autograd {
namespace {

bool takes_tensors(const Argument& argument) {
  return argument.type == SchemaType::Tensor;
}

}  // namespace

// Where the parts of a node lie behind it.
struct NodeLayout {
  size_t arguments = 0;
  size_t argument_tensors = 0;
  size_t results = 0;
  size_t dims = 0;

  void count(const Tensor& tensor) {
    dims += tensor.defined() ? static_cast<size_t>(tensor.dim()) : 0;
  }
  explicit NodeLayout(const Invocation& inv);
  OperatorNode* place(const Operator& op) const;
};

NodeLayout::NodeLayout(const Invocation& inv) : arguments(inv.argument_count) {
  const std::vector<Argument>& declared = inv.op->schema.arguments;
  for (size_t i = 0; i < arguments; ++i) {
    const Value& value = inv.arguments[i];
    if (value.is_tensor()) {
      ++argument_tensors;
      count(value.tensor());
    } else if (value.tag() == Value::Tag::Tensors) {
      for (const Tensor& item : value.tensors()) {
        ++argument_tensors;
        count(item);
      }
    } else if (takes_tensors(declared[i]) && !declared[i].list) {
      ++argument_tensors;
    }
  }
  for (int i = 0; i < inv.result_count; ++i) {
    const Value& value = inv.results[i];
    if (value.is_tensor()) {
      ++results;
      count(value.tensor());
    } else if (value.tag() == Value::Tag::Tensors) {
      results += value.tensors().size();
      for (const Tensor& item : value.tensors()) {
        count(item);
      }
    } else {
      ++results;
    }
  }
  if (argument_tensors + results > std::numeric_limits<int16_t>::max()) {
    fail(ErrorKind::Runtime, inv.op->name(), "takes or makes ", argument_tensors + results,
         " tensors: a graph records at most 32767 a call");
  }
}

OperatorNode* NodeLayout::place(const Operator& op) const {
  size_t records = argument_tensors + results;
  size_t bytes = arguments * sizeof(ArgumentRecord) + records * sizeof(TensorRecord) +
                 argument_tensors * sizeof(Edge) + dims * sizeof(int64_t);
  auto* node = new (Node::Tail{bytes}) OperatorNode(op);
  char* at = reinterpret_cast<char*>(node + 1);
  node->arguments_ = reinterpret_cast<ArgumentRecord*>(at);
  at += arguments * sizeof(ArgumentRecord);
  node->records_ = reinterpret_cast<TensorRecord*>(at);
  at += records * sizeof(TensorRecord);
  node->edges_ = reinterpret_cast<Edge*>(at);
  for (size_t i = 0; i < arguments; ++i) {
    new (node->arguments_ + i) ArgumentRecord;
  }
  for (size_t i = 0; i < records; ++i) {
    new (node->records_ + i) TensorRecord;
  }
  for (size_t i = 0; i < argument_tensors; ++i) {
    new (node->edges_ + i) Edge;
  }
  node->argument_count_ = static_cast<uint16_t>(arguments);
  node->argument_tensors_ = static_cast<uint16_t>(argument_tensors);
  node->result_count_ = static_cast<uint16_t>(results);
  node->edge_count_ = static_cast<uint32_t>(argument_tensors);
  return node;
}

OperatorNode::~OperatorNode() {
  for (size_t i = 0; i < argument_count_; ++i) {
    arguments_[i].~ArgumentRecord();
  }
  for (size_t i = 0; i < size_t{argument_tensors_} + result_count_; ++i) {
    records_[i].~TensorRecord();
  }
  for (size_t i = 0; i < edge_count_; ++i) {
    edges_[i].~Edge();
  }
}

namespace {

// Fills the records in order; dimensions go behind the edges.
struct Filler {
  TensorRecord* record;
  int64_t* dims;

  TensorRecord& next(const Tensor& tensor) {
    TensorRecord& filled = *record++;
    if (tensor.defined()) {
      filled.given = true;
      filled.dtype = tensor.dtype();
      filled.device = tensor.device();
      filled.rank = static_cast<uint16_t>(tensor.dim());
      filled.dims = dims;
      dims = std::copy(tensor.sizes().begin(), tensor.sizes().end(), dims);
    }
    return filled;
  }
};

}  // namespace

uint64_t saved_arguments(const Invocation& inv) {
  const Operator& op = *inv.op;
  if (op.reads.empty()) {
    return op.saved_arguments;
  }
  uint64_t mask = 0;
  for (int i = 0; i < inv.argument_count; ++i) {
    const Value& value = inv.arguments[i];
    bool needed =
        value.is_tensor() ? value.tensor().requires_grad() : value.tag() == Value::Tag::Tensors;
    mask |= needed ? op.reads[static_cast<size_t>(i)] : 0;
  }
  return mask;
}

OperatorNode* OperatorNode::make(const Invocation& inv, const Tensor& original) {
  const Operator& op = *inv.op;
  uint64_t saves = saved_arguments(inv);
  NodeLayout layout(inv);
  OperatorNode* node = layout.place(op);
  NodePtr owner(node);  // until all is filled in
  node->name_ = op.node_of(inv);
  Edge* edge = node->edges_;
  Filler filler{node->records_, reinterpret_cast<int64_t*>(edge + layout.argument_tensors)};
  // Programs see what hooks are given and when: in the order of the arguments' names.
  const bool hooked = has_saved_tensor_hooks();
  std::vector<std::tuple<std::string_view, SavedTensor*, Tensor>> later;
  auto add = [&](const Tensor& tensor, bool save, int argument) {
    TensorRecord& record = filler.next(tensor);
    if (tensor.defined()) {
      *edge = gradient_edge(tensor);
      if (save) {
        bool written = original.defined() && argument == op.inplace_argument;
        const Tensor& kept = written ? original : tensor;
        if (op.layout_arguments >> argument & 1) {
          record.saved.save_layout(kept);
        } else {
          node->saves_ = true;
          if (hooked) {
            later.emplace_back(op.schema.arguments[argument].name, &record.saved, kept);
          } else {
            record.saved.save(kept);
          }
        }
      }
    }
    ++edge;
  };
  for (size_t i = 0; i < layout.arguments; ++i) {
    const Value& value = inv.arguments[i];
    ArgumentRecord& argument = node->arguments_[i];
    bool save = saves >> i & 1;
    argument.first = static_cast<uint16_t>(edge - node->edges_);
    if (value.is_tensor()) {
      argument.count = 1;
      argument.value = Value(true);
      add(value.tensor(), save, static_cast<int>(i));
    } else if (value.tag() == Value::Tag::Tensors) {
      argument.is_list = true;
      argument.count = static_cast<uint16_t>(value.tensors().size());
      argument.value = Value(true);
      for (const Tensor& item : value.tensors()) {
        add(item, save, static_cast<int>(i));
      }
    } else {
      argument.value = value;
      const Argument& declared = op.schema.arguments[i];
      if (takes_tensors(declared) && !declared.list) {
        argument.count = 1;
        add(Tensor(), false, static_cast<int>(i));
      }
    }
  }
  std::ranges::stable_sort(later, {}, [](const auto& entry) { return std::get<0>(entry); });
  for (auto& [name, saved, tensor] : later) {
    saved->save(tensor);
  }
  for (int i = 0; i < inv.result_count; ++i) {
    const Value& value = inv.results[i];
    if (value.tag() == Value::Tag::Tensors) {
      for (const Tensor& item : value.tensors()) {
        filler.next(item);
      }
    } else {
      filler.next(value.is_tensor() ? value.tensor() : Tensor());
    }
  }
  return static_cast<OperatorNode*>(owner.release());
}

void OperatorNode::save_results(const Invocation& inv) {
  if (op_->saved_results == 0) {
    return;
  }
  const std::vector<uint64_t>& reads = op_->reads;
  if (std::any_of(reads.begin(), reads.end(), reads_result) &&
      !reads_result(saved_arguments(inv))) {
    return;  // the gradients that read it are not wanted
  }
  int record = argument_tensors_;
  for (int i = 0; i < inv.result_count; ++i) {
    const Value& value = inv.results[i];
    bool save = op_->saved_results >> i & 1;
    int count = value.tag() == Value::Tag::Tensors ? static_cast<int>(value.tensors().size()) : 1;
    for (int k = 0; save && k < count; ++k) {
      const Tensor& tensor = value.tag() == Value::Tag::Tensors
                                 ? value.tensors()[static_cast<size_t>(k)]
                                 : value.tensor();
      records_[record + k].saved.save(tensor, record + k - argument_tensors_);
      saves_ = true;
    }
    record += count;
  }
}

InputMetadata OperatorNode::input(uint32_t i) const {
  const TensorRecord& record = result(static_cast<int>(i));
  return {record.sizes(), record.dtype, record.device};
}

Tensor OperatorNode::unpack(const SavedTensor& saved) {
  SavedTensor kept;
  {
    std::lock_guard lock(mutex_);
    if (released_ && saves_) {
      fail_released();
    }
    kept = saved;
  }
  // Hooks run without the lock.
  return kept.unpack(this);
}

Tensor OperatorNode::unpack_argument(int i) {
  return unpack(records_[i].saved);
}

Tensor OperatorNode::unpack_result(int i) {
  return unpack(records_[argument_tensors_ + i].saved);
}

void OperatorNode::release_saved() {
  // Dropped without the lock: that may free other nodes.
  std::array<SavedTensor, 4> few;
  std::vector<SavedTensor> many;
  size_t count = 0;
  std::lock_guard lock(mutex_);
  released_ = true;
  if (!saves_) {
    return;
  }
  for (size_t i = 0; i < size_t{argument_tensors_} + result_count_; ++i) {
    SavedTensor& saved = records_[i].saved;
    if (!saved.is_set()) {
      continue;
    }
    if (count < few.size()) {
      few[count++] = std::move(saved);
    } else {
      many.push_back(std::move(saved));
    }
  }
}

std::string OperatorNode::name() const {
  return name_ != nullptr ? name_ : backward_name(*op_);
}

std::vector<Edge> OperatorNode::outer_edges() const {
  auto inner = [&](const Edge& edge) {
    const auto* node = dynamic_cast<const OperatorNode*>(edge.node.get());
    return node != nullptr && node->sequence() >= first_node_ ? node : nullptr;
  };
  std::vector<Edge> outer;
  std::vector<Edge> open;  // the next one last
  std::unordered_set<const Node*> seen;
  // Edges to nothing of a node within are counts and the like: they are no argument's.
  auto push = [&](const Node& node) {
    const Edge* edges = &node.edge(0);
    const uint32_t count = node.edge_count();
    const bool has_inner = std::any_of(edges, edges + count, inner);
    for (uint32_t i = count; i-- > 0;) {
      if (!has_inner || edges[i]) {
        open.push_back(edges[i]);
      }
    }
  };
  if (edge_count() != 0) {
    push(*this);
  }
  while (!open.empty()) {
    const Edge edge = std::move(open.back());
    open.pop_back();
    const OperatorNode* node = inner(edge);
    if (node == nullptr) {
      outer.push_back(edge);
    } else if (seen.insert(node).second && node->edge_count() != 0) {
      push(*node);
    }
  }
  if (op().name() == "linear" && outer.size() == 3) {
    std::rotate(outer.begin(), outer.end() - 1, outer.end());  // as of addmm, the bias comes first
  }
  return outer;
}

std::string backward_name(const Operator& op) {
  std::string name;
  bool upper = true;
  for (char c : op.name()) {
    if (c != '_') {
      name += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    }
    upper = c == '_' || (c >= '0' && c <= '9');  // "Log1P"
  }
  if (name == "Copy") {
    return "CopyBackwards";
  }
  int position = 0;
  for (const Operator* other : Table::instance().overloads(op.name())) {
    if (other == &op) {
      break;
    }
    position += other->differentiable && other->kind != Kind::Composition ? 1 : 0;
  }
  return cat(name, "Backward", position);
}

}  // namespace rushlight::autograd
