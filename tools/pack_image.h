// The image of a kernel pack, in the form that runtime/kernel_pack.h reads.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rushlight {

// Objects with the keys of their kernels, no key twice; neighbours share frames, so what is alike
// or used together should lie together. Throws std::runtime_error where zstd refuses them.
std::string pack_image(const std::vector<std::pair<uint64_t, std::string>>& objects);

}  // namespace rushlight
