#include "pack_image.h"

#include <zdict.h>
#include <zstd.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <vector>

#include "runtime/kernel_pack.h"

namespace rushlight {
namespace {

// Objects are small and alike, so most of what repeats is found in what was seen before them.
constexpr size_t kDictionarySize = 128 << 10;
// A frame ends after so many objects, or bytes: a kernel waits for all of its frame.
constexpr size_t kFrameObjects = 8;
constexpr size_t kFrameBytes = 48 << 10;
constexpr int kCompression = 22;  // the most that zstd does; reading takes no longer for it

size_t checked(size_t result, const char* what) {
  if (ZSTD_isError(result)) {
    throw std::runtime_error(std::string(what) + ": " + ZSTD_getErrorName(result));
  }
  return result;
}

using Objects = std::vector<std::pair<uint64_t, std::string>>;

std::string train(const Objects& objects) {
  std::string samples;
  std::vector<size_t> sizes;
  for (const auto& [key, object] : objects) {
    samples += object;
    sizes.push_back(object.size());
  }
  std::string dictionary(kDictionarySize, 0);
  size_t size = ZDICT_trainFromBuffer(dictionary.data(), dictionary.size(), samples.data(),
                                      sizes.data(), static_cast<unsigned>(sizes.size()));
  if (ZDICT_isError(size)) {
    throw std::runtime_error(std::string("no dictionary: ") + ZDICT_getErrorName(size));
  }
  dictionary.resize(size);
  return dictionary;
}

class Compressor {
 public:
  explicit Compressor(const std::string& dictionary)
      : dictionary_(ZSTD_createCDict(dictionary.data(), dictionary.size(), kCompression),
                    ZSTD_freeCDict),
        context_(ZSTD_createCCtx(), ZSTD_freeCCtx) {
    checked(ZSTD_CCtx_refCDict(context_.get(), dictionary_.get()), "dictionary");
    // The frame's entry tells the size, and there is one dictionary.
    checked(ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_contentSizeFlag, 0), "parameter");
    checked(ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_dictIDFlag, 0), "parameter");
  }

  std::string compress(const std::string& object) {
    std::string frame(ZSTD_compressBound(object.size()), 0);
    frame.resize(checked(
        ZSTD_compress2(context_.get(), frame.data(), frame.size(), object.data(), object.size()),
        "compression"));
    return frame;
  }

 private:
  std::unique_ptr<ZSTD_CDict, decltype(&ZSTD_freeCDict)> dictionary_;
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context_;
};

template <typename T>
void append(std::string* image, const T& value) {
  image->append(reinterpret_cast<const char*>(&value), sizeof(T));
}

}  // namespace

std::string pack_image(const Objects& objects) {
  std::string dictionary = train(objects);
  Compressor compressor(dictionary);
  std::vector<PackEntry> entries;
  std::vector<PackFrame> frames;
  std::string compressed;
  std::string whole;
  size_t begun = 0;  // the open frame's first entry
  auto close = [&] {
    std::string frame = compressor.compress(whole);
    frames.push_back({static_cast<uint32_t>(compressed.size()), static_cast<uint32_t>(frame.size()),
                      static_cast<uint32_t>(whole.size())});
    compressed += frame;
    whole.clear();
    begun = entries.size();
  };
  for (const auto& [key, object] : objects) {
    bool full =
        entries.size() - begun == kFrameObjects || whole.size() + object.size() > kFrameBytes;
    if (full && entries.size() > begun) {
      close();
    }
    entries.push_back({key, static_cast<uint32_t>(frames.size()),
                       static_cast<uint32_t>(whole.size()), static_cast<uint32_t>(object.size()),
                       0});
    whole += object;
  }
  if (entries.size() > begun) {
    close();
  }
  std::sort(entries.begin(), entries.end(),
            [](const PackEntry& a, const PackEntry& b) { return a.key < b.key; });
  size_t frames_at = sizeof(PackHeader) + entries.size() * sizeof(PackEntry) +
                     frames.size() * sizeof(PackFrame) + dictionary.size();
  std::string image;
  append(&image, PackHeader{frames_at + compressed.size(), static_cast<uint32_t>(entries.size()),
                            static_cast<uint32_t>(frames.size()),
                            static_cast<uint32_t>(dictionary.size()), 0});
  for (const PackEntry& entry : entries) {
    append(&image, entry);
  }
  for (PackFrame frame : frames) {
    frame.offset += static_cast<uint32_t>(frames_at);
    append(&image, frame);
  }
  return image + dictionary + compressed;
}

}  // namespace rushlight
