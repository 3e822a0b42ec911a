// The header of a safetensors file: read with every check, and written.
#pragma once

#include <rushlight/safetensors.h>

namespace rushlight::safetensors {

struct Header {
  std::vector<Entry> entries;  // by ascending begin
  Metadata metadata;
  size_t data_begin = 0;  // where the tensors' bytes start in the file
};

// Reads the header of a file image of `size` bytes. Error(Value) where a check fails.
Header read_header(const char* data, size_t size);

// Length and JSON, padded with blanks to a multiple of eight bytes.
std::string write_header(const std::vector<Entry>& entries, const Metadata& metadata);

std::string_view dtype_text(DType dtype);  // "F32"; Error(Value) where the format has no name
// Where the reference implementation places a dtype: wider ones first in a file.
int dtype_rank(DType dtype);

}  // namespace rushlight::safetensors
