#include "pack_image.h"

#include <zdict.h>
#include <zstd.h>

#include <memory>
#include <stdexcept>
#include <vector>

#include "runtime/kernel_pack.h"

namespace rushlight {
namespace {

// Objects are small and alike, so most of what repeats is found in what was seen before them.
constexpr size_t kDictionarySize = 128 << 10;
constexpr int kCompression = 22;  // the most that zstd does; reading takes no longer for it

size_t checked(size_t result, const char* what) {
  if (ZSTD_isError(result)) {
    throw std::runtime_error(std::string(what) + ": " + ZSTD_getErrorName(result));
  }
  return result;
}

std::string train(const std::map<uint64_t, std::string>& objects) {
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
    // The entry tells the size, and there is one dictionary.
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

std::string pack_image(const std::map<uint64_t, std::string>& objects) {
  std::string dictionary = train(objects);
  Compressor compressor(dictionary);
  uint64_t frames_at = sizeof(PackHeader) + objects.size() * sizeof(PackEntry) + dictionary.size();
  std::string entries;
  std::string frames;
  for (const auto& [key, object] : objects) {
    std::string frame = compressor.compress(object);
    append(&entries,
           PackEntry{key, static_cast<uint32_t>(frames_at + frames.size()),
                     static_cast<uint32_t>(frame.size()), static_cast<uint32_t>(object.size()), 0});
    frames += frame;
  }
  std::string image;
  append(&image, PackHeader{frames_at + frames.size(), static_cast<uint32_t>(objects.size()),
                            static_cast<uint32_t>(dictionary.size())});
  return image + entries + dictionary + frames;
}

}  // namespace rushlight
