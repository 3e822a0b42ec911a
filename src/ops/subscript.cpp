// Subscripts as calls of operators.
#include <rushlight/generated/functions.h>
#include <rushlight/indexing.h>

namespace rushlight::indexing {
namespace {

bool is_mask(const Tensor& index) {
  return index.dtype() == DType::Bool || index.dtype() == DType::UInt8;
}

// How many dimensions of the tensor an item stands for.
int64_t dimensions_of(const TensorIndex& index) {
  if (const Tensor* tensor = std::get_if<Tensor>(&index.item())) {
    return is_mask(*tensor) ? tensor->dim() : 1;
  }
  return std::holds_alternative<int64_t>(index.item()) ||
                 std::holds_alternative<Slice>(index.item())
             ? 1
             : 0;
}

// Applies items from left to right; `dim_` is the dimension of the view that the next one meets.
class Walk {
 public:
  Walk(const Tensor& self, const std::vector<TensorIndex>& items) : view_(self) {
    for (const TensorIndex& item : items) {
      specified_ += dimensions_of(item);
    }
    rank_ = self.dim();
    if (specified_ > rank_) {
      fail(ErrorKind::Index, "", "too many indices for tensor of dimension ", rank_);
    }
    for (const TensorIndex& item : items) {
      std::visit([&](const auto& value) { apply(value); }, item.item());
    }
  }
  const Tensor& view() const { return view_; }
  const TensorList& indices() const { return indices_; }

 private:
  void apply(NoneType) { view_ = unsqueeze(view_, dim_++); }
  void apply(EllipsisType) {
    dim_ += rank_ - specified_;
    shown_ += rank_ - specified_;
    specified_ = rank_;  // a second one stands for nothing
  }
  void apply(bool keep) {
    view_ = unsqueeze(view_, dim_);
    record(full({1}, Scalar(keep), TensorOptions(DType::Bool)));
  }
  void apply(int64_t at) {
    const int64_t size = view_.size(dim_);
    if (at < -size || at >= size) {
      fail(ErrorKind::Index, "", "index ", at, " is out of bounds for dimension ", shown_,
           " with size ", size);
    }
    view_ = select(view_, dim_, at);
    ++shown_;
  }
  void apply(const Slice& slice) {
    const int64_t step = slice.step.value_or(1);
    if (step <= 0) {
      fail(ErrorKind::Value, "",
           step == 0 ? "slice step cannot be zero" : "step must be greater than zero");
    }
    view_ = rushlight::slice(view_, dim_++, slice.start, slice.stop, step);
    ++shown_;
  }
  void apply(const Tensor& index) {
    if (index.dim() == 0 && is_mask(index)) {
      return apply(index.item().to_bool());
    }
    if (index.dim() == 0 && is_integral(index.dtype(), false) && !index.is_meta()) {
      return apply(index.item().to_int());
    }
    shown_ += is_mask(index) ? index.dim() : 1;
    record(index);
  }
  void record(Tensor index) {
    indices_.resize(static_cast<size_t>(dim_));
    indices_.push_back(std::move(index));
    ++dim_;
  }

  Tensor view_;
  TensorList indices_;
  int64_t rank_ = 0;
  int64_t specified_ = 0;
  int64_t dim_ = 0;
  int64_t shown_ = 0;  // the dimension of the tensor itself, for messages
};

}  // namespace

TensorIndex::TensorIndex(const char* dots) : item_(Ellipsis) {
  if (std::string_view(dots) != "...") {
    fail(ErrorKind::Value, "", "expected \"...\" to represent an ellipsis index, but got \"", dots,
         "\"");
  }
}

Tensor get(const Tensor& self, const std::vector<TensorIndex>& items) {
  const Walk walk(self, items);
  if (!walk.indices().empty()) {
    return rushlight::index(walk.view(), walk.indices());
  }
  return walk.view().is_same(self) ? alias(self) : walk.view();
}

void put(const Tensor& self, const std::vector<TensorIndex>& items, const Tensor& value) {
  const Walk walk(self, items);
  if (walk.indices().empty()) {
    copy_(walk.view(), value);
  } else {
    index_put_(walk.view(), walk.indices(), value);
  }
}

void put(const Tensor& self, const std::vector<TensorIndex>& items, const Scalar& value) {
  const Walk walk(self, items);
  if (walk.indices().empty()) {
    fill_(walk.view(), value);
  } else {
    index_put_(walk.view(), walk.indices(), full({}, value, walk.view().options()));
  }
}

}  // namespace rushlight::indexing
