// The operator table: one entry an operator. Everything else is derived from it.
//
//   RUSHLIGHT_OPERATORS(unary) {
//     op("exp(Tensor self) -> Tensor", kFunction | kMethod | kInplace | kOut)
//         .doc("e to the power of each element.")
//         .elementwise(Rule::Float, [](Elementwise& e) { return loop::exp(e.in(0)); });
//     op("t(Tensor(a) self) -> Tensor(a)", kFunction | kMethod)
//         .doc("Swaps the two dimensions of a matrix.")
//         .view(t_view)                          // an ordinary C++ function
//         .gradient([](Gradient& g) { g.set(0, t(g.grad())); });
//   }
//
// The build reads the schema strings to write the C++ functions and methods (tools/opgen.py); the
// rest reads the table at run time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "loop/kernel.h"
#include "ops/invocation.h"
#include "ops/schema.h"
#include "ops/unbox.h"

namespace rushlight {

// Which faces an operator has.
enum Variant : unsigned {
  kFunction = 1,       // rushlight.x; special_x, linalg_x, fft_x become special.x, linalg.x, fft.x
  kMethod = 2,         // Tensor.x
  kInplace = 4,        // Tensor.x_ (and rushlight.x_ where kFunction)
  kOut = 8,            // out=
  kNN = 16,            // rushlight._C._nn.x, behind nn.functional
  kNumbers = 32,       // tensor arguments after the first may be numbers
  kNumberFirst = 128,  // the first too, where another argument is a tensor
  kAllNumbers = 256,   // all of them
  kInternal = 64,      // no Python face: for gradients and compositions
  kInplaceFunction = 512,  // rushlight.x_ where there is no rushlight.x
  kLeafOut = 1024,         // out= may require grad: what is written has no history
  kUnary = kFunction | kMethod | kInplace | kOut,
  kBinary = kUnary | kNumbers,
  kBinaryEither = kBinary | kNumberFirst,
  kArithmetic = kBinary | kAllNumbers,
};

// What element-wise operators compute in and return.
// Promote: the promoted dtype. Float: the same, integers become the default float.
// Compare: promoted inside, bool out. Logical: each input becomes bool first, bool out.
// Real: as Promote, complex inputs are an error.
enum class Rule : uint8_t { Promote, Float, Compare, Logical };

class Gradient;
class Elementwise;
class Operator;

// How an operator is carried out. Subclasses: element-wise, reduction, function (view, kernel,
// composition).
class Body {
 public:
  virtual ~Body() = default;
  // Fills inv.results; writes into those that are set already (out= and in-place forms).
  virtual void run(const Operator& op, Invocation& inv) const = 0;
  // Whether results that are set are written directly. Where not, the caller copies.
  virtual bool writes_outputs() const { return false; }
  // Whether tensor arguments may be numbers.
  virtual bool takes_numbers() const { return false; }
};

enum class Kind : uint8_t {
  Elementwise,
  Reduction,
  View,         // the result shares memory with the first argument
  Kernel,       // its own C++ function; needs a gradient of its own
  Composition,  // calls public operators: gradient, devices and doors follow from those
};

using GradientRule = std::function<void(Gradient&)>;

// What an operator does with complex arguments.
// None: element-wise bodies and rows refuse them; others are as Own.
// Own: its body sees them, and its gradient is right for them.
// Holomorphic: its body sees them; the gradient, as it is stated for real numbers, is taken between
// conjugations.
// Parts: it is linear with real coefficients, and so acts on real and imaginary parts by
// themselves. Product: it is so in each of its first two tensors: four products of parts. The
// gradient as that of Holomorphic.
enum class ComplexRule : uint8_t { None, Own, Holomorphic, Parts, Product };

class Operator {
 public:
  Schema schema;
  unsigned variants = 0;
  std::string family;
  std::string doc;
  Kind kind = Kind::Composition;
  std::unique_ptr<Body> body;
  GradientRule gradient;          // empty: see differentiable
  uint64_t saved_arguments = 0;   // bit i: gradient reads tensor argument i
  uint64_t layout_arguments = 0;  // of these: only how they lie in memory, not what is in it
  uint64_t saved_results = 0;
  // By argument: which tensor arguments its gradient alone reads, so that others need not be kept
  // where only it is differentiated. Empty: all that are saved.
  std::vector<uint64_t> reads;
  bool differentiable = true;  // false: results never require grad
  ComplexRule complex = ComplexRule::None;
  std::unique_ptr<Body> complex_body;  // in place of `body` where an argument is complex
  // What dispatch modes and classes see in place of a call: a composition of the operators that
  // PyTorch makes of it. Null: the call itself.
  std::unique_ptr<Body> seen_as;
  bool splits_complex() const {
    return complex == ComplexRule::Parts || complex == ComplexRule::Product;
  }
  bool conjugates_gradient() const {
    return complex == ComplexRule::Product ||
           (complex == ComplexRule::Holomorphic && !derived_gradient);
  }
  bool real_result = false;       // of complex arguments the result has the dtype of their parts
  bool derived_gradient = false;  // by symbolic differentiation
  // Whether out= converts to another dtype of the same kind or a higher one: element-wise operators
  // of several tensors and those that compute in floats do, most others do not.
  bool casts_out = false;
  // The name of the node that autograd prints, "AddmmBackward0", where it does not follow from the
  // operator's; of a composition, the name that the node of its result gets. A rule tells calls
  // apart for which PyTorch has several overloads.
  const char* node_name = nullptr;
  const char* (*node_name_rule)(const Invocation& inv) = nullptr;
  void (*check)(const Invocation& inv) = nullptr;  // refuses arguments, before the body runs
  int inplace_argument = 0;                        // which argument the in-place form writes
  std::string samples;  // name of the sample-input maker of the generic tests

