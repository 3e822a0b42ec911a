// Runs a kernel compiled, with and without stores past the caches, and interpreted on the same
// data, and compares every byte of every buffer.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "loop/kernel.h"

namespace rushlight::testing {

// Memory that ends where an unmapped page starts, so that reading past the end is a fault.
class GuardedMemory {
 public:
  explicit GuardedMemory(size_t size);
  ~GuardedMemory();
  GuardedMemory(GuardedMemory&& other) noexcept;
  GuardedMemory(const GuardedMemory&) = delete;
  char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  char* map_ = nullptr;
  size_t mapped_ = 0;
  char* data_ = nullptr;
  size_t size_ = 0;
};

struct Problem {
  loop::Kernel kernel;
  std::vector<int64_t> extents;
  std::vector<std::vector<int64_t>> sizes;  // of each buffer's dimensions
  std::vector<double> scalars = {};
  int64_t index_limit = 0;  // where positive, i64 buffers hold indices below it
  int ulp = 0;              // how far floats may be apart
  bool special = true;      // data holds NaN, infinities, zeros of both signs, subnormals
  uint64_t seed = 1;
};

// Reports a failure of the running test where the two runs differ.
void expect_agreement(const Problem& problem);

// Units in the last place between two finite values of the same sign; 0 for two NaNs.
int64_t ulp_distance(float a, float b);
int64_t ulp_distance(double a, double b);

}  // namespace rushlight::testing
