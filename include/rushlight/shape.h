// Lists of sizes and strides, and arithmetic on them that cannot overflow unseen.
#pragma once

#include <rushlight/error.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

namespace rushlight {

// A list of integers that somebody else owns.
class IntArrayRef : public std::span<const int64_t> {
 public:
  using std::span<const int64_t>::span;
  constexpr IntArrayRef() = default;
  constexpr IntArrayRef(std::span<const int64_t> list) : std::span<const int64_t>(list) {}
  constexpr IntArrayRef(std::initializer_list<int64_t> list)
      : std::span<const int64_t>(list.begin(), list.size()) {}
  constexpr IntArrayRef(const int64_t& single) : std::span<const int64_t>(&single, 1) {}
};

inline bool operator==(IntArrayRef a, IntArrayRef b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(int64_t)) == 0);
}

// A list of integers that owns its memory: inline up to six, then on the heap.
class IntList {
 public:
  static constexpr int kInline = 6;
  IntList() = default;
  IntList(IntArrayRef list) { assign(list.data(), list.size()); }
  IntList(std::initializer_list<int64_t> list) { assign(list.begin(), list.size()); }
  IntList(size_t count, int64_t value) {
    resize(count);
    for (int64_t& item : *this) {
      item = value;
    }
  }
  IntList(const IntList& other) { assign(other.data_, other.size_); }
  IntList(IntList&& other) noexcept { take(other); }
  IntList& operator=(const IntList& other) {
    if (this != &other) {
      assign(other.data_, other.size_);
    }
    return *this;
  }
  IntList& operator=(IntList&& other) noexcept {
    if (this != &other) {
      release();
      take(other);
    }
    return *this;
  }
  ~IntList() { release(); }

  int64_t* data() { return data_; }
  const int64_t* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  int64_t& operator[](size_t i) { return data_[i]; }
  int64_t operator[](size_t i) const { return data_[i]; }
  int64_t* begin() { return data_; }
  int64_t* end() { return data_ + size_; }
  const int64_t* begin() const { return data_; }
  const int64_t* end() const { return data_ + size_; }
  int64_t& back() { return data_[size_ - 1]; }
  int64_t back() const { return data_[size_ - 1]; }
  operator IntArrayRef() const { return {data_, size_}; }

  void push_back(int64_t value) {
    resize(size_ + 1);
    data_[size_ - 1] = value;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void insert(size_t at, int64_t value) {
    resize(size_ + 1);
    std::memmove(data_ + at + 1, data_ + at, (size_ - 1 - at) * sizeof(int64_t));
    data_[at] = value;
  }
  void erase(size_t at) {
    std::memmove(data_ + at, data_ + at + 1, (size_ - 1 - at) * sizeof(int64_t));
    --size_;
  }
  void resize(size_t count) {  // new elements are not set
    if (count > capacity_) {
      grow(count);
    }
    size_ = count;
  }
  void assign(const int64_t* list, size_t count) {
    resize(count);
    if (count != 0) {
      std::memmove(data_, list, count * sizeof(int64_t));
    }
  }

 private:
  void grow(size_t count) {
    size_t capacity = count < 2 * capacity_ ? 2 * capacity_ : count;
    int64_t* fresh = new int64_t[capacity];
    std::memcpy(fresh, data_, size_ * sizeof(int64_t));
    release();
    data_ = fresh;
    capacity_ = capacity;
  }
  void release() {
    if (data_ != inline_) {
      delete[] data_;
    }
  }
  void take(IntList& other) {
    size_ = other.size_;
    if (other.data_ == other.inline_) {
      data_ = inline_;
      capacity_ = kInline;
      std::memcpy(inline_, other.inline_, sizeof(inline_));
    } else {
      data_ = other.data_;
      capacity_ = other.capacity_;
      other.data_ = other.inline_;
      other.capacity_ = kInline;
    }
    other.size_ = 0;
  }

  int64_t* data_ = inline_;
  size_t size_ = 0;
  size_t capacity_ = kInline;
  int64_t inline_[kInline] = {};
};

// A list that may be missing. Not std::optional: that would keep a reference to a temporary when
// given {0}.
class OptionalIntArrayRef {
 public:
  OptionalIntArrayRef() = default;
  OptionalIntArrayRef(std::nullopt_t) {}
  OptionalIntArrayRef(IntArrayRef list) : list_(list), given_(true) {}
  OptionalIntArrayRef(const IntList& list) : list_(list), given_(true) {}
  OptionalIntArrayRef(std::initializer_list<int64_t> list) : list_(list), given_(true) {}
  OptionalIntArrayRef(const int64_t& single) : list_(single), given_(true) {}
  OptionalIntArrayRef(const std::optional<IntArrayRef>& list)
      : list_(list ? *list : IntArrayRef()), given_(list.has_value()) {}
  explicit operator bool() const { return given_; }
  bool has_value() const { return given_; }
  IntArrayRef operator*() const { return list_; }

 private:
  IntArrayRef list_;
  bool given_ = false;
};

namespace detail {
inline void append(std::string& out, const IntList& value) {
  append(out, std::span<const int64_t>(value.data(), value.size()));
}
}  // namespace detail

// Product of the sizes; Error(Runtime) naming `op` on a negative size or overflow.
int64_t checked_numel(IntArrayRef sizes, std::string_view op);
int64_t checked_multiply(int64_t a, int64_t b, std::string_view op);
int64_t checked_add(int64_t a, int64_t b, std::string_view op);

IntList contiguous_strides(IntArrayRef sizes);

// The shape that both broadcast to; Error(Runtime) naming both shapes and the dimension.
IntList broadcast_shapes(IntArrayRef a, IntArrayRef b, std::string_view op);

// A dimension counted from the end where negative; Error(Index) where out of [-rank, rank).
// Rank 0 counts as 1, as in PyTorch.
int64_t wrap_dim(int64_t dim, int64_t rank, std::string_view op);

}  // namespace rushlight
