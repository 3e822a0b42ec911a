// einsum and tensordot: contractions of named dimensions, as batched matrix products.
#include <rushlight/generated/functions.h>

#include <algorithm>
#include <array>
#include <string>

#include "ops/operator.h"

namespace rushlight {
namespace {

constexpr int kEllipsis = 52;  // labels: 0..51 letters, then one a dimension of "..."

int label_of(char letter) {
  if (letter >= 'A' && letter <= 'Z') {
    return letter - 'A';
  }
  if (letter >= 'a' && letter <= 'z') {
    return letter - 'a' + 26;
  }
  fail(ErrorKind::Runtime, "einsum", "einsum(): invalid subscript given: '", letter,
       "', subscripts must be in [a-zA-Z]");
}

struct Term {
  std::vector<int> labels;  // kEllipsis stands for all dimensions of "..."
  bool ellipsis = false;
};

Term parse_term(std::string_view text) {
  Term term;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') {
      continue;
    }
    if (text[i] == '.') {
      if (text.substr(i, 3) != "..." || term.ellipsis) {
        fail(ErrorKind::Runtime, "einsum", "einsum(): found '.' in '", text,
             "' that is not part of a single ellipsis '...'");
      }
      term.ellipsis = true;
      term.labels.push_back(kEllipsis);
      i += 2;
      continue;
    }
    term.labels.push_back(label_of(text[i]));
  }
  return term;
}

struct Equation {
  std::vector<Term> inputs;
  Term output;
  bool has_output = false;
};

Equation parse_equation(std::string_view text, size_t operands) {
  Equation equation;
  size_t arrow = text.find("->");
  std::string_view left = text.substr(0, arrow);
  while (true) {
    size_t comma = left.find(',');
    equation.inputs.push_back(parse_term(left.substr(0, comma)));
    if (comma == std::string_view::npos) {
      break;
    }
    left = left.substr(comma + 1);
  }
  if (equation.inputs.size() != operands) {
    fail(ErrorKind::Runtime, "einsum",
         "einsum(): ", equation.inputs.size() > operands ? "fewer" : "more",
         " operands were provided than specified in the equation: got ", operands, ", expected ",
         equation.inputs.size());
  }
  if (arrow != std::string_view::npos) {
    equation.output = parse_term(text.substr(arrow + 2));
    equation.has_output = true;
  }
  return equation;
}

// The operands, each permuted to one order of all labels, size 1 where it lacks one.
struct Aligned {
  std::vector<Tensor> operands;
  size_t output_rank = 0;  // labels of the output come first
  // By dimension, the last operand that names it.
  std::vector<size_t> last_named;
};

class Aligner {
 public:
  Aligner(const Equation& equation, const TensorList& operands) : equation_(equation) {
    for (size_t i = 0; i < operands.size(); ++i) {
      expand_term(equation.inputs[i], operands[i]);
    }
    order_labels();
  }

  Aligned align(const TensorList& operands) {
    Aligned aligned;
    aligned.output_rank = output_rank_;
    for (size_t i = 0; i < operands.size(); ++i) {
      aligned.operands.push_back(align_one(operands[i], labels_[i]));
    }
    for (int label : order_) {
      aligned.last_named.push_back(0);
      for (size_t i = 0; i < labels_.size(); ++i) {
        const bool names =
            std::find(labels_[i].begin(), labels_[i].end(), label) != labels_[i].end();
        aligned.last_named.back() = names ? i : aligned.last_named.back();
      }
    }
    return aligned;
  }

 private:
  void expand_term(const Term& term, const Tensor& operand) {
    auto named = static_cast<int64_t>(term.labels.size()) - (term.ellipsis ? 1 : 0);
    int64_t rest = operand.dim() - named;
    if (rest < 0 || (rest > 0 && !term.ellipsis)) {
      fail(ErrorKind::Runtime, "einsum", "einsum(): the number of subscripts in the equation (",
           named, ") does not match the number of dimensions (", operand.dim(), ") for operand ",
           labels_.size(), term.ellipsis ? "" : " and no ellipsis was given");
    }
    ellipsis_rank_ = std::max(ellipsis_rank_, term.ellipsis ? rest : 0);
    std::vector<int> labels;
    for (int label : term.labels) {
      if (label != kEllipsis) {
        labels.push_back(label);
        continue;
      }
      // Dimensions of "..." are counted from the last.
      for (int64_t d = rest; d > 0; --d) {
        labels.push_back(kEllipsis + static_cast<int>(d) - 1);
      }
    }
    labels_.push_back(std::move(labels));
  }

