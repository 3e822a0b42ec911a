#include "io/safetensors_header.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_set>

#include "io/json_cursor.h"

namespace rushlight::safetensors {
namespace {

using io::JsonCursor;

constexpr const char* kWhat = "safetensors";
constexpr uint64_t kLongestHeader = 100'000'000;
constexpr size_t kLengthBytes = 8;

struct DTypeName {
  DType dtype;
  std::string_view text;
};
// In the reference implementation's order.
constexpr DTypeName kNames[] = {
    {DType::Bool, "BOOL"},
    {DType::UInt8, "U8"},
    {DType::Int8, "I8"},
    {DType::Float8E5M2, "F8_E5M2"},
    {DType::Float8E4M3FN, "F8_E4M3"},
    {DType::Float8E8M0FNU, "F8_E8M0"},
    {DType::Int16, "I16"},
    {DType::UInt16, "U16"},
    {DType::Float16, "F16"},
    {DType::BFloat16, "BF16"},
    {DType::Int32, "I32"},
    {DType::UInt32, "U32"},
    {DType::Float32, "F32"},
    {DType::Complex64, "C64"},
    {DType::Float64, "F64"},
    {DType::Int64, "I64"},
    {DType::UInt64, "U64"},
};

template <typename... Parts>
[[noreturn]] void invalid(const Parts&... parts) {
  fail(ErrorKind::Value, kWhat, "invalid file: ", parts...);
}

DType parse_dtype_text(std::string_view text, const std::string& name) {
  for (const DTypeName& candidate : kNames) {
    if (candidate.text == text) {
      return candidate.dtype;
    }
  }
  invalid("tensor '", name, "' has the unknown dtype '", text, "'");
}

IntList read_shape(JsonCursor& json) {
  IntList sizes;
  json.expect('[');
  if (json.take(']')) {
    return sizes;
  }
  do {
    sizes.push_back(static_cast<int64_t>(json.whole()));
  } while (json.take(','));
  json.expect(']');
  return sizes;
}

// {"dtype": ..., "shape": ..., "data_offsets": ...}, in any order, each once.
Entry read_entry(JsonCursor& json, const std::string& name) {
  Entry entry;
  entry.name = name;
  std::optional<std::string> dtype;
  bool has_shape = false;
  bool has_offsets = false;
  json.expect('{');
  do {
    const std::string key = json.string();
    json.expect(':');
    if (key == "dtype" && !dtype) {
      dtype = json.string();
    } else if (key == "shape" && !has_shape) {
      has_shape = true;
      entry.sizes = read_shape(json);
    } else if (key == "data_offsets" && !has_offsets) {
      has_offsets = true;
      json.expect('[');
      entry.begin = json.whole();
      json.expect(',');
      entry.end = json.whole();
      json.expect(']');
    } else {
      invalid("tensor '", name, "' has an unknown or repeated key '", key, "'");
    }
  } while (json.take(','));
  json.expect('}');
  if (!dtype || !has_shape || !has_offsets) {
    invalid("tensor '", name, "' lacks its dtype, shape or data_offsets");
  }
  entry.dtype = parse_dtype_text(*dtype, name);
  return entry;
}

Metadata read_metadata(JsonCursor& json) {
  Metadata metadata;
  json.expect('{');
  if (json.take('}')) {
    return metadata;
  }
  do {
    const std::string key = json.string();
    json.expect(':');
    if (!metadata.emplace(key, json.string()).second) {
      invalid("the metadata has '", key, "' twice");
    }
  } while (json.take(','));
  json.expect('}');
  return metadata;
}

void check_size(const Entry& entry) {
  uint64_t bytes = static_cast<uint64_t>(element_size(entry.dtype));
  for (const int64_t size : entry.sizes) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes)) {
      invalid("tensor '", entry.name, "' of shape ", entry.sizes, " is larger than 64 bits count");
    }
  }
  if (entry.begin > entry.end || entry.end - entry.begin != bytes) {
    invalid("tensor '", entry.name, "' of shape ", entry.sizes, " and dtype ", entry.dtype,
            " needs ", bytes, " bytes, its offsets are [", entry.begin, ", ", entry.end, "]");
  }
}

