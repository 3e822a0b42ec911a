// Kernels compiled when the library is built: the kernel pack, one for each level.
//
// tools/packer.cpp writes it and the library carries it as constant bytes, a little-endian image:
//   PackHeader, then `count` PackEntry sorted by key, then the dictionary, then the frames.
// A frame is the object that the code generator emits for one kernel, compressed by zstd against
// the dictionary; it is decompressed and loaded when its kernel is first asked for.
#pragma once

#include <rushlight/error.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "codegen/plugin.h"

struct ZSTD_DDict_s;  // of zstd.h
struct ZSTD_DCtx_s;

namespace rushlight {

struct PackHeader {
  uint64_t size;   // of the image
  uint32_t count;  // of entries
  uint32_t dictionary_size;
};

struct PackEntry {
  uint64_t key;          // loop::key of the kernel
  uint32_t offset;       // of the frame in the image
  uint32_t frame_size;   // compressed
  uint32_t object_size;  // decompressed
  uint32_t unused;
};

// A reader of one image, which must outlive it. Throws RuntimeError where the image is damaged;
// never reads beyond `image.size()` bytes.
class RUSHLIGHT_API KernelPack {
 public:
  explicit KernelPack(std::string_view image);
  ~KernelPack();
  KernelPack(const KernelPack&) = delete;
  KernelPack& operator=(const KernelPack&) = delete;

  uint32_t count() const { return count_; }
  // The object of a kernel; false where the pack does not hold it. Safe to call from many threads.
  bool read(uint64_t key, std::string* object) const;

 private:
  std::string_view image_;
  uint32_t count_ = 0;
  const PackEntry* entries_ = nullptr;
  ZSTD_DDict_s* dictionary_ = nullptr;
  mutable std::mutex mutex_;        // of the context
  ZSTD_DCtx_s* context_ = nullptr;  // its memory is worth keeping
};

// The pack that the library carries for a level, or null.
const KernelPack* kernel_pack(codegen::Level level);

}  // namespace rushlight
