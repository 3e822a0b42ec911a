// A file's bytes in memory, mapped privately: writes stay in this process.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace rushlight::io {

class MappedFile {
 public:
  // Error(Runtime) with the system's reason where the file cannot be opened or mapped.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  MappedFile(char* data, size_t size) : data_(data), size_(size) {}
  char* data_;
  size_t size_;
};

}  // namespace rushlight::io
