// Lets a pointwise kernel that follows a matrix product run on each block of the product as soon as
// that is complete: the block is still in the cache, and the threads need not meet in between.
#include <algorithm>

#include "compile/fused.h"
#include "compile/passes.h"
#include "ops/matmul.h"
#include "ops/operator.h"

namespace rushlight::compiler {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueInfo;

bool is_contiguous(const ValueInfo& value) {
  int64_t expected = 1;
  for (size_t i = value.sizes.size(); i-- > 0;) {
    if (value.sizes[i] != 1 && value.strides[i] != expected) {
      return false;
    }
    expected *= value.sizes[i];
  }
  return true;
}

class Joiner {
 public:
  explicit Joiner(Draft& draft)
      : draft_(draft), graph_(draft.graph), users_(users_of(draft.graph, draft.dropped)) {
    group_of_.resize(graph_.nodes.size(), -1);
    for (size_t i = 0; i < draft_.groups.size(); ++i) {
      for (int number : draft_.groups[i].nodes) {
        group_of_[static_cast<size_t>(number)] = static_cast<int>(i);
      }
    }
  }

  int run() {
    std::vector<bool> taken(draft_.groups.size());
    int joined = 0;
    for (size_t i = 0; i < draft_.groups.size(); ++i) {
      Group& group = draft_.groups[i];
      std::optional<Space> space = points(group);
      int product = space ? find_product(group, static_cast<int>(i), *space) : -1;
      if (product < 0) {
        continue;
      }
      group.space = *space;
      group.fuses = true;
      group.product = product;
      size_t left = static_cast<size_t>(group_of_[static_cast<size_t>(product)]);
      taken[left] = true;
      group_of_[static_cast<size_t>(product)] = static_cast<int>(i);
      ++joined;
    }
    size_t kept = 0;
    for (size_t i = 0; i < draft_.groups.size(); ++i) {
      if (!taken[i]) {
        if (kept != i) {
          draft_.groups[kept] = std::move(draft_.groups[i]);
        }
        ++kept;
      }
    }
    draft_.groups.resize(kept);
    return joined;
  }

 private:
  const Node& node(int number) const { return graph_.nodes[static_cast<size_t>(number)]; }

  // The space of a group without reductions: of a kernel, or of one operator that may become one.
  std::optional<Space> points(const Group& group) const {
    if (group.fuses) {
      return group.space.axis.empty() ? std::optional<Space>(group.space) : std::nullopt;
    }
    const Node& only = node(group.nodes.front());
    std::optional<Wanted> wanted = wanted_space(graph_, only);
    if (group.nodes.size() != 1 || only.form != Form::Functional || !wanted ||
        !wanted->axis.empty()) {
      return std::nullopt;
    }
    Group alone = group;
    alone.space = {wanted->shape, wanted->axis};
    return shape_value(graph_, alone) >= 0 ? std::optional<Space>(alone.space) : std::nullopt;
  }

  // A product that the group reads element for element, and that may as well run just before it.
  int find_product(const Group& group, int number, const Space& space) const {
    int found = -1;
    for (int reader : group.nodes) {
      for_each_operand(graph_, node(reader), [&](int id) {
        const ValueInfo& value = graph_.value(id);
        int maker = users_[static_cast<size_t>(value.storage)].front();
        if (found < 0 && IntArrayRef(value.sizes) == IntArrayRef(space.shape) &&
            makes(maker, value) && reads_alike(group, value) && may_wait(maker, group, number)) {
          found = maker;
        }
      });
    }
    return found;
  }

  // Whether the node is a product, run by its operator, of all of the value.
  bool makes(int maker, const ValueInfo& value) const {
    const Node& product = node(maker);
    int group = group_of_[static_cast<size_t>(maker)];
    if (group < 0 || !is_product(*product.op) || product.form != Form::Functional ||
        draft_.groups[static_cast<size_t>(group)].nodes.size() != 1 ||
        draft_.groups[static_cast<size_t>(group)].nodes.front() != maker) {
      return false;
    }
    const ValueInfo& made = graph_.value(graph_.result(product, 0));
    return is_floating(made.dtype) && made.storage == value.storage && is_contiguous(made) &&
           is_same_memory(made, value);
  }

  static bool is_same_memory(const ValueInfo& a, const ValueInfo& b) {
    return a.dtype == b.dtype && a.offset == b.offset && a.numel == b.numel && is_contiguous(b);
  }

  // Whether the group sees that storage in this one way.
  bool reads_alike(const Group& group, const ValueInfo& value) const {
    bool alike = true;
    auto look = [&](int id) {
      const ValueInfo& other = graph_.value(id);
      alike =
          alike &&
          (other.storage != value.storage ||
           (is_same_memory(value, other) && IntArrayRef(other.sizes) == IntArrayRef(value.sizes)));
    };
    for (int number : group.nodes) {
      for_each_operand(graph_, node(number), look);
      for_each_result(graph_, node(number), look);
    }
    return alike;
  }

  // Whether no group up to this one needs the product earlier or changes what it reads.
  bool may_wait(int maker, const Group& group, int number) const {
    const Node& product = node(maker);
    int made = graph_.value(graph_.result(product, 0)).storage;
    std::vector<int> inputs;
    for_each_operand(graph_, product,
                     [&](int value) { inputs.push_back(graph_.value(value).storage); });
    bool free = true;
    auto writes = [&](const Node& other) {
      for_each_result(graph_, other, [&](int value) {
        int storage = graph_.value(value).storage;
        free = free && std::find(inputs.begin(), inputs.end(), storage) == inputs.end();
      });
    };
    int first = group_of_[static_cast<size_t>(maker)];
    for (int between = first + 1; between < number; ++between) {
      for_each_node(draft_.groups[static_cast<size_t>(between)], [&](int other) {
        writes(node(other));
        auto touches = [&](int value) { free = free && graph_.value(value).storage != made; };
        for_each_operand(graph_, node(other), touches);
        for_each_result(graph_, node(other), touches);
      });
    }
    for (int other : group.nodes) {
      writes(node(other));
    }
    return free;
  }

  Draft& draft_;
  const Graph& graph_;
  Users users_;
  std::vector<int> group_of_;
};

}  // namespace

int join_products(Draft& draft) {
  return Joiner(draft).run();
}

}  // namespace rushlight::compiler