// The tensors must tile the data exactly.
void check_coverage(std::vector<Entry>& entries, uint64_t data_size) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.begin != b.begin ? a.begin < b.begin
           : a.end != b.end   ? a.end < b.end
                              : a.name < b.name;
  });
  uint64_t reached = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != reached) {
      invalid("tensor '", entry.name, "' begins at byte ", entry.begin, " of the data, but the ",
              "tensors before it end at ", reached,
              entry.begin > reached ? ": there is a gap" : ": they overlap");
    }
    reached = entry.end;
  }
  if (reached != data_size) {
    invalid("the tensors take ", reached, " bytes, but ", data_size, " follow the header",
            reached > data_size ? " (the file is cut short)" : "");
  }
}

}  // namespace

std::string_view dtype_text(DType dtype) {
  for (const DTypeName& candidate : kNames) {
    if (candidate.dtype == dtype) {
      return candidate.text;
    }
  }
  fail(ErrorKind::Value, kWhat, "the format has no name for dtype ", dtype);
}

int dtype_rank(DType dtype) {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i].dtype == dtype) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

Header read_header(const char* data, size_t size) {
  if (size < kLengthBytes) {
    invalid("it has ", size, " bytes, the length of the header alone takes ", kLengthBytes);
  }
  uint64_t length = 0;
  for (size_t i = kLengthBytes; i-- > 0;) {
    length = length << 8 | static_cast<unsigned char>(data[i]);
  }
  if (length > kLongestHeader) {
    invalid("the header claims ", length, " bytes; more than ", kLongestHeader, " are refused");
  }
  if (length > size - kLengthBytes) {
    invalid("the header claims ", length, " bytes, the file has ", size - kLengthBytes,
            " left (it is cut short)");
  }
  Header header;
  header.data_begin = kLengthBytes + length;
  const std::string_view text(data + kLengthBytes, length);
  if (text.empty() || text[0] != '{') {
    invalid("the header does not begin with '{'");
  }
  JsonCursor json(text, kWhat);
  json.expect('{');
  std::unordered_set<std::string> names;
  if (!json.take('}')) {
    do {
      const std::string name = json.string();
      json.expect(':');
      if (!names.insert(name).second) {
        invalid("it has two entries called '", name, "'");
      }
      if (name == "__metadata__") {
        header.metadata = read_metadata(json);
      } else {
        header.entries.push_back(read_entry(json, name));
        check_size(header.entries.back());
      }
    } while (json.take(','));
    json.expect('}');
  }
  json.end();
  check_coverage(header.entries, size - header.data_begin);
  return header;
}

std::string write_header(const std::vector<Entry>& entries, const Metadata& metadata) {
  std::string json = "{";
  const auto separate = [&] { json += json.back() == '{' ? "" : ","; };
  if (!metadata.empty()) {
    json += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) {
      separate();
      json += cat(io::json_quoted(key), ":", io::json_quoted(value));
    }
    json += "}";
  }
  for (const Entry& entry : entries) {
    separate();
    json += cat(io::json_quoted(entry.name), ":{\"dtype\":\"", dtype_text(entry.dtype),
                "\",\"shape\":[");
    for (size_t i = 0; i < entry.sizes.size(); ++i) {
      json += cat(i == 0 ? "" : ",", entry.sizes[i]);
    }
    json += cat("],\"data_offsets\":[", entry.begin, ",", entry.end, "]}");
  }
  json += "}";
  json.append((8 - json.size() % 8) % 8, ' ');
  std::string out(kLengthBytes, '\0');
  for (size_t i = 0; i < kLengthBytes; ++i) {
    out[i] = static_cast<char>(static_cast<uint64_t>(json.size()) >> (8 * i));
  }
  out += json;
  return out;
}

}  // namespace rushlight::safetensors