  const std::string& name() const { return schema.name; }
  // The name of the node of a call; null where it follows from the operator's.
  const char* node_of(const Invocation& inv) const {
    return node_name_rule == nullptr ? node_name : node_name_rule(inv);
  }
};

// For rules of node names: whether the argument was given as a number.
bool is_number(const Value& argument);

// Builds one entry. Functions given to view/kernel/composition are ordinary C++ functions whose
// parameters follow the schema (ops/unbox.h lists the types).
class Entry {
 public:
  explicit Entry(Operator& op) : op_(op) {}
  Entry& doc(std::string_view text);
  Entry& elementwise(Rule rule, std::function<loop::Expr(Elementwise&)> body);
  template <typename F>
  Entry& view(F function) {
    return function_body(Kind::View, box(function));
  }
  template <typename F>
  Entry& kernel(F function) {
    return function_body(Kind::Kernel, box(function));
  }
  template <typename F>
  Entry& composition(F function) {
    return function_body(Kind::Composition, box(function));
  }
  // A Kernel that writes the results that are set (out=) itself: void(Invocation&).
  Entry& kernel_into(BoxedFunction function);
  Entry& body(Kind kind, std::unique_ptr<Body> body);
  // `saves`: names of tensor arguments and results that the rule reads, blank-separated;
  // "result" or "result0", "result1" for results. "x:y": of the gradients, only that of x reads y.
  // "x.layout": the rule asks x for sizes, strides and offset alone; later writes do not matter.
  Entry& gradient(std::string_view saves, GradientRule rule);
  Entry& not_differentiable();
  // What the operator does with complex arguments: see ComplexRule. Comes before the body.
  Entry& complex(ComplexRule rule = ComplexRule::Holomorphic);
  // The function that runs instead where an argument is complex, as the body of the same call.
  template <typename F>
  Entry& complex_body(F function) {
    return complex_function(box(function));
  }
  // The composition that dispatch modes see; see Operator::seen_as.
  template <typename F>
  Entry& seen_as(F function) {
    return seen_function(box(function));
  }
  Entry& by_parts() { return complex(ComplexRule::Parts); }
  // Own, with a real result.
  Entry& real_of_complex();
  // Looks at the arguments of every call first: see ops/dtype_checks.h.
  Entry& check(void (*function)(const Invocation& inv));
  // What the node of a call is called; see Operator::node_name.
  Entry& node(const char* name);
  Entry& node(const char* (*rule)(const Invocation& inv));
  // Whether an out= tensor may have any dtype that the result can be cast to, or must have the
  // result's own.
  Entry& casts_out(bool casts = true);
  Entry& samples(std::string_view name);
  Operator& entry() { return op_; }

 private:
  Entry& function_body(Kind kind, BoxedFunction function);
  Entry& complex_function(BoxedFunction function);
  Entry& seen_function(BoxedFunction function);
  Operator& op_;
};

class Table {
 public:
  static Table& instance();  // built at first use
  const std::vector<std::unique_ptr<Operator>>& operators() const { return operators_; }
  // "add.Tensor", or "add" where it has one overload; null where there is none.
  const Operator* find(std::string_view full_name) const;
  // All overloads of a name, in the order of the table (the order in which Python tries them).
  std::vector<const Operator*> overloads(std::string_view name) const;
  Operator& add(std::string_view schema, unsigned variants, std::string_view family);

 private:
  Table();
  struct Index;
  std::vector<std::unique_ptr<Operator>> operators_;
  std::shared_ptr<Index> index_;
};

// Like Table::find; an internal error where there is none.
const Operator& find_operator(std::string_view full_name);

using FamilyFunction = void (*)(std::function<Entry(std::string_view, unsigned)> op);
struct FamilyRegistrar {
  FamilyRegistrar(const char* name, FamilyFunction function);
};

#define RUSHLIGHT_OPERATORS(family)                                                                \
  static void register_##family(std::function<::rushlight::Entry(std::string_view, unsigned)> op); \
  static const ::rushlight::FamilyRegistrar family##_registrar(#family, register_##family);        \
  static void register_##family(std::function<::rushlight::Entry(std::string_view, unsigned)> op)

}  // namespace rushlight
