// A file that appears whole or not at all.
//
// Bytes go to a temporary file in the same folder; `commit` flushes them to disk and renames it
// over the old file. Until then, and wherever anything fails, the old file is as it was and the
// temporary one is removed. Errors are Error(Runtime) with the system's reason.
#pragma once

#include <cstddef>
#include <string>

namespace rushlight::io {

class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t size);
  void commit();

 private:
  [[noreturn]] void failed(const char* what) const;
  void remove_temporary() noexcept;

  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
};

}  // namespace rushlight::io
