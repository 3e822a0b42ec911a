// Kernels compiled for AArch64, linked with a small C program and run under qemu: the results are
// the interpreter's. Skipped where there is no cross compiler or no qemu.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "agreement.h"
#include "loop/kernel.h"
#include "runtime/kernel_cache.h"

namespace rushlight::testing {
namespace {

using loop::AxisKind;
using loop::Expr;
using loop::Layout;

constexpr int64_t kRows = 5;
constexpr int64_t kColumns = 37;  // no multiple of a vector's width

bool runs(const std::string& command) {
  return std::system((command + " > /dev/null 2>&1").c_str()) == 0;
}

loop::Kernel rows_kernel(const char* name, AxisKind inner) {
  loop::Kernel kernel{name, {AxisKind::Parallel, inner}, {}, {}, {}};
  const loop::Buffer rows{DType::Float32, {Layout::Any, Layout::Unit}};
  kernel.buffers = {rows, rows};
  return kernel;
}

Expr element() {
  return loop::load(0, DType::Float32, {loop::index(0), loop::index(1)});
}

loop::Kernel elementwise() {
  loop::Kernel kernel = rows_kernel("elementwise", AxisKind::Parallel);
  const Expr x = element();
  const Expr y = loop::tanh(x) * loop::sigmoid(x) + loop::log1p(x * x) - loop::erf(x);
  kernel.stores = {{1, {loop::index(0), loop::index(1)}, y}};
  return kernel;
}

loop::Kernel softmax() {
  loop::Kernel kernel = rows_kernel("softmax", AxisKind::Reduce);
  const Expr x = element();
  const Expr e = loop::exp(x - loop::reduce(loop::Combine::Max, 1, x));
  kernel.stores = {
      {1, {loop::index(0), loop::index(1)}, e / loop::reduce(loop::Combine::Sum, 1, e)}};
  return kernel;
}

loop::Kernel running_sum() {
  loop::Kernel kernel = rows_kernel("running_sum", AxisKind::Scan);
  kernel.stores = {
      {1, {loop::index(0), loop::index(1)}, loop::scan(loop::Combine::Sum, 1, element())}};
  return kernel;
}

loop::Kernel through_bfloat16() {
  loop::Kernel kernel = rows_kernel("through_bfloat16", AxisKind::Parallel);
  const Expr narrow = loop::cast(element(), DType::BFloat16);
  kernel.stores = {{1, {loop::index(0), loop::index(1)}, loop::cast(narrow, DType::Float32)}};
  return kernel;
}

std::vector<float> inputs() {
  std::vector<float> values;
  for (int64_t i = 0; i < kRows * kColumns; ++i) {
    values.push_back(std::sin(static_cast<float>(i) * 0.7f) * 3);
  }
  return values;
}

std::vector<float> interpreted(const loop::Kernel& kernel) {
  std::vector<float> in = inputs();
  std::vector<float> out(in.size());
  void* buffers[] = {in.data(), out.data()};
  const int64_t stride[] = {kColumns, 1};
  const int64_t* strides[] = {stride, stride};
  const int64_t extents[] = {kRows, kColumns};
  const loop::KernelArgs args{buffers, strides, extents, nullptr};
  loop::interpret(kernel, args, 0, kRows);
  return out;
}

// A C program that runs the kernel in two pieces, as two threads would, and prints the bits.
std::string driver() {
  std::ostringstream text;
  text << "#include <stdint.h>\n#include <stdio.h>\n"
       << "typedef struct { void* const* buffers; const int64_t* const* strides;\n"
       << "  const int64_t* extents; const uint64_t* scalars; } Args;\n"
       << "void rushlight_kernel(const Args*, int64_t, int64_t);\n"
       << "static uint32_t in[] = {";
  for (const float value : inputs()) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    text << bits << "u,";
  }
  text << "};\nstatic uint32_t out[" << kRows * kColumns << "];\n"
       << "int main(void) {\n  void* buffers[] = {in, out};\n"
       << "  const int64_t stride[] = {" << kColumns << ", 1};\n"
       << "  const int64_t* strides[] = {stride, stride};\n"
       << "  const int64_t extents[] = {" << kRows << ", " << kColumns << "};\n"
       << "  Args args = {buffers, strides, extents, 0};\n"
       << "  rushlight_kernel(&args, 0, 2);\n  rushlight_kernel(&args, 2, " << kRows << ");\n"
       << "  for (int i = 0; i < " << kRows * kColumns << "; ++i) printf(\"%u\\n\", out[i]);\n"
       << "  return 0;\n}\n";
  return text.str();
}

class AArch64 : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!runs("aarch64-linux-gnu-gcc --version") || !runs("qemu-aarch64 --version")) {
      GTEST_SKIP()
          << "needs aarch64-linux-gnu-gcc and qemu-aarch64 (Debian: gcc-aarch64-linux-gnu, "
             "libc6-dev-arm64-cross, qemu-user)";
    }
    folder_ = ::testing::TempDir() + "aarch64-" + std::to_string(getpid());
    std::filesystem::create_directory(folder_);
  }
  void TearDown() override {
    if (!folder_.empty()) {
      std::filesystem::remove_all(folder_);
    }
  }

  std::vector<float> emulated(const loop::Kernel& kernel) {
    std::ofstream(folder_ + "/kernel.o", std::ios::binary) << kernel_object(kernel, "aarch64");
    std::ofstream(folder_ + "/driver.c") << driver();
    const std::string in = "cd " + folder_ + " && ";
    EXPECT_EQ(std::system((in + "aarch64-linux-gnu-gcc -O1 -static driver.c kernel.o -lm -o run "
                                "&& qemu-aarch64 ./run > bits")
                              .c_str()),
              0);
    std::vector<float> values;
    std::ifstream bits(folder_ + "/bits");
    for (uint32_t word = 0; bits >> word;) {
      float value;
      std::memcpy(&value, &word, sizeof(value));
      values.push_back(value);
    }
    return values;
  }

  void expect_agreement(const loop::Kernel& kernel, int64_t ulp) {
    const std::vector<float> expected = interpreted(kernel);
    const std::vector<float> got = emulated(kernel);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_LE(ulp_distance(got[i], expected[i]), ulp)
          << "element " << i << ": " << got[i] << ", not " << expected[i];
    }
  }

 private:
  std::string folder_;
};

TEST_F(AArch64, Elementwise) {
  expect_agreement(elementwise(), 64);  // the sum cancels: a few units of its terms
}

TEST_F(AArch64, ReductionsUnderAnElementwisePart) {
  expect_agreement(softmax(), 4);
}

TEST_F(AArch64, ScansAreExact) {
  expect_agreement(running_sum(), 0);
}

TEST_F(AArch64, ConversionsAreExact) {
  expect_agreement(through_bfloat16(), 0);
}

}  // namespace
}  // namespace rushlight::testing
