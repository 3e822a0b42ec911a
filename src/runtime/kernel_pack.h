// Kernels compiled when the library is built: the kernel pack, one for each level.
//
// tools/packer.cpp writes it and the library carries it as constant bytes, a little-endian image:
//   PackHeader, then PackEntry sorted by key, then PackFrame, then the dictionary, then the frames.
// A frame is some objects that the code generator emits, each for one kernel, one after the other,
// compressed by zstd against the dictionary. It is decompressed when one of its kernels is first
// asked for; of small kernels that are alike, a few together take three quarters of the space.
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
  uint32_t frames;
  uint32_t dictionary_size;
  uint32_t unused;
};

struct PackEntry {
  uint64_t key;    // loop::key of the kernel
  uint32_t frame;  // its number
  uint32_t begin;  // of the object in the decompressed frame
  uint32_t size;   // of the object
  uint32_t unused;
};

struct PackFrame {
  uint32_t offset;      // in the image
  uint32_t size;        // compressed
  uint32_t whole_size;  // decompressed
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
  const PackFrame* frames_ = nullptr;
  uint32_t frame_count_ = 0;
  ZSTD_DDict_s* dictionary_ = nullptr;
  void open_frame(uint32_t number) const;

  mutable std::mutex mutex_;  // of what follows
  ZSTD_DCtx_s* context_ = nullptr;
  mutable std::string opened_;  // the frame that was decompressed last
  mutable uint32_t opened_number_ = UINT32_MAX;
};

// The pack that the library carries for a level, or null.
const KernelPack* kernel_pack(codegen::Level level);

}  // namespace rushlight
