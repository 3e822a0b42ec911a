#include <rushlight/value.h>

namespace rushlight {
namespace {

void expect(bool holds, const char* what) {
  if (!holds) {
    fail(ErrorKind::Internal, "", "a Value was read as ", what, " but holds something else");
  }
}

}  // namespace

Value::Value(Tensor tensor) {
  if (tensor.defined()) {
    tag_ = Tag::Tensor;
    owned_ = true;
    payload_.tensor = tensor.release_impl();
  }
}

Value::Value(const Scalar& value) {
  switch (value.kind()) {
    case Scalar::Kind::Bool:
      tag_ = Tag::Bool;
      payload_.integer = value.to_bool();
      break;
    case Scalar::Kind::Int:
      tag_ = Tag::Int;
      payload_.integer = value.to_int();
      break;
    case Scalar::Kind::UInt:
      tag_ = Tag::UInt;
      payload_.integer = value.to_int();
      break;
    case Scalar::Kind::Float:
      tag_ = Tag::Float;
      payload_.real = value.to_double();
      break;
    case Scalar::Kind::Complex:
      tag_ = Tag::Complex;
      owned_ = true;
      payload_.object = new std::complex<double>(value.to_complex());
      break;
  }
}

Value::Value(IntList list)
    : tag_(Tag::Ints), owned_(true), size_(static_cast<uint32_t>(list.size())) {
  auto* copy = new int64_t[list.size()];
  std::memcpy(copy, list.data(), list.size() * sizeof(int64_t));
  payload_.object = copy;
}
Value::Value(std::vector<double> list) : tag_(Tag::Floats), owned_(true) {
  payload_.object = new std::vector<double>(std::move(list));
}
Value::Value(std::vector<bool> list) : tag_(Tag::Bools), owned_(true) {
  payload_.object = new std::vector<bool>(std::move(list));
}
Value::Value(TensorList list) : tag_(Tag::Tensors), owned_(true) {
  payload_.object = new TensorList(std::move(list));
}
Value::Value(std::vector<Scalar> list) : tag_(Tag::Scalars), owned_(true) {
  payload_.object = new std::vector<Scalar>(std::move(list));
}
Value::Value(std::string text)
    : tag_(Tag::String), owned_(true), size_(static_cast<uint32_t>(text.size())) {
  char* copy = new char[text.size() + 1];
  std::memcpy(copy, text.c_str(), text.size() + 1);
  payload_.object = copy;
}
Value::Value(rushlight::Device value) : tag_(Tag::Device) {
  payload_.integer = static_cast<int>(value.type) | (static_cast<int64_t>(value.index) << 8);
}
Value::Value(rushlight::Generator value) : tag_(Tag::Generator), owned_(true) {
  payload_.object = new rushlight::Generator(std::move(value));
}

Value Value::borrow(const Tensor& tensor) {
  Value value;
  if (tensor.defined()) {
    value.tag_ = Tag::Tensor;
    value.payload_.tensor = tensor.impl();
  }
  return value;
}

Value Value::borrow(IntArrayRef list) {
  Value value;
  value.tag_ = Tag::Ints;
  value.size_ = static_cast<uint32_t>(list.size());
  value.payload_.object = list.data();
  return value;
}

Value Value::borrow(std::string_view text) {
  Value value;
  value.tag_ = Tag::String;
  value.size_ = static_cast<uint32_t>(text.size());
  value.payload_.object = text.data();
  return value;
}

Value Value::borrow(const TensorList& list) {
  Value value;
  value.tag_ = Tag::Tensors;
  value.payload_.object = &list;
  return value;
}

void Value::copy_from(const Value& other) {
  payload_ = other.payload_;
  switch (tag_) {
    case Tag::Tensor:
      payload_.tensor->references.fetch_add(1, std::memory_order_relaxed);
      owned_ = true;
      return;
    case Tag::Complex:
      *this = Value(other.to_scalar());
      return;
    case Tag::Ints:
      tag_ = Tag::None;
      *this = Value(IntList(other.ints()));
      return;
    case Tag::Floats:
      *this = Value(std::vector<double>(other.floats()));
      return;
    case Tag::Bools:
      *this = Value(std::vector<bool>(other.bools()));
      return;
    case Tag::Tensors:
      *this = Value(TensorList(other.tensors()));
      return;
    case Tag::Scalars:
      *this = Value(std::vector<Scalar>(other.scalars()));
      return;
    case Tag::String:
      *this = Value(std::string(other.text()));
      return;
    case Tag::Generator:
      *this = Value(rushlight::Generator(other.generator()));
      return;
    default:
      return;
  }
}

void Value::destroy() noexcept {
  switch (tag_) {
    case Tag::Tensor:
      if (payload_.tensor->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        rushlight::destroy(payload_.tensor);
      }
      break;
    case Tag::Complex:
      delete static_cast<const std::complex<double>*>(payload_.object);
      break;
    case Tag::Ints:
      delete[] static_cast<const int64_t*>(payload_.object);
      break;
    case Tag::Floats:
      delete static_cast<const std::vector<double>*>(payload_.object);
      break;
    case Tag::Bools:
      delete static_cast<const std::vector<bool>*>(payload_.object);
      break;
    case Tag::Tensors:
      delete static_cast<const TensorList*>(payload_.object);
      break;
    case Tag::Scalars:
      delete static_cast<const std::vector<Scalar>*>(payload_.object);
      break;
    case Tag::String:
      delete[] static_cast<const char*>(payload_.object);
      break;
    case Tag::Generator:
      delete static_cast<const rushlight::Generator*>(payload_.object);
      break;
    default:
      break;
  }
}

const Tensor& Value::tensor() const {
  static_assert(sizeof(Tensor) == sizeof(TensorImpl*), "a handle is the pointer alone");
  static const Tensor undefined;
  if (tag_ == Tag::None) {
    return undefined;
  }
  expect(tag_ == Tag::Tensor, "a tensor");
  return reinterpret_cast<const Tensor&>(payload_.tensor);
}

Tensor Value::take_tensor() {
  if (tag_ == Tag::Tensor && owned_) {
    owned_ = false;
    tag_ = Tag::None;
    return Tensor(payload_.tensor);
  }
  return tensor();
}

bool Value::to_bool() const {
  expect(is_number(), "a bool");
  return to_scalar().to_bool();
}

int64_t Value::to_int() const {
  expect(tag_ == Tag::Int || tag_ == Tag::Bool || tag_ == Tag::UInt, "an int");
  return payload_.integer;
}

double Value::to_double() const {
  expect(is_number() && tag_ != Tag::Complex, "a float");
  return tag_ == Tag::Float ? payload_.real : to_scalar().to_double();
}

Scalar Value::to_scalar() const {
  switch (tag_) {
    case Tag::Bool:
      return payload_.integer != 0;
    case Tag::Int:
      return payload_.integer;
    case Tag::UInt:
      return static_cast<uint64_t>(payload_.integer);
    case Tag::Float:
      return payload_.real;
    case Tag::Complex:
      return *static_cast<const std::complex<double>*>(payload_.object);
    default:
      expect(false, "a number");
      return {};
  }
}

IntArrayRef Value::ints() const {
  expect(tag_ == Tag::Ints, "a list of ints");
  return {static_cast<const int64_t*>(payload_.object), size_};
}
const std::vector<double>& Value::floats() const {
  expect(tag_ == Tag::Floats, "a list of floats");
  return *static_cast<const std::vector<double>*>(payload_.object);
}
const std::vector<bool>& Value::bools() const {
  expect(tag_ == Tag::Bools, "a list of bools");
  return *static_cast<const std::vector<bool>*>(payload_.object);
}
const TensorList& Value::tensors() const {
  expect(tag_ == Tag::Tensors, "a list of tensors");
  return *static_cast<const TensorList*>(payload_.object);
}
const std::vector<Scalar>& Value::scalars() const {
  expect(tag_ == Tag::Scalars, "a list of numbers");
  return *static_cast<const std::vector<Scalar>*>(payload_.object);
}
std::string_view Value::text() const {
  expect(tag_ == Tag::String, "a string");
  return {static_cast<const char*>(payload_.object), size_};
}
rushlight::DType Value::dtype() const {
  expect(tag_ == Tag::DType, "a dtype");
  return static_cast<rushlight::DType>(payload_.integer);
}
rushlight::Device Value::device() const {
  expect(tag_ == Tag::Device, "a device");
  return {static_cast<DeviceType>(payload_.integer & 0xff),
          static_cast<int8_t>(payload_.integer >> 8)};
}
LayoutKind Value::layout() const {
  expect(tag_ == Tag::Layout, "a layout");
  return static_cast<LayoutKind>(payload_.integer);
}
MemoryFormat Value::memory_format() const {
  expect(tag_ == Tag::MemoryFormat, "a memory format");
  return static_cast<MemoryFormat>(payload_.integer);
}
rushlight::Generator& Value::generator() const {
  expect(tag_ == Tag::Generator, "a generator");
  return *const_cast<rushlight::Generator*>(
      static_cast<const rushlight::Generator*>(payload_.object));
}

}  // namespace rushlight
