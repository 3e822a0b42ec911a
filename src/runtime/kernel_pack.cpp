#include "runtime/kernel_pack.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>

extern "C" {
__attribute__((weak, visibility("hidden"))) extern const char rushlight_pack_v3[];
__attribute__((weak, visibility("hidden"))) extern const char rushlight_pack_v4[];
}

namespace rushlight {
namespace {

[[noreturn]] void fail_as_damaged(const char* what) {
  fail(ErrorKind::Runtime, "get_kernel", "the library's kernel pack is damaged: ", what);
}

// Null where the library was built without the pack. Packs live as long as the process.
const KernelPack* open_pack(const char* image) {
  if (!image) {
    return nullptr;
  }
  PackHeader header;
  std::memcpy(&header, image, sizeof(header));
  return new KernelPack(std::string_view(image, header.size));
}

}  // namespace

KernelPack::KernelPack(std::string_view image) : image_(image) {
  PackHeader header;
  if (image.size() < sizeof(header)) {
    fail_as_damaged("it has no header");
  }
  std::memcpy(&header, image.data(), sizeof(header));
  uint64_t tables = sizeof(header) + uint64_t{header.count} * sizeof(PackEntry) +
                    uint64_t{header.frames} * sizeof(PackFrame) + header.dictionary_size;
  if (header.size != image.size() || tables > image.size()) {
    fail_as_damaged("it is cut short");
  }
  count_ = header.count;
  frame_count_ = header.frames;
  entries_ = reinterpret_cast<const PackEntry*>(image.data() + sizeof(header));
  frames_ = reinterpret_cast<const PackFrame*>(entries_ + count_);
  dictionary_ = ZSTD_createDDict(frames_ + frame_count_, header.dictionary_size);
  context_ = ZSTD_createDCtx();
  RUSHLIGHT_ASSERT(dictionary_ != nullptr && context_ != nullptr);
}

KernelPack::~KernelPack() {
  ZSTD_freeDCtx(context_);
  ZSTD_freeDDict(dictionary_);
}

bool KernelPack::read(uint64_t key, std::string* object) const {
  const PackEntry* last = entries_ + count_;
  const PackEntry* found =
      std::lower_bound(entries_, last, key,
                       [](const PackEntry& entry, uint64_t wanted) { return entry.key < wanted; });
  if (found == last || found->key != key) {
    return false;
  }
  std::lock_guard lock(mutex_);
  open_frame(found->frame);
  if (found->begin > opened_.size() || found->size > opened_.size() - found->begin) {
    fail_as_damaged("an object lies outside of its frame");
  }
  object->assign(opened_, found->begin, found->size);
  return true;
}

// Kernels of one operator lie in one frame, and are often asked for one after the other.
void KernelPack::open_frame(uint32_t number) const {
  if (number == opened_number_) {
    return;
  }
  if (number >= frame_count_) {
    fail_as_damaged("an object is in no frame");
  }
  const PackFrame& frame = frames_[number];
  if (frame.offset > image_.size() || frame.size > image_.size() - frame.offset) {
    fail_as_damaged("a frame lies outside of it");
  }
  opened_number_ = UINT32_MAX;
  opened_.resize(frame.whole_size);
  size_t got = ZSTD_decompress_usingDDict(context_, opened_.data(), opened_.size(),
                                          image_.data() + frame.offset, frame.size, dictionary_);
  if (got != frame.whole_size) {
    fail_as_damaged(ZSTD_isError(got) ? ZSTD_getErrorName(got) : "a frame has another size");
  }
  opened_number_ = number;
}

const KernelPack* kernel_pack(codegen::Level level) {
  switch (level) {
    case codegen::Level::X86V3: {
      static const KernelPack* const pack = open_pack(rushlight_pack_v3);
      return pack;
    }
    case codegen::Level::X86V4: {
      static const KernelPack* const pack = open_pack(rushlight_pack_v4);
      return pack;
    }
    default:
      return nullptr;
  }
}

}  // namespace rushlight
