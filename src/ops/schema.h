// Schemas in PyTorch's grammar: "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) ->
// Tensor".
#pragma once

#include <rushlight/value.h>

#include <string>
#include <string_view>
#include <vector>

namespace rushlight {

// SymInt reads as Int. X(enumerator, text)
#define RUSHLIGHT_SCHEMA_TYPES(X) \
  X(Tensor, "Tensor")             \
  X(Scalar, "Scalar")             \
  X(Int, "int")                   \
  X(Float, "float")               \
  X(Bool, "bool")                 \
  X(String, "str")                \
  X(DType, "ScalarType")          \
  X(Device, "Device")             \
  X(Layout, "Layout")             \
  X(MemoryFormat, "MemoryFormat") \
  X(Generator, "Generator")
enum class SchemaType : uint8_t {
#define RUSHLIGHT_ENUM(name, text) name,
  RUSHLIGHT_SCHEMA_TYPES(RUSHLIGHT_ENUM)
#undef RUSHLIGHT_ENUM
};

struct Argument {
  std::string name;
  SchemaType type = SchemaType::Tensor;
  bool list = false;            // T[]
  int list_size = 0;            // int[2]: a single number stands for two of it
  bool optional = false;        // T? or T[]?
  bool optional_items = false;  // Tensor?[]
  bool keyword_only = false;
  bool alias = false;  // (a): the result views it; (a!): it is written
  bool written = false;
  bool has_default = false;
  Value default_value;
  std::string default_text;
};

struct Schema {
  std::string name;      // "add"
  std::string overload;  // "Tensor", or empty
  std::string text;
  std::vector<Argument> arguments;
  std::vector<Argument> results;  // name may be empty; type, list and alias are set
  std::string full_name() const { return overload.empty() ? name : name + "." + overload; }
  int find(std::string_view argument) const;  // its position, or -1
};

Schema parse_schema(std::string_view text);  // Error(Value) with the position of the fault

}  // namespace rushlight
