#include "io/mapped_file.h"

#include <fcntl.h>
#include <rushlight/error.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace rushlight::io {
namespace {

[[noreturn]] void failed(const std::string& path, const char* what) {
  fail(ErrorKind::Runtime, "load", "cannot ", what, " ", path, ": ", std::strerror(errno));
}

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) {
      close(number);
    }
  }
};

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.number < 0) {
    failed(path, "open");
  }
  struct stat status{};
  if (fstat(file.number, &status) != 0) {
    failed(path, "examine");
  }
  if (!S_ISREG(status.st_mode)) {
    fail(ErrorKind::Runtime, "load", path, " is not a regular file");
  }
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) {
    return std::shared_ptr<const MappedFile>(new MappedFile(nullptr, 0));
  }
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file.number, 0);
  if (data == MAP_FAILED) {
    failed(path, "map");
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(static_cast<char*>(data), size));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) {
    munmap(data_, size_);
  }
}

}  // namespace rushlight::io
