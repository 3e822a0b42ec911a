// Compiles the kernels of the operator table ahead of time: the kernel pack.
//
//   rushlight_packer DIRECTORY [LEVEL...]     levels: v3 v4, by default both
//
// Writes DIRECTORY/pack_LEVEL.o, the pack as constant bytes. Kernels are dealt by key to a fixed
// number of shares, kept beside it as pack_LEVEL_NN.share, and a share whose kernels and code
// generator are those of the last run is read again: an edit of one operator recompiles few.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "codegen/target.h"
#include "codegen_identity.h"
#include "loop/kernel.h"
#include "pack_image.h"
#include "pack_samples.h"

namespace rushlight {
namespace {

constexpr int kShares = 16;
constexpr const char* kSymbol = "rushlight_kernel";  // runtime/kernel_cache.cpp asks for it

struct LevelName {
  codegen::Level level;
  std::string text;
};

// By key, with its place among those that were collected.
struct Collected {
  loop::Kernel kernel;
  size_t place;
};
using Kernels = std::map<uint64_t, Collected>;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

void write_file(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << content;
  if (!file.flush()) {
    throw std::runtime_error("cannot write " + path);
  }
}

using Objects = std::map<uint64_t, std::string>;

// A share begins with the code generator's identity and its kernels' keys, one a line, and an empty
// line; then comes each object after its size. Null where the file is not that of these kernels.
std::optional<Objects> read_share(const std::string& path, const std::string& title,
                                  const std::vector<uint64_t>& keys) {
  std::string content = read_file(path);
  if (content.compare(0, title.size(), title) != 0) {
    return std::nullopt;
  }
  Objects objects;
  size_t at = title.size();
  for (uint64_t key : keys) {
    uint64_t size = 0;
    if (content.size() - at < sizeof(size)) {
      return std::nullopt;
    }
    std::memcpy(&size, content.data() + at, sizeof(size));
    at += sizeof(size);
    if (content.size() - at < size) {
      return std::nullopt;
    }
    objects.emplace(key, content.substr(at, size));
    at += size;
  }
  return objects;
}

Objects compile_share(const Kernels& kernels, const std::vector<uint64_t>& keys,
                      codegen::Level level, const std::string& path, const std::string& title) {
  codegen::Generator generator(level);
  Objects objects;
  std::string content = title;
  for (uint64_t key : keys) {
    llvm::LLVMContext context;
    std::unique_ptr<llvm::Module> module =
        codegen::lower(context, generator.machine(), {{&kernels.at(key).kernel, kSymbol}});
    std::string object = generator.emit(*module);
    uint64_t size = object.size();
    content.append(reinterpret_cast<const char*>(&size), sizeof(size));
    content += object;
    objects.emplace(key, std::move(object));
  }
  write_file(path, content);
  return objects;
}

struct Share {
  Objects objects;
  bool compiled;
};

Share make_share(const Kernels& kernels, const LevelName& level, int number,
                 const std::string& directory) {
  char name[64];
  std::snprintf(name, sizeof(name), "/pack_%s_%02d.share", level.text.c_str(), number);
  std::vector<uint64_t> keys;
  std::string title = RUSHLIGHT_CODEGEN_IDENTITY "\n";
  for (const auto& [key, kernel] : kernels) {
    if (key % kShares == static_cast<uint64_t>(number)) {
      keys.push_back(key);
      title += std::to_string(key) + "\n";
    }
  }
  title += "\n";
  std::string path = directory + name;
  if (std::optional<Objects> objects = read_share(path, title, keys)) {
    return {std::move(*objects), false};
  }
  return {compile_share(kernels, keys, level.level, path, title), true};
}

// In the order of collection: kernels of one operator, which are alike, lie together.
void write_pack(const Kernels& kernels, const Objects& objects, const LevelName& level,
                const std::string& directory) {
  std::vector<std::pair<uint64_t, std::string>> ordered(objects.size());
  for (const auto& [key, object] : objects) {
    ordered[kernels.at(key).place] = {key, object};
  }
  codegen::Generator generator(level.level);
  write_file(
      directory + "/pack_" + level.text + ".o",
      codegen::emit_constant(generator, "rushlight_pack_" + level.text, pack_image(ordered)));
}

Kernels collect() {
  Kernels kernels;
  for (loop::Kernel& kernel : sample_kernels()) {
    std::string fault = loop::verify(kernel);
    if (!fault.empty()) {
      throw std::runtime_error(kernel.name + ": " + fault);
    }
    uint64_t key = loop::key(kernel);
    kernels.emplace(key, Collected{std::move(kernel), kernels.size()});
  }
  return kernels;
}

// Does `count` pieces of work on all cores; the first exception is thrown again.
template <typename Work>
void share_out(size_t count, const Work& work) {
  std::atomic<size_t> next{0};
  std::exception_ptr problem;
  std::atomic<bool> failed{false};
  auto take = [&] {
    try {
      for (size_t i = next++; i < count && !failed; i = next++) {
        work(i);
      }
    } catch (...) {
      if (!failed.exchange(true)) {
        problem = std::current_exception();
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < std::max(1u, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back(take);
  }
  take();
  for (std::thread& thread : threads) {
    thread.join();
  }
  if (problem) {
    std::rethrow_exception(problem);
  }
}

int run(const std::string& directory, const std::vector<std::string>& names) {
  std::vector<LevelName> levels;
  for (const std::string& name : names) {
    if (name != "v3" && name != "v4") {
      throw std::runtime_error("unknown level " + name);
    }
    levels.push_back({name == "v3" ? codegen::Level::X86V3 : codegen::Level::X86V4, name});
  }
  auto start = std::chrono::steady_clock::now();
  Kernels kernels = collect();
  std::vector<Share> shares(levels.size() * kShares);
  share_out(shares.size(), [&](size_t i) {
    shares[i] = make_share(kernels, levels[i / kShares], static_cast<int>(i % kShares), directory);
  });
  int compiled = 0;
  std::vector<Objects> objects(levels.size());
  for (size_t i = 0; i < shares.size(); ++i) {
    compiled += shares[i].compiled ? 1 : 0;
    objects[i / kShares].merge(shares[i].objects);
  }
  share_out(levels.size(),
            [&](size_t i) { write_pack(kernels, objects[i], levels[i], directory); });
  std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  std::printf("kernel pack: %zu kernels, %zu levels, %d of %zu shares compiled in %.1f s\n",
              kernels.size(), levels.size(), compiled, shares.size(), time.count());
  return 0;
}

}  // namespace
}  // namespace rushlight

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: %s DIRECTORY [LEVEL...]\n", arguments[0]);
    return 2;
  }
  std::vector<std::string> levels(arguments + 2, arguments + count);
  if (levels.empty()) {
    levels = {"v3", "v4"};
  }
  try {
    return rushlight::run(arguments[1], levels);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "packer: %s\n", e.what());
    return 1;
  }
}
