#include "runtime/kernel_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#if __has_include("codegen_identity.h")
#include "codegen_identity.h"
#else
#define RUSHLIGHT_CODEGEN_IDENTITY "none"
#endif

namespace rushlight {
namespace {

struct Header {
  char magic[8];
  uint64_t identity;  // hash of the generator's identity
  uint64_t level;
  uint64_t key;
  uint64_t size;
  uint64_t checksum;
};
constexpr char kMagic[8] = {'R', 'L', 'K', 'E', 'R', 'N', '0', '1'};

uint64_t hash_bytes(const char* bytes, size_t size) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (; size >= 8; size -= 8, bytes += 8) {
    uint64_t word;
    std::memcpy(&word, bytes, 8);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  }
  for (; size > 0; --size, ++bytes) {
    hash = (hash ^ static_cast<unsigned char>(*bytes)) * 0x100000001b3u;
  }
  return hash;
}

Header header_for(codegen::Level level, uint64_t key, const std::string& object) {
  Header header;
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.identity = hash_bytes(RUSHLIGHT_CODEGEN_IDENTITY, sizeof(RUSHLIGHT_CODEGEN_IDENTITY) - 1);
  header.level = static_cast<uint64_t>(level);
  header.key = key;
  header.size = object.size();
  header.checksum = hash_bytes(object.data(), object.size());
  return header;
}

std::string choose_directory() {
  if (const char* given = std::getenv("RUSHLIGHT_CACHE_DIR")) {
    return given;
  }
  const char* base = std::getenv("XDG_CACHE_HOME");
  if (base && *base) {
    return std::string(base) + "/rushlight";
  }
  const char* home = std::getenv("HOME");
  return home && *home ? std::string(home) + "/.cache/rushlight" : "";
}

// Empty: no disk cache.
const std::string& directory() {
  static const std::string* chosen = new std::string(choose_directory());
  return *chosen;
}

std::string path_of(codegen::Level level, uint64_t key) {
  char name[64];
  std::snprintf(name, sizeof(name), "/%016llx-%s-%.8s.o", static_cast<unsigned long long>(key),
                codegen::kLevelNames[static_cast<int>(level)], RUSHLIGHT_CODEGEN_IDENTITY);
  return directory() + name;
}

void make_directories(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    mkdir(path.substr(0, slash).c_str(), 0700);
  }
  mkdir(path.c_str(), 0700);
}

bool read_whole(const std::string& path, std::string* out) {
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return false;
  }
  struct stat status;
  bool good = fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size < (1 << 28);
  if (good) {
    out->resize(static_cast<size_t>(status.st_size));
    size_t done = 0;
    while (done < out->size()) {
      ssize_t got = read(file, out->data() + done, out->size() - done);
      if (got <= 0) {
        good = false;
        break;
      }
      done += static_cast<size_t>(got);
    }
  }
  close(file);
  return good;
}

bool write_all(int file, const char* bytes, size_t size) {
  while (size > 0) {
    ssize_t done = write(file, bytes, size);
    if (done <= 0) {
      return false;
    }
    bytes += done;
    size -= static_cast<size_t>(done);
  }
  return true;
}

// What artifacts are made of, and what they brought.
struct Objects {
  std::mutex mutex;
  std::map<std::pair<codegen::Level, uint64_t>, std::string> kept;  // empty: its file has it
};

Objects& objects() {
  static auto* made = new Objects;  // threads may outlive static objects
  return *made;
}

void keep(codegen::Level level, uint64_t key, const std::string& object) {
  std::lock_guard<std::mutex> lock(objects().mutex);
  objects().kept.try_emplace({level, key}, object);
}

bool find_kept(codegen::Level level, uint64_t key, std::string* object) {
  std::lock_guard<std::mutex> lock(objects().mutex);
  auto found = objects().kept.find({level, key});
  if (found == objects().kept.end() || found->second.empty()) {
    return false;
  }
  *object = found->second;
  return true;
}

constexpr std::string_view kArtifacts = "RLARTF01";

std::string object_name(const Header& header) {
  char name[64];
  std::snprintf(name, sizeof(name), "%016llx-%s", static_cast<unsigned long long>(header.key),
                codegen::kLevelNames[header.level]);
  return name;
}

