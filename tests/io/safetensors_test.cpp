#include <gtest/gtest.h>
#include <rushlight/safetensors.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace rushlight::safetensors {
namespace {

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/rushlight-safetensors-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  size_t count() const {
    size_t found = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path_)) {
      ++found;
    }
    return found;
  }

 private:
  std::string path_;
};

Tensor ramp(IntArrayRef sizes, DType dtype) {
  const Tensor tensor = make_tensor(sizes, dtype);
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    write_element(static_cast<char*>(tensor.data()) + i * tensor.element_size(), dtype, Scalar(i));
  }
  return tensor;
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes() &&
         std::memcmp(a.data(), b.data(), static_cast<size_t>(a.nbytes())) == 0;
}

// A file image: the JSON behind its length, then `data` bytes.
std::string image(const std::string& json, size_t data) {
  std::string out(8, '\0');
  for (size_t i = 0; i < 8; ++i) {
    out[i] = static_cast<char>(json.size() >> (8 * i));
  }
  return out + json + std::string(data, '\0');
}

std::string error_of(const std::string& bytes) {
  auto owner = std::make_shared<std::string>(bytes);
  try {
    const File file(owner, owner->data(), owner->size());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

#define EXPECT_REFUSED(bytes, text) \
  EXPECT_NE(error_of(bytes).find(text), std::string::npos) << error_of(bytes)

// Those that the format has no name for.
bool nameless(DType dtype) {
  return dtype == DType::Complex128 || dtype == DType::Float8E4M3FNUZ ||
         dtype == DType::Float8E5M2FNUZ;
}

TEST(Safetensors, RoundTripsEveryDType) {
  const Folder folder;
  NamedTensors tensors;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (nameless(dtype)) {
      EXPECT_THROW(save({{"x", ramp({2, 3}, dtype)}}), Error);
    } else {
      tensors.emplace(std::string(dtype_name(dtype)), ramp({2, 3}, dtype));
    }
  }
  tensors.emplace("empty", ramp({0, 4}, DType::Float32));
  tensors.emplace("scalar", ramp({}, DType::Int64));
  save_file(tensors, folder.file("all"), {{"format", "pt"}});
  const File file(folder.file("all"));
  EXPECT_EQ(file.metadata().at("format"), "pt");
  const NamedTensors loaded = file.tensors();
  ASSERT_EQ(loaded.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_TRUE(same_bytes(loaded.at(name), tensor)) << name;
  }
  EXPECT_EQ(folder.count(), 1u);
}

TEST(Safetensors, WritesTheReferenceLayout) {
  const std::string bytes =
      save({{"b", ramp({2}, DType::Float32)}, {"a", ramp({1}, DType::Int64)}}, {{"format", "pt"}});
  const std::string json =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})";
  EXPECT_EQ(bytes.substr(8, json.size()), json);
  EXPECT_EQ((bytes.size() - 16) % 8, 0u);
}

TEST(Safetensors, TensorsOutliveTheFileObjectAndDoNotWriteToIt) {
  const Folder folder;
  save_file({{"x", ramp({4}, DType::Float32)}}, folder.file("x"));
  const Tensor x = File(folder.file("x")).tensor("x");
  x.data_ptr<float>()[0] = 7;
  EXPECT_EQ(x.data_ptr<float>()[3], 3);
  EXPECT_EQ(load_file(folder.file("x")).at("x").data_ptr<float>()[0], 0);
}

TEST(Safetensors, StoresWhatIsNotContiguousRowByRow) {
  const Tensor base = ramp({2, 3}, DType::Int32);
  const Tensor transposed = make_view(base, {3, 2}, {1, 3}, 0);
  const auto bytes = std::make_shared<std::string>(save({{"t", transposed}}));
  const Tensor loaded = File(bytes, bytes->data(), bytes->size()).tensor("t");
  EXPECT_EQ(loaded.data_ptr<int32_t>()[1], 3);
}

TEST(Safetensors, MissingNamesAreKeyErrors) {
  const auto bytes = std::make_shared<std::string>(save({}));
  const File file(bytes, bytes->data(), bytes->size());
  try {
    file.tensor("w");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Key);
    EXPECT_NE(std::string(error.what()).find("File does not contain tensor w"), std::string::npos);
  }
}

