#include <rushlight/generator.h>

#include <cstring>
#include <random>

#include "tensor/pending.h"

namespace rushlight {
namespace {

constexpr int kWords = 624;
constexpr int kShift = 397;
constexpr std::string_view kState = "the state of a random generator";

uint32_t twist(uint32_t upper, uint32_t lower) {
  const uint32_t mixed = (upper & 0x80000000u) | (lower & 0x7fffffffu);
  return (mixed >> 1) ^ ((lower & 1u) != 0 ? 0x9908b0dfu : 0u);
}

uint32_t temper(uint32_t word) {
  word ^= word >> 11;
  word ^= (word << 7) & 0x9d2c5680u;
  word ^= (word << 15) & 0xefc60000u;
  return word ^ (word >> 18);
}

// PyTorch's saved state of a CPU generator, field for field.
struct SavedState {
  uint64_t seed;
  int32_t left;
  int32_t seeded;
  uint64_t next;
  uint64_t words[kWords];
  double unused_x;
  double next_double_normal;
  double unused_rho;
  int32_t has_double_normal;
  int32_t padding;
  float next_float_normal;
  uint8_t has_float_normal;
  uint8_t tail[3];
};
static_assert(sizeof(SavedState) == 5056);
constexpr size_t kLegacySize = offsetof(SavedState, next_float_normal);

}  // namespace

void Generator::State::reset(uint64_t new_seed) {
  seed = new_seed;
  uint32_t word = static_cast<uint32_t>(new_seed);
  words[0] = word;
  for (uint32_t i = 1; i < kWords; ++i) {
    word = 1812433253u * (word ^ (word >> 30)) + i;
    words[i] = word;
  }
  left = 1;
  next = 0;
  next_float_normal.reset();
  next_double_normal.reset();
}

void Generator::State::refill() {
  for (int i = 0; i < kWords - kShift; ++i) {
    words[i] = words[i + kShift] ^ twist(words[i], words[i + 1]);
  }
  for (int i = kWords - kShift; i < kWords - 1; ++i) {
    words[i] = words[i + kShift - kWords] ^ twist(words[i], words[i + 1]);
  }
  words[kWords - 1] = words[kShift - 1] ^ twist(words[kWords - 1], words[0]);
  left = kWords;
  next = 0;
}

uint32_t Generator::State::random32() {
  if (--left == 0) {
    refill();
  }
  return temper(words[next++]);
}

uint64_t Generator::State::random64() {
  const uint64_t high = random32();
  return high << 32 | random32();
}

void Generator::State::fill(uint32_t* out, int64_t count) {
  while (count > 0) {
    if (left == 1) {
      refill();
      ++left;  // a refill counts one word as taken already
    }
    const int64_t run = count < left - 1 ? count : left - 1;
    const uint32_t* source = words.data() + next;
    for (int64_t i = 0; i < run; ++i) {
      out[i] = temper(source[i]);
    }
    next += static_cast<uint32_t>(run);
    left -= static_cast<int>(run);
    out += run;
    count -= run;
  }
}

Generator::Generator(uint64_t seed) : state_(std::make_shared<State>()) {
  state_->reset(seed);
}

uint64_t Generator::initial_seed() const {
  std::lock_guard lock(state_->mutex);
  return state_->seed;
}

void Generator::manual_seed(uint64_t seed) {
  settle_captured(kState);
  std::lock_guard lock(state_->mutex);
  state_->reset(seed);
}

uint64_t Generator::seed() {
  std::random_device device;
  // 53 bits, so that the seed survives a trip through a floating-point number.
  const uint64_t high = device();
  const uint64_t seed = (high << 32 | device()) & ((uint64_t{1} << 53) - 1);
  manual_seed(seed);
  return seed;
}

std::vector<uint8_t> Generator::get_state() const {
  settle_captured(kState);
  SavedState saved{};
  {
    std::lock_guard lock(state_->mutex);
    saved.seed = state_->seed;
    saved.left = state_->left;
    saved.seeded = 1;
    saved.next = state_->next;
    for (int i = 0; i < kWords; ++i) {
      saved.words[i] = state_->words[i];
    }
    saved.has_double_normal = state_->next_double_normal.has_value();
    saved.next_double_normal = state_->next_double_normal.value_or(0.0);
    saved.has_float_normal = state_->next_float_normal.has_value();
    saved.next_float_normal = state_->next_float_normal.value_or(0.0f);
  }
  std::vector<uint8_t> bytes(sizeof(saved));
  std::memcpy(bytes.data(), &saved, sizeof(saved));
  return bytes;
}

void Generator::set_state(const std::vector<uint8_t>& bytes) {
  if (bytes.size() != sizeof(SavedState) && bytes.size() != kLegacySize) {
    fail(ErrorKind::Runtime, "set_state", "Expected a CPUGeneratorImplState of size ",
         sizeof(SavedState), " or a CPUGeneratorImplStateLegacy of size ", kLegacySize,
         " but found the input RNG state size to be ", bytes.size());
  }
  SavedState saved{};
  std::memcpy(&saved, bytes.data(), bytes.size());
  if (saved.seeded != 1 || saved.left < 1 || saved.left > kWords || saved.next > kWords) {
    fail(ErrorKind::Value, "set_state", "Invalid mt19937 state");
  }
  // The words that are left must lie inside the block.
  if (saved.left > 1 && saved.next + static_cast<uint64_t>(saved.left - 1) > kWords) {
    fail(ErrorKind::Value, "set_state", "Invalid mt19937 state");
  }
  settle_captured(kState);
  std::lock_guard lock(state_->mutex);
  state_->seed = saved.seed;
  state_->left = saved.left;
  state_->next = static_cast<uint32_t>(saved.next);
  for (int i = 0; i < kWords; ++i) {
    state_->words[i] = static_cast<uint32_t>(saved.words[i]);
  }
  state_->next_double_normal.reset();
  state_->next_float_normal.reset();
  if (saved.has_double_normal != 0) {
    state_->next_double_normal = saved.next_double_normal;
  }
  if (saved.has_float_normal != 0) {
    state_->next_float_normal = saved.next_float_normal;
  }
}

Generator Generator::clone() const {
  Generator copy;
  copy.set_state(get_state());
  return copy;
}

Generator& default_generator() {
  static Generator generator;
  return generator;
}

void manual_seed(uint64_t seed) {
  default_generator().manual_seed(seed);
}

}  // namespace rushlight
