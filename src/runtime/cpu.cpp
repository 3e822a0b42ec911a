#include "runtime/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <rushlight/error.h>

#include <cstdlib>
#include <iterator>

namespace rushlight {
namespace {

constexpr std::string_view kLevelNames[] = {"base", "v3", "v4", "v4amx"};

#if defined(__x86_64__)
struct Registers {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf) {
  Registers r;
  __get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx);
  return r;
}

// The register states that the operating system saves.
uint64_t saved_states() {
  unsigned low = 0;
  unsigned high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

// Linux saves tile registers only for processes that have asked, since their stacks must have room.
// All threads get what is asked for here, and children inherit it.
bool may_use_tiles() {
#if defined(__linux__)
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

constexpr bool has_all(uint64_t word, uint64_t bits) {
  return (word & bits) == bits;
}

CpuLevel detect() {
  const Registers basic = cpuid(1, 0);
  const Registers extended = cpuid(7, 0);
  const Registers extended_1 = cpuid(7, 1);
  const Registers amd = cpuid(0x80000001, 0);

  constexpr unsigned kXsave = bit_OSXSAVE | bit_FMA | bit_F16C | bit_AVX | bit_MOVBE;
  constexpr unsigned kV3 = bit_AVX2 | bit_BMI | bit_BMI2;
  if (!has_all(basic.ecx, kXsave) || !has_all(extended.ebx, kV3) || !has_all(amd.ecx, bit_LZCNT)) {
    return CpuLevel::base;
  }
  const uint64_t states = saved_states();
  constexpr uint64_t kVectors = 0x6;      // SSE, AVX
  constexpr uint64_t kVectors512 = 0xe6;  // and masks, upper halves, registers 16-31
  constexpr uint64_t kTiles = 0x60000;
  if (!has_all(states, kVectors)) {
    return CpuLevel::base;
  }
  constexpr unsigned kV4 = bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL;
  if (!has_all(extended.ebx, kV4) || !has_all(states, kVectors512)) {
    return CpuLevel::v3;
  }
  constexpr unsigned kFp16 = 1u << 23;
  constexpr unsigned kAmx = 1u << 22 | 1u << 24 | 1u << 25;  // bf16, tiles, int8
  constexpr unsigned kBf16 = 1u << 5;
  const bool amx = has_all(extended.edx, kFp16 | kAmx) && has_all(extended_1.eax, kBf16) &&
                   has_all(states, kTiles);
  return amx && may_use_tiles() ? CpuLevel::v4amx : CpuLevel::v4;
}
#else
CpuLevel detect() {
  return CpuLevel::base;
}
#endif

CpuLevel choose() {
  const CpuLevel best = detected_cpu_level();
  const char* wanted = std::getenv("RUSHLIGHT_CPU");
  if (wanted == nullptr || *wanted == '\0') {
    return best;
  }
  for (int i = 0; i < static_cast<int>(std::size(kLevelNames)); ++i) {
    if (kLevelNames[i] != wanted) {
      continue;
    }
    const auto level = static_cast<CpuLevel>(i);
    if (level > best) {
      fail(ErrorKind::Value, "", "RUSHLIGHT_CPU=", wanted,
           " is above what this machine has: ", cpu_level_name(best));
    }
    return level;
  }
  fail(ErrorKind::Value, "", "RUSHLIGHT_CPU must be base, v3, v4 or v4amx, got '", wanted, "'");
}

}  // namespace

std::string_view cpu_level_name(CpuLevel level) {
  return kLevelNames[static_cast<int>(level)];
}

CpuLevel detected_cpu_level() {
  static const CpuLevel level = detect();
  return level;
}

CpuLevel cpu_level() {
  static const CpuLevel level = choose();
  return level;
}

}  // namespace rushlight
