// Hashing that is stable between runs, builds and machines.
#pragma once

#include <cstdint>
#include <string_view>

namespace rushlight::loop {

inline uint64_t mix_hash(uint64_t h, uint64_t value) {
  h = (h ^ value) * 0x9e3779b97f4a7c15ull + 0x632be59bd9b4e019ull;
  h ^= h >> 32;
  h *= 0xd6e8feb86659fd93ull;
  return h ^ (h >> 29);
}

inline uint64_t mix_hash(uint64_t h, std::string_view text) {
  for (char c : text) {
    h = mix_hash(h, static_cast<uint64_t>(static_cast<unsigned char>(c)));
  }
  return mix_hash(h, static_cast<uint64_t>(text.size()));
}

}  // namespace rushlight::loop
