// The way from a kernel to a function: loader, files on disk, targets, threads.
#include "runtime/kernel_cache.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "runtime/kernel_files.h"
#include "runtime/object_loader.h"

namespace rushlight::testing {
namespace {

using codegen::Level;
using loop::Expr;

// Before the library reads the environment: a directory of this process alone.
const std::string& cache_directory() {
  static const std::string directory = [] {
    std::string path = ::testing::TempDir() + "rushlight-kernels-" + std::to_string(getpid());
    setenv("RUSHLIGHT_CACHE_DIR", path.c_str(), 1);
    return path;
  }();
  return directory;
}
const std::string& prepared = cache_directory();

loop::Kernel softmax(double scale) {
  loop::Kernel kernel{"softmax", {loop::AxisKind::Parallel, loop::AxisKind::Reduce}, {}, {}, {}};
  loop::Buffer rows{DType::Float32, {loop::Layout::Any, loop::Layout::Unit}};
  kernel.buffers = {rows, rows};
  Expr x = loop::load(0, DType::Float32, {loop::index(0), loop::index(1)}) * scale;
  Expr e = loop::exp(x - loop::reduce(loop::Combine::Max, 1, x));
  kernel.stores = {
      {1, {loop::index(0), loop::index(1)}, e / loop::reduce(loop::Combine::Sum, 1, e)}};
  return kernel;
}

std::string only_file() {
  std::string found;
  for (const auto& entry : std::filesystem::directory_iterator(cache_directory())) {
    if (entry.path().filename().string().rfind("00000000000000ab", 0) == 0) {
      found = entry.path().string();
    }
  }
  return found;
}

TEST(KernelFiles, GiveBackExactlyWhatWasWritten) {
  std::string object = "some bytes that stand for an object";
  std::string read;
  EXPECT_FALSE(read_kernel_file(Level::X86V3, 0xab, &read));
  write_kernel_file(Level::X86V3, 0xab, object);
  ASSERT_TRUE(read_kernel_file(Level::X86V3, 0xab, &read));
  EXPECT_EQ(read, object);
  EXPECT_FALSE(read_kernel_file(Level::X86V4, 0xab, &read));
}

TEST(KernelFiles, IgnoreDamageAndAreWrittenAnew) {
  std::string object(100, 'x');
  std::string read;
  write_kernel_file(Level::X86V3, 0xab, object);
  std::string path = only_file();
  ASSERT_FALSE(path.empty());
  uintmax_t size = std::filesystem::file_size(path);
  for (uintmax_t at = 0; at < size; at += 7) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    file.put('\x7e');
    file.close();
    EXPECT_FALSE(read_kernel_file(Level::X86V3, 0xab, &read)) << "byte " << at;
    write_kernel_file(Level::X86V3, 0xab, object);
    EXPECT_TRUE(read_kernel_file(Level::X86V3, 0xab, &read));
  }
  for (uintmax_t length : {uintmax_t{0}, uintmax_t{10}, size - 1}) {
    std::filesystem::resize_file(path, length);
    EXPECT_FALSE(read_kernel_file(Level::X86V3, 0xab, &read)) << "length " << length;
    write_kernel_file(Level::X86V3, 0xab, object);
  }
}

TEST(ObjectLoader, RefusesTruncatedObjects) {
  std::string object = kernel_object(softmax(1), "x86-64-v3");
  std::string error;
  EXPECT_NE(load_object(object, "rushlight_kernel", &error), nullptr) << error;
  EXPECT_EQ(load_object(object, "another", &error), nullptr);
  EXPECT_NE(error.find("another"), std::string::npos);
  for (size_t length = 0; length < object.size(); length += 13) {
    EXPECT_EQ(load_object(object.substr(0, length), "rushlight_kernel", &error), nullptr);
  }
}

TEST(ObjectLoader, SurvivesDamagedObjects) {
  std::string object = kernel_object(softmax(1), "x86-64-v3");
  std::mt19937 random(1);
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string damaged = object;
    for (int i = 0; i < 4; ++i) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    std::string error;
    // What loads is not run: its code may be anything.
    refused += load_object(damaged, "rushlight_kernel", &error) == nullptr ? 1 : 0;
  }
  EXPECT_GT(refused, 0);
}

TEST(KernelCache, EmitsObjectsForEveryTarget) {
  const std::pair<const char*, int> targets[] = {
      {"x86-64-v3", EM_X86_64}, {"x86-64-v4", EM_X86_64}, {"aarch64", EM_AARCH64}};
  for (const auto& [level, machine] : targets) {
    std::string object = kernel_object(softmax(2), level);
    Elf64_Ehdr header;
    ASSERT_GT(object.size(), sizeof(header)) << level;
    std::memcpy(&header, object.data(), sizeof(header));
    EXPECT_EQ(header.e_machine, machine) << level;
    EXPECT_EQ(header.e_type, ET_REL) << level;
  }
  std::string text = kernel_assembly(softmax(2), "x86-64-v4");
  EXPECT_NE(text.find("rushlight_kernel"), std::string::npos);
  EXPECT_THROW(kernel_object(softmax(2), "pdp11"), Error);
}

// One generator serves all kernels of a thread.
TEST(KernelCache, ObjectsDoNotDependOnWhatWasCompiledBefore) {
  for (const char* level : {"x86-64-v3", "x86-64-v4", "aarch64"}) {
    const std::string first = kernel_object(softmax(2), level);
    const std::string other = kernel_object(softmax(1), level);
    EXPECT_NE(first, other) << level;
    EXPECT_EQ(kernel_object(softmax(2), level), first) << level;
    std::string elsewhere;
    std::thread([&] { elsewhere = kernel_object(softmax(1), level); }).join();
    EXPECT_EQ(elsewhere, other) << level;
  }
}

TEST(KernelCache, CompilesOnceForManyThreads) {
  loop::Kernel kernel = softmax(3);
  int64_t before = kernel_cache_stats().compiled;
  std::vector<loop::KernelFunction> functions(8);
  std::vector<std::thread> threads;
  for (loop::KernelFunction& function : functions) {
    threads.emplace_back([&] { function = get_kernel(kernel); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (loop::KernelFunction function : functions) {
    EXPECT_EQ(function, functions[0]);
  }
  EXPECT_EQ(kernel_cache_stats().compiled, before + 1);
  std::string read;
  EXPECT_TRUE(read_kernel_file(Level::X86V3, loop::key(kernel), &read) ||
              read_kernel_file(Level::X86V4, loop::key(kernel), &read));
}

TEST(KernelCache, SaysWhyAKernelCannotBeCompiled) {
  // A scan under a reduction along another axis would need a running value for each position.
  loop::Kernel kernel{"odd", {loop::AxisKind::Scan, loop::AxisKind::Reduce}, {}, {}, {}};
  kernel.buffers = {{DType::Float32, {loop::Layout::Any, loop::Layout::Unit}},
                    {DType::Float32, {loop::Layout::Unit}}};
  Expr x = loop::load(0, DType::Float32, {loop::index(0), loop::index(1)});
  Expr running = loop::scan(loop::Combine::Sum, 0, x);
  kernel.stores = {{1, {loop::index(0)}, loop::reduce(loop::Combine::Sum, 1, running)}};
  try {
    get_kernel(kernel);
    FAIL() << "compiled";
  } catch (const Error& error) {
    std::string text = error.what();
    EXPECT_NE(text.find("odd"), std::string::npos) << text;
    EXPECT_NE(text.find("scan"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace rushlight::testing