TEST(Safetensors, RefusesShortFiles) {
  EXPECT_REFUSED("abc", "the length of the header alone takes 8");
  EXPECT_REFUSED(std::string(8, '\0'), "does not begin with '{'");
  const std::string whole = save({{"x", ramp({4}, DType::Float32)}});
  EXPECT_REFUSED(whole.substr(0, 20), "cut short");
  EXPECT_REFUSED(whole.substr(0, whole.size() - 1), "cut short");
  EXPECT_REFUSED(whole + "x", "17 follow the header");
}

TEST(Safetensors, RefusesHugeHeaders) {
  EXPECT_REFUSED(std::string("\xff\xff\xff\xff\xff\xff\xff\x7f{}"), "are refused");
}

TEST(Safetensors, RefusesGapsAndOverlaps) {
  EXPECT_REFUSED(image(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", 3), "a gap");
  EXPECT_REFUSED(image(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                       R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                       3),
                 "overlap");
}

TEST(Safetensors, RefusesSizesThatDoNotFit) {
  EXPECT_REFUSED(image(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4),
                 "needs 8 bytes");
  EXPECT_REFUSED(image(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],)"
                       R"("data_offsets":[0,0]}})",
                       0),
                 "larger than 64 bits count");
  EXPECT_REFUSED(image(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[4,2]}})", 4), "offsets");
  EXPECT_REFUSED(image(R"({"a":{"dtype":"U8","shape":[18446744073709551616],)"
                       R"("data_offsets":[0,0]}})",
                       0),
                 "a number below 2^63");
}

TEST(Safetensors, RefusesWhatTheFormatDoesNotHave) {
  EXPECT_REFUSED(image(R"({"a":{"dtype":"X9","shape":[],"data_offsets":[0,1]}})", 1),
                 "unknown dtype 'X9'");
  EXPECT_REFUSED(image(R"({"a":{"dtype":"U8","shape":[],"extra":1}})", 1), "key 'extra'");
  EXPECT_REFUSED(image(R"({"a":{"dtype":"U8","dtype":"U8"}})", 1), "key 'dtype'");
  EXPECT_REFUSED(image(R"({"a":{"dtype":"U8"}})", 1), "lacks");
  EXPECT_REFUSED(image(R"({"__metadata__":{"a":1}})", 0), "expected '\"'");
  EXPECT_REFUSED(image(R"({"__metadata__":{"a":"1","a":"2"}})", 0), "'a' twice");
}

TEST(Safetensors, RefusesRepeatedNames) {
  EXPECT_REFUSED(image(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                       R"("\u0061":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                       2),
                 "two entries called 'a'");
}

TEST(Safetensors, RefusesInvalidJson) {
  EXPECT_REFUSED(image("{", 0), "invalid JSON");
  EXPECT_REFUSED(image("{}x", 0), "expected the end");
  EXPECT_REFUSED(image("{\"a\xff\":1}", 0), "valid UTF-8");
  EXPECT_REFUSED(image(R"({"\ud800":1})", 0), "surrogate");
  EXPECT_REFUSED(image(R"({"a":)" + std::string(100000, '['), 0), "expected '{'");
}

TEST(Safetensors, AFailedSaveLeavesTheOldFile) {
  const Folder folder;
  save_file({{"x", ramp({4}, DType::Float32)}}, folder.file("x"));
  EXPECT_THROW(save_file({{"c", ramp({1}, DType::Complex128)}}, folder.file("x")), Error);
  EXPECT_EQ(load_file(folder.file("x")).size(), 1u);
  EXPECT_EQ(load_file(folder.file("x")).count("x"), 1u);
  EXPECT_EQ(folder.count(), 1u);
}

TEST(Safetensors, AFolderThatIsNotThereIsNamed) {
  try {
    save_file({}, "/nonexistent-folder/file");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("No such file or directory"), std::string::npos);
  }
  EXPECT_THROW(load_file("/nonexistent-folder/file"), Error);
}

}  // namespace
}  // namespace rushlight::safetensors
