// Memory past the limit, and a disk without room: what the error says and what is left.
#include <gtest/gtest.h>
#include <rushlight/rushlight.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>

namespace rushlight {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

class MemoryLimit : public ::testing::Test {
 protected:
  void SetUp() override {
    memory::empty_cache();
    before_ = memory::statistics().live_bytes;
  }
  void TearDown() override {
    memory::set_limit(0);
    EXPECT_EQ(memory::statistics().live_bytes, before_);
  }
  // Bytes above what lived when the test began.
  void limit(int64_t extra) { memory::set_limit(before_ + extra); }

  int64_t before_ = 0;
};

void expect_out_of_memory(const std::function<void()>& body, const std::string& text = "limit") {
  try {
    body();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::OutOfMemory) << error.what();
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

TEST_F(MemoryLimit, TheErrorNamesBytesLimitAndWhatLives) {
  limit(kMiB);
  const std::string text = cat("tried to allocate ", 4 * kMiB, " bytes; that is above the limit");
  expect_out_of_memory([] { empty({4 * kMiB}, DType::UInt8); }, text);
  expect_out_of_memory([] { empty({4 * kMiB}, DType::UInt8); }, cat("limit ", before_ + kMiB, ")"));
}

TEST_F(MemoryLimit, HoldsForEveryMaker) {
  const Tensor x = ones({512, 512});
  limit(kMiB + kMiB / 2);
  expect_out_of_memory([&] { exp(x); });
  expect_out_of_memory([&] { matmul(x, x); });
  expect_out_of_memory([&] { cat({x, x}); });
  expect_out_of_memory([&] { x.t().contiguous(); });
  expect_out_of_memory([&] { x.to(DType::Float64); });
  expect_out_of_memory([&] { cumsum(x, 1); });
  expect_out_of_memory([&] { randn({512, 512}); });
  memory::set_limit(0);
  EXPECT_EQ(exp(x).numel(), 512 * 512);
}

// However little there is, what was made before the failure is given back.
TEST_F(MemoryLimit, NothingLeaksWhereverAGraphFails) {
  manual_seed(0);
  nn::Sequential model{nn::Linear(32, 32), nn::Tanh(), nn::Linear(32, 1)};
  const Tensor x = randn({16, 32});
  model(x).sum().backward();
  model->zero_grad();
  const int64_t before = memory::statistics().live_bytes;
  int failed = 0;
  for (int64_t extra = 0; extra < 32 * 1024; extra += 192) {
    memory::set_limit(before + extra);
    try {
      model(x).sum().backward();
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::OutOfMemory) << error.what();
      ++failed;
    }
    memory::set_limit(0);
    model->zero_grad();
    ASSERT_EQ(memory::statistics().live_bytes, before) << "with " << extra << " bytes";
  }
  EXPECT_GT(failed, 20);
}

TEST_F(MemoryLimit, InPlaceWorkGoesOn) {
  const Tensor x = ones({kMiB});
  limit(4 * kMiB + 4096);
  expect_out_of_memory([&] { x.clone(); });
  x.mul_(2);
  EXPECT_EQ(x[0].item<double>(), 2);
}

TEST_F(MemoryLimit, RefusesLessThanNothing) {
  EXPECT_THROW(memory::set_limit(-1), Error);
  EXPECT_EQ(memory::limit(), 0);
}

TEST_F(MemoryLimit, SizesThatOverflowAreRefusedBeforeAnyMemory) {
  EXPECT_THROW(empty({int64_t{1} << 62, 8}), Error);
  EXPECT_THROW(empty({-1}), Error);
  expect_out_of_memory([] { empty({int64_t{1} << 50}, DType::UInt8); }, "no machine has as much");
}

TEST(FullDisk, KeepsTheOldFile) {
  const std::string folder = ::testing::TempDir() + "full-disk-" + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  const std::string path = folder + "/x.safetensors";
  safetensors::save_file({{"w", tensor({1.0, 2.0})}}, path);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit small{1 << 12, 1 << 12};
    setrlimit(RLIMIT_FSIZE, &small);
    int code = 1;
    try {
      safetensors::save_file({{"w", zeros({1 << 16})}}, path);
    } catch (const Error& error) {
      code = std::string(error.what()).find("File too large") == std::string::npos ? 2 : 0;
    }
    _exit(code);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(equal(safetensors::load_file(path).at("w"), tensor({1.0, 2.0})));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace rushlight