  void order_labels() {
    auto push = [&](int label) {
      if (std::find(order_.begin(), order_.end(), label) == order_.end()) {
        order_.push_back(label);
      }
    };
    if (equation_.has_output) {
      for (int label : equation_.output.labels) {
        if (label == kEllipsis) {
          push_ellipsis();
          continue;
        }
        if (std::find(order_.begin(), order_.end(), label) != order_.end()) {
          fail(ErrorKind::Runtime, "einsum", "einsum(): output subscript ", letter(label),
               " appears more than once in the output");
        }
        if (count(label) == 0) {
          fail(ErrorKind::Runtime, "einsum", "einsum(): output subscript ", letter(label),
               " does not appear in the equation for any input operand");
        }
        push(label);
      }
    } else {
      push_ellipsis();
      for (int label = 0; label < kEllipsis; ++label) {
        if (count(label) == 1) {
          push(label);
        }
      }
    }
    output_rank_ = order_.size();
    for (const std::vector<int>& labels : labels_) {
      for (int label : labels) {
        push(label);
      }
    }
  }

  void push_ellipsis() {
    for (int64_t d = ellipsis_rank_; d > 0; --d) {
      order_.push_back(kEllipsis + static_cast<int>(d) - 1);
    }
  }

  int count(int label) const {
    int total = 0;
    for (const std::vector<int>& labels : labels_) {
      total += static_cast<int>(std::count(labels.begin(), labels.end(), label));
    }
    return total;
  }

  static std::string letter(int label) {
    return std::string(1, static_cast<char>(label < 26 ? 'A' + label : 'a' + label - 26));
  }

  Tensor align_one(Tensor operand, std::vector<int> labels) {
    // A label twice in one operand is its diagonal.
    for (size_t i = 0; i < labels.size(); ++i) {
      for (size_t j = i + 1; j < labels.size();) {
        if (labels[j] != labels[i]) {
          ++j;
          continue;
        }
        if (operand.sizes()[i] != operand.sizes()[j]) {
          fail(ErrorKind::Runtime, "einsum", "einsum(): subscript ", letter(labels[i]),
               " is repeated for an operand, but the sizes don't match, ", operand.sizes()[j],
               " != ", operand.sizes()[i]);
        }
        auto first = static_cast<int64_t>(i);
        operand = movedim(diagonal(operand, 0, first, static_cast<int64_t>(j)), {-1}, {first});
        labels.erase(labels.begin() + static_cast<int64_t>(j));
      }
    }
    IntList dims;
    for (int label : order_) {
      auto found = std::find(labels.begin(), labels.end(), label);
      if (found != labels.end()) {
        dims.push_back(found - labels.begin());
      }
    }
    operand = permute(operand, dims);
    for (size_t i = 0; i < order_.size(); ++i) {
      if (std::find(labels.begin(), labels.end(), order_[i]) == labels.end()) {
        operand = unsqueeze(operand, static_cast<int64_t>(i));
      }
    }
    return operand;
  }

  const Equation& equation_;
  std::vector<std::vector<int>> labels_;
  std::vector<int> order_;
  int64_t ellipsis_rank_ = 0;
  size_t output_rank_ = 0;
};

