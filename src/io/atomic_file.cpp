#include "io/atomic_file.h"

#include <fcntl.h>
#include <rushlight/error.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace rushlight::io {
namespace {

constexpr size_t kLargestWrite = size_t{1} << 30;  // the system takes no more at a time

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// Names differ within the process and between processes.
std::string temporary_name(const std::string& path) {
  static std::atomic<uint64_t> counter{0};
  return path + ".tmp-" + std::to_string(getpid()) + "-" + std::to_string(counter++);
}

// Makes the rename itself survive a power failure. Not all file systems can; the data is safe.
void flush_folder(const std::string& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    fsync(descriptor);
    close(descriptor);
  }
}

}  // namespace

AtomicFile::AtomicFile(std::string path)
    : path_(std::move(path)), temporary_(temporary_name(path_)) {
  descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    failed("create a file for");
  }
  struct stat old{};
  if (stat(path_.c_str(), &old) == 0 && fchmod(descriptor_, old.st_mode & 07777) != 0) {
    // The new file keeps the default permissions: not worth losing the data for.
    errno = 0;
  }
}

AtomicFile::~AtomicFile() {
  remove_temporary();
}

void AtomicFile::remove_temporary() noexcept {
  if (descriptor_ >= 0) {
    close(descriptor_);
    descriptor_ = -1;
    unlink(temporary_.c_str());
  }
}

void AtomicFile::failed(const char* what) const {
  fail(ErrorKind::Runtime, "save", "cannot ", what, " ", path_, ": ", std::strerror(errno),
       "; a file that was there is unchanged");
}

void AtomicFile::write(const void* data, size_t size) {
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(descriptor_, next, size < kLargestWrite ? size : kLargestWrite);
    if (written < 0) {
      if (errno == EINTR) {
        continue;
      }
      failed("write");
    }
    next += written;
    size -= static_cast<size_t>(written);
  }
}

void AtomicFile::commit() {
  if (fsync(descriptor_) != 0) {
    failed("flush");
  }
  const int descriptor = descriptor_;
  if (rename(temporary_.c_str(), path_.c_str()) != 0) {
    failed("replace");
  }
  descriptor_ = -1;
  if (close(descriptor) != 0) {
    failed("close");
  }
  flush_folder(folder_of(path_));
}

}  // namespace rushlight::io
