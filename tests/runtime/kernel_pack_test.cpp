#include "runtime/kernel_pack.h"

#include <gtest/gtest.h>
#include <rushlight/rushlight.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "pack_image.h"

namespace rushlight {
namespace {

// Alike as objects are: what differs from key to key is short.
std::vector<std::pair<uint64_t, std::string>> make_objects() {
  std::mt19937 random(7);
  std::string common(600, 0);
  for (char& c : common) {
    c = static_cast<char>(random());
  }
  std::vector<std::pair<uint64_t, std::string>> objects;
  for (int i = 0; i < 300; ++i) {
    std::string object = common.substr(random() % 300);
    for (unsigned j = random() % 40; j > 0; --j) {
      object += static_cast<char>(random());
    }
    objects.emplace_back((uint64_t{random()} << 32) | random(), object + common);
  }
  return objects;
}

// The image at an address that suits its entries.
class KernelPackTest : public testing::Test {
 protected:
  void SetUp() override { set_image(pack_image(objects_)); }

  void set_image(const std::string& image) {
    words_.assign(image.size() / 8 + 1, 0);
    std::memcpy(words_.data(), image.data(), image.size());
    size_ = image.size();
  }
  char* bytes() { return reinterpret_cast<char*>(words_.data()); }
  std::string_view image() { return {bytes(), size_}; }
  // The entry of the first object, and its frame.
  PackEntry& entry() {
    auto* entries = reinterpret_cast<PackEntry*>(bytes() + sizeof(PackHeader));
    return *std::find_if(entries, entries + objects_.size(), [&](const PackEntry& candidate) {
      return candidate.key == objects_[0].first;
    });
  }
  PackFrame& frame() {
    auto* entries = reinterpret_cast<PackEntry*>(bytes() + sizeof(PackHeader));
    return reinterpret_cast<PackFrame*>(entries + objects_.size())[entry().frame];
  }

  std::vector<std::pair<uint64_t, std::string>> objects_ = make_objects();
  std::vector<uint64_t> words_;
  size_t size_ = 0;
};

TEST_F(KernelPackTest, GivesEveryObject) {
  KernelPack pack(image());
  EXPECT_EQ(pack.count(), objects_.size());
  size_t total = 0;
  for (const auto& [key, object] : objects_) {
    std::string got;
    ASSERT_TRUE(pack.read(key, &got));
    EXPECT_EQ(got, object);
    total += object.size();
  }
  EXPECT_LT(size_, total / 2);
}

TEST_F(KernelPackTest, LacksOtherKeys) {
  KernelPack pack(image());
  std::string got;
  for (uint64_t key : {uint64_t{0}, objects_[0].first + 1, UINT64_MAX}) {
    EXPECT_FALSE(pack.read(key, &got)) << key;
  }
}

TEST_F(KernelPackTest, RefusesTruncatedImages) {
  for (size_t size : {size_t{0}, size_t{15}, size_t{16}, size_ / 2, size_ - 1}) {
    EXPECT_THROW(KernelPack(image().substr(0, size)), Error) << size;
  }
}

TEST_F(KernelPackTest, RefusesDamagedEntries) {
  const uint64_t key = objects_[0].first;
  const auto refuses = [&](auto damage) {
    set_image(pack_image(objects_));
    damage();
    KernelPack pack(image());
    std::string got;
    EXPECT_THROW(pack.read(key, &got), Error);
    set_image(pack_image(objects_));
    EXPECT_TRUE(pack.read(key, &got));  // what failed is not kept
    EXPECT_EQ(got, objects_[0].second);
  };
  refuses([&] { entry().frame = UINT32_MAX; });
  refuses([&] { entry().begin = UINT32_MAX; });
  refuses([&] { entry().size = UINT32_MAX; });
  refuses([&] { frame().offset = UINT32_MAX; });
  refuses([&] { frame().size = UINT32_MAX; });
  refuses([&] { frame().whole_size -= 1; });
  refuses([&] { std::memset(bytes() + frame().offset, 0x5a, frame().size); });
}

// Kernels that the library itself carries: what eager operators of floats ask for.
TEST(LinkedPack, GivesObjects) {
  const KernelPack* pack = kernel_pack(codegen::Level::X86V3);
  if (!pack) {
    GTEST_SKIP() << "the library was built without its pack";
  }
  EXPECT_GT(pack->count(), 1000u);
  EXPECT_EQ(kernel_pack(codegen::Level::X86V4)->count(), pack->count());
  EXPECT_EQ(kernel_pack(codegen::Level::AArch64), nullptr);
}

}  // namespace
}  // namespace rushlight