// Calls `visit(header, object)` for each entry; false where the bytes are damaged.
template <typename F>
bool for_each_artifact(std::string_view bytes, F&& visit) {
  if (!bytes.starts_with(kArtifacts)) {
    return false;
  }
  bytes.remove_prefix(kArtifacts.size());
  while (!bytes.empty()) {
    Header header;
    if (bytes.size() < sizeof(Header)) {
      return false;
    }
    std::memcpy(&header, bytes.data(), sizeof(Header));
    bytes.remove_prefix(sizeof(Header));
    if (header.size > bytes.size() || header.level >= std::size(codegen::kLevelNames)) {
      return false;
    }
    std::string object(bytes.substr(0, header.size));
    bytes.remove_prefix(header.size);
    Header expected = header_for(static_cast<codegen::Level>(header.level), header.key, object);
    expected.identity = header.identity;
    if (std::memcmp(&expected, &header, sizeof(Header)) != 0) {
      return false;
    }
    visit(header, object);
  }
  return true;
}

}  // namespace

const char* kernel_code_identity() {
  return RUSHLIGHT_CODEGEN_IDENTITY;
}

bool read_kernel_file(codegen::Level level, uint64_t key, std::string* object) {
  if (find_kept(level, key, object)) {
    return true;
  }
  std::string content;
  if (directory().empty() || !read_whole(path_of(level, key), &content) ||
      content.size() < sizeof(Header)) {
    return false;
  }
  std::string body = content.substr(sizeof(Header));
  Header expected = header_for(level, key, body);
  if (std::memcmp(&expected, content.data(), sizeof(Header)) != 0) {
    return false;
  }
  *object = std::move(body);
  keep(level, key, "");
  return true;
}

void write_kernel_file(codegen::Level level, uint64_t key, const std::string& object) {
  if (directory().empty()) {
    keep(level, key, object);
    return;
  }
  static std::atomic<unsigned> counter{0};
  std::string path = path_of(level, key);
  std::string temporary = path + "." + std::to_string(getpid()) + "." + std::to_string(counter++);
  int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  int file = open(temporary.c_str(), flags, 0600);
  if (file < 0) {
    make_directories(directory());
    file = open(temporary.c_str(), flags, 0600);
  }
  if (file < 0) {
    keep(level, key, object);
    return;
  }
  Header header = header_for(level, key, object);
  char raw[sizeof(Header)];
  std::memcpy(raw, &header, sizeof(Header));
  bool good = write_all(file, raw, sizeof(raw)) && write_all(file, object.data(), object.size());
  good = close(file) == 0 && good;
  if (!good || rename(temporary.c_str(), path.c_str()) != 0) {
    unlink(temporary.c_str());
    keep(level, key, object);
    return;
  }
  keep(level, key, "");
}

std::string save_kernel_artifacts(std::vector<std::string>* names) {
  std::vector<std::pair<codegen::Level, uint64_t>> known;
  {
    std::lock_guard<std::mutex> lock(objects().mutex);
    for (const auto& [at, object] : objects().kept) {
      known.push_back(at);
    }
  }
  std::string bytes(kArtifacts);
  for (auto [level, key] : known) {
    std::string object;
    if (!read_kernel_file(level, key, &object)) {
      continue;  // its file is gone
    }
    Header header = header_for(level, key, object);
    bytes.append(reinterpret_cast<const char*>(&header), sizeof(header));
    bytes += object;
    names->push_back(object_name(header));
  }
  return bytes;
}

bool load_kernel_artifacts(std::string_view bytes, std::vector<std::string>* names) {
  if (!for_each_artifact(bytes, [](const Header&, const std::string&) {})) {
    return false;
  }
  for_each_artifact(bytes, [&](const Header& header, const std::string& object) {
    auto level = static_cast<codegen::Level>(header.level);
    if (header.identity != header_for(level, header.key, object).identity) {
      return;
    }
    names->push_back(object_name(header));
    std::string before;
    if (!read_kernel_file(level, header.key, &before)) {
      write_kernel_file(level, header.key, object);
    }
  });
  return true;
}

}  // namespace rushlight
