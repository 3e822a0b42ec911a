// Compiles the kernels of the operator table ahead of time: the kernel pack.
//
//   rushlight_packer DIRECTORY [LEVEL...]     levels: v3 v4, by default both
//
// Writes DIRECTORY/pack_LEVEL_NN.o, a fixed number of objects with code, and
// DIRECTORY/pack_LEVEL_table.o. Kernels are dealt to objects by key, and an object whose kernels
// and code generator are those of the last run is left alone: an edit of one operator recompiles
// few.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "codegen/target.h"
#include "codegen_identity.h"
#include "loop/kernel.h"
#include "pack_samples.h"

namespace rushlight {
namespace {

constexpr int kObjects = 16;  // src/codegen/CMakeLists.txt names them

struct LevelName {
  codegen::Level level;
  std::string text;
};

using Kernels = std::map<uint64_t, loop::Kernel>;

std::string symbol_of(uint64_t key, const std::string& level) {
  char name[40];
  std::snprintf(name, sizeof(name), "rushlight_%s_%016llx", level.c_str(),
                static_cast<unsigned long long>(key));
  return name;
}

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

// True where something was compiled.
bool write_object(const Kernels& kernels, const LevelName& level, int number,
                  const std::string& directory) {
  char name[64];
  std::snprintf(name, sizeof(name), "/pack_%s_%02d.o", level.text.c_str(), number);
  std::string path = directory + name;
  std::vector<codegen::Unit> units;
  std::string content = RUSHLIGHT_CODEGEN_IDENTITY "\n";
  for (const auto& [key, kernel] : kernels) {
    if (key % kObjects == static_cast<uint64_t>(number)) {
      units.push_back({&kernel, symbol_of(key, level.text)});
      content += units.back().symbol + "\n";
    }
  }
  std::string list = path + ".list";
  if (read_file(list) == content && !read_file(path).empty()) {
    return false;
  }
  codegen::Generator generator(level.level);
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = codegen::lower(context, generator.machine(), units);
  write_file(path, generator.emit(*module));
  write_file(list, content);
  return true;
}

void write_table(const Kernels& kernels, const LevelName& level, const std::string& directory) {
  codegen::Generator generator(level.level);
  std::vector<codegen::PackedFunction> functions;
  for (const auto& [key, kernel] : kernels) {
    functions.push_back({key, symbol_of(key, level.text)});
  }
  write_file(directory + "/pack_" + level.text + "_table.o",
             codegen::emit_pack_table(generator, "rushlight_pack_" + level.text, functions));
}

Kernels collect() {
  Kernels kernels;
  for (loop::Kernel& kernel : sample_kernels()) {
    std::string fault = loop::verify(kernel);
    if (!fault.empty()) {
      throw std::runtime_error(kernel.name + ": " + fault);
    }
    uint64_t key = loop::key(kernel);
    kernels.emplace(key, std::move(kernel));
  }
  return kernels;
}

// The objects of all levels, shared out among the cores.
int write_objects(const Kernels& kernels, const std::vector<LevelName>& levels,
                  const std::string& directory) {
  std::atomic<int> next{0};
  std::atomic<int> written{0};
  std::exception_ptr problem;
  std::atomic<bool> failed{false};
  int total = static_cast<int>(levels.size()) * kObjects;
  auto work = [&] {
    try {
      for (int i = next++; i < total && !failed; i = next++) {
        written += write_object(kernels, levels[static_cast<size_t>(i / kObjects)], i % kObjects,
                                directory);
      }
    } catch (...) {
      if (!failed.exchange(true)) {
        problem = std::current_exception();
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < std::max(1u, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back(work);
  }
  work();
  for (std::thread& thread : threads) {
    thread.join();
  }
  if (problem) {
    std::rethrow_exception(problem);
  }
  return written;
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
  int written = write_objects(kernels, levels, directory);
  for (const LevelName& level : levels) {
    write_table(kernels, level, directory);
  }
  std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  std::printf("kernel pack: %zu kernels, %zu levels, %d of %zu objects compiled in %.1f s\n",
              kernels.size(), levels.size(), written, levels.size() * kObjects, time.count());
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
