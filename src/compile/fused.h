// A fused group as a kernel: built once for each way in which its operands lie in memory, run with
// the sizes and pointers of the segment at hand.
#pragma once

#include <deque>
#include <functional>
#include <mutex>

#include "compile/fusion.h"
#include "graph/capture.h"
#include "loop/kernel.h"

namespace rushlight::compiler {

// Where a kernel's run-time scalar comes from.
struct FusedScalar {
  int node;
  int argument;
  DType dtype;
};

class Fused {
 public:
  // `stored`: by storage, whether anybody reads it after the group.
  Fused(const graph::Graph& graph, Group group, const std::vector<bool>& stored);

  // Whether a graph of other sizes may be run by it: its nodes lie in one space there too, in the
  // same relations.
  bool fits(const graph::Graph& graph) const;

  // Compiles what run would compile for this segment.
  void prepare(const graph::Segment& segment);
  // Allocates what it stores and runs.
  void run(graph::Segment& segment);

  const Group& group() const { return group_; }
  // "fused: mul+add": its operators, for profiles.
  const std::string& name() const { return name_; }
  // Storages that it fills.
  const std::vector<int>& made() const { return made_; }
  // The storage of the product that it runs; -1: none.
  int product_storage(const graph::Graph& graph) const;

 private:
  struct Operand {
    int value;
    Fit fit;
    bool store;
  };
  struct Bound;
  struct Compiled {
    std::vector<uint8_t> layouts;
    loop::KernelFunction function;
    std::vector<FusedScalar> scalars;
    double cost;
  };

  void find_operands(const graph::Graph& graph, const std::vector<bool>& stored);
  std::vector<Place> places(const graph::Graph& graph, const Space& space) const;
  void bind(const graph::Segment& segment, bool pointers, Bound& bound) const;
  const Compiled& compiled(const graph::Graph& graph, const Bound& bound);
  void run_with_product(graph::Segment& segment);
  void run_bound(const graph::Segment& segment, const Bound& bound);

  Group group_;
  std::string name_ = "fused: ";
  std::vector<int> pattern_;
  bool columns_ = false;
  int shape_value_ = -1;
  std::vector<Operand> operands_;  // stores first
  std::vector<int> made_;
  std::mutex mutex_;
  std::deque<Compiled> kernels_;
};

// The value whose sizes are the space's shape; -1 where none is.
int shape_value(const graph::Graph& graph, const Group& group);

// What a kernel is built from: the operands' places and layouts, stores first.
struct KernelPlan {
  Space space;
  std::vector<Place> places;
  std::vector<bool> reduced;          // do not move along the axis: touched once a row
  std::vector<loop::Layout> layouts;  // along the vectorised dimension
  size_t stores = 0;
  bool rows = false;
  bool inner = false;  // rows: another dimension than the axis is vectorised
  bool flat = false;
};
struct BuiltKernel {
  loop::Kernel kernel;
  std::vector<FusedScalar> scalars;
  double cost = 1;
};
// Cycles an element, roughly, of a node that can be fused.
double node_cost(const graph::Graph& graph, int node);

BuiltKernel build_kernel(const graph::Graph& graph, const std::vector<int>& nodes,
                         const KernelPlan& plan);

// What evaluating the group row by row costs in repeated work, in rough cycles an element: values
// are computed anew in each pass over the row, of which there is one for every depth of reductions
// and one for the stores.
// `stored` tells the storages that are written to memory.
double repeated_cost(const graph::Graph& graph, const std::vector<int>& nodes, const Space& space,
                     const std::function<bool(int)>& stored);

}  // namespace rushlight::compiler
