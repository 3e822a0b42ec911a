// Safetensors files: named tensors behind a JSON header.
//
// Reading maps the file and checks the whole header before any tensor is made: its length, JSON,
// dtypes, shapes, and that the tensors cover the data exactly, without gap or overlap. A file that
// fails a check is an Error(Value); one that cannot be read, an Error(Runtime). Tensors share the
// mapping, which lives as long as they do. It is private: writing to a tensor does not change the
// file. Nobody may shorten a file while it is mapped.
#pragma once

#include <rushlight/tensor.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rushlight::safetensors {

struct Entry {
  std::string name;
  DType dtype = DType::Float32;
  IntList sizes;
  uint64_t begin = 0;  // bytes, from the end of the header
  uint64_t end = 0;
};

using Metadata = std::map<std::string, std::string>;
using NamedTensors = std::map<std::string, Tensor>;

class RUSHLIGHT_API File {
 public:
  explicit File(const std::string& path);
  // Reads a file image in memory, which must stay valid and unchanged while `owner` lives.
  File(std::shared_ptr<const void> owner, const void* data, size_t size);

  const std::vector<Entry>& entries() const;  // in the order of their data
  const Metadata& metadata() const;
  const Entry& entry(std::string_view name) const;  // Error(Key) where there is none
  // The tensor over the mapped bytes; a copy where these are not aligned to its elements.
  Tensor tensor(std::string_view name) const;
  NamedTensors tensors() const;

 private:
  struct Contents;
  std::shared_ptr<const Contents> contents_;
};

RUSHLIGHT_API NamedTensors load_file(const std::string& path);

// Writes tensors in the order that the reference implementation gives them (wide dtypes first, then
// by name). The file appears whole or not at all: an old one stays until the new one is on disk.
// Tensors that are not contiguous are written as their contiguous copies.
RUSHLIGHT_API void save_file(const NamedTensors& tensors, const std::string& path,
                             const Metadata& metadata = {});
// The same bytes in memory.
RUSHLIGHT_API std::string save(const NamedTensors& tensors, const Metadata& metadata = {});

}  // namespace rushlight::safetensors
