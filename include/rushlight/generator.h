// Random number generators: mt19937 streams equal to PyTorch's CPU generator.
#pragma once

#include <rushlight/error.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace rushlight {

class RUSHLIGHT_API Generator {
 public:
  static constexpr uint64_t kDefaultSeed = 67280421310721ULL;
  explicit Generator(uint64_t seed = kDefaultSeed);  // handles share the state
  uint64_t initial_seed() const;
  void manual_seed(uint64_t seed);
  uint64_t seed();                         // seeds from the system, returns the seed
  std::vector<uint8_t> get_state() const;  // PyTorch's byte layout
  void set_state(const std::vector<uint8_t>& state);
  Generator clone() const;
  bool same(const Generator& other) const { return state_ == other.state_; }

  struct State;
  State& state() const { return *state_; }  // lock state().mutex while drawing

 private:
  std::shared_ptr<State> state_;
};

struct Generator::State {
  std::mutex mutex;
  uint64_t seed = 0;
  std::array<uint32_t, 624> words{};
  int left = 1;
  uint32_t next = 0;
  std::optional<float> next_float_normal;
  std::optional<double> next_double_normal;

  void reset(uint64_t seed);
  uint32_t random32();
  uint64_t random64();
  void fill(uint32_t* out, int64_t count);  // the words that `count` calls of random32 return

 private:
  void refill();
};

RUSHLIGHT_API Generator& default_generator();
RUSHLIGHT_API void manual_seed(uint64_t seed);

}  // namespace rushlight
