// Reading a tensor's fields and its one element.
#include <rushlight/tensor.h>

#include <cstring>

#include "tensor/wrapper.h"

namespace rushlight {
namespace {

Scalar read_scalar(const void* at, DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return *static_cast<const uint8_t*>(at) != 0;  // a view of other bytes may have any
    case DType::UInt8:
      return *static_cast<const uint8_t*>(at);
    case DType::Int8:
      return *static_cast<const int8_t*>(at);
    case DType::UInt16:
      return *static_cast<const uint16_t*>(at);
    case DType::Int16:
      return *static_cast<const int16_t*>(at);
    case DType::UInt32:
      return *static_cast<const uint32_t*>(at);
    case DType::Int32:
      return *static_cast<const int32_t*>(at);
    case DType::UInt64:
      return *static_cast<const uint64_t*>(at);
    case DType::Int64:
      return *static_cast<const int64_t*>(at);
#define RUSHLIGHT_CASE(type, convert) \
  case DType::type:                   \
    return to_float(*static_cast<const type*>(at));
      RUSHLIGHT_FLOAT8(RUSHLIGHT_CASE)
#undef RUSHLIGHT_CASE
    case DType::Float16:
      return to_float(*static_cast<const Half*>(at));
    case DType::BFloat16:
      return to_float(*static_cast<const BFloat16*>(at));
    case DType::Float32:
      return *static_cast<const float*>(at);
    case DType::Float64:
      return *static_cast<const double*>(at);
    case DType::Complex64:
      return *static_cast<const std::complex<float>*>(at);
    case DType::Complex128:
      return *static_cast<const std::complex<double>*>(at);
  }
  __builtin_unreachable();
}

template <typename T>
void write(void* at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

}  // namespace

Scalar read_element(const void* at, DType dtype) {
  return read_scalar(at, dtype);
}

void write_element(void* at, DType dtype, const Scalar& value) {
  switch (dtype) {
    case DType::Bool:
      return write(at, value.to_bool());
#define RUSHLIGHT_CASE(type, convert) \
  case DType::type:                   \
    return write(at, convert(static_cast<float>(value.to_double())));
      RUSHLIGHT_FLOAT8(RUSHLIGHT_CASE)
#undef RUSHLIGHT_CASE
    case DType::Float16:
      return write(at, to_half(static_cast<float>(value.to_double())));
    case DType::BFloat16:
      return write(at, to_bfloat16(static_cast<float>(value.to_double())));
    case DType::Float32:
      return write(at, static_cast<float>(value.to_double()));
    case DType::Float64:
      return write(at, value.to_double());
    case DType::Complex64:
      return write(at, std::complex<float>(value.to_complex()));
    case DType::Complex128:
      return write(at, value.to_complex());
    default: {
      int64_t bits = value.to_int();  // little endian: the low bytes come first
      std::memcpy(at, &bits, static_cast<size_t>(element_size(dtype)));
    }
  }
}

namespace {

size_t dimension_of(const TensorImpl& tensor, int64_t dim, std::string_view op) {
  int64_t at = wrap_dim(dim, tensor.rank, op);
  if (tensor.rank == 0) {
    fail(ErrorKind::Index, op, "Dimension specified as ", dim, " but tensor has no dimensions");
  }
  return static_cast<size_t>(at);
}

}  // namespace

int64_t Tensor::size(int64_t dim) const {
  return impl_->sizes[dimension_of(*impl_, dim, "size")];
}

int64_t Tensor::stride(int64_t dim) const {
  return impl_->strides[dimension_of(*impl_, dim, "stride")];
}

bool Tensor::is_contiguous(MemoryFormat format) const {
  int64_t wanted = format == MemoryFormat::ChannelsLast ? 4 : 5;
  if (format == MemoryFormat::Contiguous || format == MemoryFormat::Preserve) {
    return is_contiguous();
  }
  if (dim() != wanted) {
    return false;
  }
  int64_t expected = 1;
  for (int64_t i = 0; i < wanted; ++i) {
    // Channels first, then the spatial dimensions from the last, the batch at the end.
    int64_t d = i == 0 ? 1 : (i == wanted - 1 ? 0 : wanted - i);
    if (impl_->sizes[d] != 1 && impl_->strides[d] != expected) {
      return false;
    }
    expected *= impl_->sizes[d];
  }
  return true;
}

bool (*item_hook)(const Tensor&, Scalar*) = nullptr;

Scalar Tensor::item() const {
  if (numel() != 1) {
    fail(ErrorKind::Runtime, "", "a Tensor with ", numel(),
         " elements cannot be converted to Scalar");
  }
  Scalar number;
  if (item_hook != nullptr && item_hook(*this, &number)) {
    return number;
  }
  if (is_meta()) {
    fail(ErrorKind::NotImplemented, "item", "Tensor.item() cannot be called on meta tensors");
  }
  return read_scalar(data(), dtype());
}

void Tensor::check_element_type(DType wanted) const {
  if (wanted != dtype()) {
    fail(ErrorKind::Runtime, "data_ptr", "expected scalar type ", wanted, " but found ", dtype());
  }
  if (is_meta()) {
    fail(ErrorKind::NotImplemented, "data_ptr", "Cannot access data pointer of a meta tensor");
  }
}

Tensor make_scalar_tensor(const Scalar& value, DType dtype) {
  Tensor tensor = make_tensor({}, dtype);
  write_element(tensor.data(), dtype, value);
  return tensor;
}

}  // namespace rushlight
