// Value: one argument or result of an operator call, of any schema type.
//
// A Value owns what it holds unless made by `borrow`, which is for the length of a call. Copying a
// borrowed Value makes an owning one.
#pragma once

#include <rushlight/tensor.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rushlight {

class RUSHLIGHT_API Value {
 public:
  enum class Tag : uint8_t {
    None,
    Tensor,
    Bool,
    Int,
    UInt,  // above the int64 range
    Float,
    Complex,
    Ints,
    Floats,
    Bools,
    Tensors,  // undefined handles stand for None
    Scalars,
    String,
    DType,
    Device,
    Layout,
    MemoryFormat,
    Generator,
  };

  Value() = default;
  Value(Tensor tensor);  // None where undefined
  Value(bool value) : tag_(Tag::Bool) { payload_.integer = value; }
  Value(int64_t value) : tag_(Tag::Int) { payload_.integer = value; }
  Value(int value) : Value(static_cast<int64_t>(value)) {}
  Value(double value) : tag_(Tag::Float) { payload_.real = value; }
  Value(const Scalar& value);
  Value(IntList list);
  Value(std::vector<double> list);
  Value(std::vector<bool> list);
  Value(TensorList list);
  Value(std::vector<Scalar> list);
  Value(std::string text);
  Value(const char* text) : Value(std::string(text)) {}
  Value(rushlight::DType value) : tag_(Tag::DType) { payload_.integer = static_cast<int>(value); }
  Value(rushlight::Device value);
  Value(LayoutKind value) : tag_(Tag::Layout) { payload_.integer = static_cast<int>(value); }
  Value(MemoryFormat value) : tag_(Tag::MemoryFormat) {
    payload_.integer = static_cast<int>(value);
  }
  Value(rushlight::Generator value);
  template <typename T>
  Value(const std::optional<T>& value) {
    if (value) {
      *this = Value(*value);
    }
  }

  static Value borrow(const Tensor& tensor);
  static Value borrow(IntArrayRef list);
  static Value borrow(std::string_view text);
  static Value borrow(const TensorList& list);

  Value(const Value& other) : tag_(other.tag_) { copy_from(other); }
  Value(Value&& other) noexcept
      : tag_(other.tag_), owned_(other.owned_), size_(other.size_), payload_(other.payload_) {
    other.tag_ = Tag::None;
    other.owned_ = false;
  }
  Value& operator=(const Value& other) {
    Value copy(other);
    swap(copy);
    return *this;
  }
  Value& operator=(Value&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Value() {
    if (owned_) {
      destroy();
    }
  }

  Tag tag() const { return tag_; }
  bool is_none() const { return tag_ == Tag::None; }
  bool is_tensor() const { return tag_ == Tag::Tensor; }
  bool is_number() const { return tag_ >= Tag::Bool && tag_ <= Tag::Complex; }

  // Accessors: an internal error where the tag differs (schemas are checked before). None reads as
  // an undefined tensor; Int reads as Float and Bool as Int where asked.
  const Tensor& tensor() const;
  TensorImpl* impl() const { return tag_ == Tag::Tensor ? payload_.tensor : nullptr; }
  Tensor take_tensor();  // moves an owned tensor out
  bool to_bool() const;
  int64_t to_int() const;
  double to_double() const;
  Scalar to_scalar() const;
  IntArrayRef ints() const;
  const std::vector<double>& floats() const;
  const std::vector<bool>& bools() const;
  const TensorList& tensors() const;
  const std::vector<Scalar>& scalars() const;
  std::string_view text() const;
  rushlight::DType dtype() const;
  rushlight::Device device() const;
  LayoutKind layout() const;
  MemoryFormat memory_format() const;
  rushlight::Generator& generator() const;

  void swap(Value& other) noexcept {
    std::swap(tag_, other.tag_);
    std::swap(owned_, other.owned_);
    std::swap(size_, other.size_);
    std::swap(payload_, other.payload_);
  }

 private:
  void copy_from(const Value& other);
  void destroy() noexcept;

  Tag tag_ = Tag::None;
  bool owned_ = false;
  uint32_t size_ = 0;  // of Ints and String
  union Payload {
    int64_t integer = 0;
    double real;
    TensorImpl* tensor;
    const void* object;
  } payload_;
};

}  // namespace rushlight
