#include <rushlight/dtype.h>

namespace rushlight {

std::string_view scalar_type_name(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return "Bool";
    case DType::UInt8:
      return "Byte";
    case DType::Int8:
      return "Char";
    case DType::UInt16:
      return "UInt16";
    case DType::Int16:
      return "Short";
    case DType::UInt32:
      return "UInt32";
    case DType::Int32:
      return "Int";
    case DType::UInt64:
      return "UInt64";
    case DType::Int64:
      return "Long";
    case DType::Float8E4M3FN:
      return "Float8_e4m3fn";
    case DType::Float8E5M2:
      return "Float8_e5m2";
    case DType::Float16:
      return "Half";
    case DType::BFloat16:
      return "BFloat16";
    case DType::Float32:
      return "Float";
    case DType::Float64:
      return "Double";
    case DType::Complex64:
      return "ComplexFloat";
    case DType::Complex128:
      return "ComplexDouble";
  }
  __builtin_unreachable();
}

}  // namespace rushlight
