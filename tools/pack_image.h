// The image of a kernel pack, in the form that runtime/kernel_pack.h reads.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace rushlight {

// Objects by the keys of their kernels. Throws std::runtime_error where zstd refuses them.
std::string pack_image(const std::map<uint64_t, std::string>& objects);

}  // namespace rushlight
