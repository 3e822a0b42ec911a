// Prints the nanoseconds that an addition of two tensors of one element takes.
#include <rushlight/rushlight.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

int main() {
  using Clock = std::chrono::steady_clock;
  constexpr int kRounds = 31;
  constexpr int kCalls = 20000;
  const rushlight::Tensor x = rushlight::ones({1});
  const rushlight::Tensor y = rushlight::ones({1});
  std::vector<double> times;
  for (int round = 0; round < kRounds; ++round) {
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < kCalls; ++i) {
      const rushlight::Tensor sum = rushlight::add(x, y);
    }
    const std::chrono::duration<double, std::nano> took = Clock::now() - begin;
    times.push_back(took.count() / kCalls);
  }
  std::sort(times.begin(), times.end());
  std::printf("%.1f\n", times[kRounds / 2]);
}