// Product of two aligned tensors, summed over `sum_dims`: one batched matrix product. The summed
// dimensions stay, with size 1.
Tensor contract(Tensor a, Tensor b, const IntList& sum_dims) {
  auto rank = static_cast<size_t>(a.dim());
  IntList batch, left, right, inner;
  int64_t sizes[4] = {1, 1, 1, 1};
  for (size_t d = 0; d < rank; ++d) {
    auto dim = static_cast<int64_t>(d);
    bool in_a = a.sizes()[d] != 1;
    bool in_b = b.sizes()[d] != 1;
    bool summed = std::find(sum_dims.begin(), sum_dims.end(), dim) != sum_dims.end();
    if (in_a && in_b && a.sizes()[d] != b.sizes()[d]) {
      fail(ErrorKind::Runtime, "einsum",
           "einsum(): operands do not broadcast with remapped shapes "
           "[original->remapped]: ",
           a.sizes(), " and ", b.sizes());
    }
    if (summed && in_a && in_b) {
      inner.push_back(dim);
      sizes[3] *= a.sizes()[d];
    } else if (summed && in_a) {
      a = sum(a, {dim}, true, std::nullopt);
    } else if (summed && in_b) {
      b = sum(b, {dim}, true, std::nullopt);
    }
    if (summed) {
      continue;
    }
    if (in_a && in_b) {
      batch.push_back(dim);
      sizes[0] *= a.sizes()[d];
    } else if (in_b) {
      right.push_back(dim);
      sizes[2] *= b.sizes()[d];
    } else {
      left.push_back(dim);
      sizes[1] *= a.sizes()[d];
    }
  }
  if (inner.empty()) {
    return mul(a, b);  // nothing is summed: operands of two dtypes are promoted
  }
  auto order = [&](const IntList& second, const IntList& third, const IntList& last) {
    IntList dims(batch);
    for (const IntList* part : {&second, &third, &last}) {
      for (int64_t dim : *part) {
        dims.push_back(dim);
      }
    }
    for (int64_t dim : sum_dims) {
      if (std::find(dims.begin(), dims.end(), dim) == dims.end()) {
        dims.push_back(dim);
      }
    }
    return dims;
  };
  if (a.dtype() != b.dtype() && is_integral(a.dtype(), false) && is_integral(b.dtype(), false)) {
    // A sum over one of them has widened it.
    const DType common = promote(a.dtype(), b.dtype());
    a = to(a, common);
    b = to(b, common);
  }
  IntList a_order = order(left, inner, right);
  IntList b_order = order(inner, right, left);
  Tensor product = bmm(reshape(permute(a, a_order), {sizes[0], sizes[1], sizes[3]}),
                       reshape(permute(b, b_order), {sizes[0], sizes[3], sizes[2]}));
  // Back to the aligned order.
  IntList out_order = order(left, right, inner);
  IntList shape;
  for (int64_t dim : out_order) {
    auto d = static_cast<size_t>(dim);
    bool summed = std::find(sum_dims.begin(), sum_dims.end(), dim) != sum_dims.end();
    shape.push_back(summed ? 1 : a.sizes()[d] == 1 ? b.sizes()[d] : a.sizes()[d]);
  }
  IntList inverse(rank, 0);
  for (size_t i = 0; i < rank; ++i) {
    inverse[static_cast<size_t>(out_order[i])] = static_cast<int64_t>(i);
  }
  return permute(reshape(product, shape), inverse);
}

// Contracts by pairs: `path` names two places of the list at a time, whose product goes to its end.
Tensor contract_along(IntArrayRef path, std::vector<Tensor> list, int64_t first_summed) {
  const int64_t rank = list[0].dim();
  if (path.size() != 2 * (list.size() - 1)) {
    fail(ErrorKind::Runtime, "einsum",
         "einsum(): expected contraction path given in path parameter to have size ",
         2 * (list.size() - 1), " but got ", path.size());
  }
  for (size_t step = 0; step < path.size(); step += 2) {
    const auto [low, high] = std::minmax({path[step], path[step + 1]});
    if (low < 0 || low == high || high >= static_cast<int64_t>(list.size())) {
      fail(ErrorKind::Runtime, "einsum", "einsum(): invalid contraction (", path[step], ", ",
           path[step + 1], "): the operands left are ", list.size());
    }
    Tensor first = list[static_cast<size_t>(low)];
    Tensor second = list[static_cast<size_t>(high)];
    list.erase(list.begin() + high);
    list.erase(list.begin() + low);
    IntList dims;
    for (int64_t dim = first_summed; dim < rank; ++dim) {
      const auto at = static_cast<size_t>(dim);
      auto alone = [&](const Tensor& other) { return other.sizes()[at] == 1; };
      if (std::all_of(list.begin(), list.end(), alone)) {
        dims.push_back(dim);
      }
    }
    list.push_back(contract(first, second, dims));
  }
  return list[0];
}

Tensor einsum_of(std::string_view text, const TensorList& operands,
                 std::optional<IntArrayRef> path) {
  if (operands.empty()) {
    fail(ErrorKind::Runtime, "einsum", "einsum(): must provide at least one operand");
  }
  Equation equation = parse_equation(text, operands.size());
  Aligned aligned = Aligner(equation, operands).align(operands);
  std::vector<Tensor>& list = aligned.operands;
  auto rank = list[0].dim();
  // A label is summed with the last operand that has it; where it has one element in each, with
  // the last that names it: a sum of its own would widen integers.
  auto last_use = [&](int64_t dim) {
    const auto at = static_cast<size_t>(dim);
    size_t last = aligned.last_named[at];
    for (size_t i = list.size(); i-- > 0;) {
      if (list[i].sizes()[at] != 1) {
        last = i;
        break;
      }
    }
    return last;
  };
  const bool ordered = path && list.size() > 1;
  Tensor total =
      ordered ? contract_along(*path, list, static_cast<int64_t>(aligned.output_rank)) : list[0];
  for (size_t i = 0; i < list.size() && !ordered; ++i) {
    IntList dims;
    for (auto dim = static_cast<int64_t>(aligned.output_rank); dim < rank; ++dim) {
      if (last_use(dim) == i) {
        dims.push_back(dim);
      }
    }
    if (i == 0) {
      total = dims.empty() ? total : sum(total, dims, true, std::nullopt);
    } else {
      total = contract(total, list[i], dims);
    }
  }
  for (int64_t dim = rank; dim-- > static_cast<int64_t>(aligned.output_rank);) {
    total = squeeze(total, dim);
  }
  return total;
}

// Named by what ends the contraction: a sum, a product of matrices, or one of elements where the
// last operand has no label to sum.
const char* einsum_node(const Invocation& inv) {
  const size_t operands = inv.arguments[1].tensors().size();
  const Equation equation = parse_equation(inv.arguments[0].text(), operands);
  auto count = [&](int label) {
    int64_t total = 0;
    for (const Term& term : equation.inputs) {
      total += std::count(term.labels.begin(), term.labels.end(), label);
    }
    return total;
  };
  auto kept = [&](int label) {
    const std::vector<int>& labels = equation.output.labels;
    return label == kEllipsis ||
           (equation.has_output ? std::find(labels.begin(), labels.end(), label) != labels.end()
                                : count(label) == 1);
  };
  bool sums = false;
  for (int label : equation.inputs.back().labels) {
    sums = sums || (!kept(label) && (operands == 1 || count(label) > 1));
  }
  if (operands == 1) {
    return sums ? "SumBackward1" : nullptr;
  }
  return sums ? "ViewBackward0" : "MulBackward0";
}

Tensor tensordot_of(const Tensor& self, const Tensor& other, IntArrayRef dims_self,
                    IntArrayRef dims_other) {
  if (dims_self.size() != dims_other.size()) {
    fail(ErrorKind::Runtime, "tensordot", "both dimension lists should have same length, got ",
         dims_self, " and ", dims_other);
  }
  auto arrange = [](const Tensor& x, IntArrayRef dims, bool contracted_last, IntList* free) {
    IntList wrapped;
    for (int64_t dim : dims) {
      wrapped.push_back(wrap_dim(dim, x.dim(), "tensordot"));
    }
    IntList order;
    for (int64_t d = 0; d < x.dim(); ++d) {
      if (std::find(wrapped.begin(), wrapped.end(), d) == wrapped.end()) {
        order.push_back(d);
        free->push_back(x.sizes()[static_cast<size_t>(d)]);
      }
    }
    IntList all = contracted_last ? order : wrapped;
    for (int64_t d : contracted_last ? wrapped : order) {
      all.push_back(d);
    }
    return permute(x, all);
  };
  int64_t inner = 1;
  Tensor first = self;
  Tensor second = other;
  for (size_t i = 0; i < dims_self.size(); ++i) {
    int64_t mine = self.size(dims_self[i]);
    int64_t theirs = other.size(dims_other[i]);
    // A size of 1 stands for as many equal elements as the other has: they can be summed first.
    if (mine == 1 && theirs != 1) {
      second = sum(second, {dims_other[i]}, true, second.dtype());
      theirs = 1;
    } else if (theirs == 1 && mine != 1) {
      first = sum(first, {dims_self[i]}, true, first.dtype());
      mine = 1;
    }
    if (mine != theirs) {
      fail(ErrorKind::Runtime, "tensordot",
           "contracted dimensions need to match, but first has "
           "size ",
           mine, " in dim ", dims_self[i], " and second has size ", theirs, " in dim ",
           dims_other[i]);
    }
    inner *= mine;
  }
  IntList left, right;
  Tensor a = arrange(first, dims_self, true, &left);
  Tensor b = arrange(second, dims_other, false, &right);
  int64_t rows = checked_numel(left, "tensordot");
  int64_t cols = checked_numel(right, "tensordot");
  Tensor product = mm(reshape(a, {rows, inner}), reshape(b, {inner, cols}));
  IntList shape(left);
  for (int64_t size : right) {
    shape.push_back(size);
  }
  return reshape(product, shape);
}

}  // namespace

RUSHLIGHT_OPERATORS(einsum) {
  op("einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor", kFunction)
      .doc("Sums of products over named dimensions: einsum('bij,bjk->bik', a, b).")
      .composition(einsum_of)
      .node(einsum_node);
  op("tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
     kFunction | kOut)
      .doc("Contraction of self's dims_self with other's dims_other.")
      .composition(tensordot_of);
}

}  // namespace rushlight
