// RUSHLIGHT_CHECK_BOUNDS: the interpreter stops at loads and stores outside their storage.
#include <gtest/gtest.h>
#include <rushlight/tensor.h>

#include <string>

#include "loop/kernel.h"
#include "tensor/storage_bounds.h"

namespace rushlight {
namespace {

class Bounds : public ::testing::Test {
 protected:
  void SetUp() override { checks_bounds = true; }
  void TearDown() override { checks_bounds = false; }
};

// out[i] = table[place[i]]
loop::Kernel gather() {
  loop::Kernel kernel{"gather", {loop::AxisKind::Parallel}, {}, {}, {}};
  kernel.buffers = {{DType::Float32, {loop::Layout::Unit}},
                    {DType::Int64, {loop::Layout::Unit}},
                    {DType::Float32, {loop::Layout::Unit}}};
  loop::Expr place = loop::load(1, DType::Int64, {loop::index(0)});
  kernel.stores = {{2, {loop::index(0)}, loop::load(0, DType::Float32, {place})}};
  return kernel;
}

std::string fault_of(const Tensor& table, std::vector<int64_t> places, const Tensor& out) {
  Tensor place = make_tensor({static_cast<int64_t>(places.size())}, DType::Int64);
  std::copy(places.begin(), places.end(), place.data_ptr<int64_t>());
  void* buffers[] = {table.data(), place.data(), out.data()};
  const int64_t one[] = {1};
  const int64_t* strides[] = {one, one, one};
  const int64_t extents[] = {place.numel()};
  try {
    loop::interpret(gather(), {buffers, strides, extents, nullptr}, 0, place.numel());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_F(Bounds, AreNotInTheWayOfWhatIsRight) {
  Tensor table = make_tensor({5}, DType::Float32);
  EXPECT_EQ(fault_of(table, {0, 4, 2}, make_tensor({3}, DType::Float32)), "");
  Tensor view = make_view(table, {2}, {1}, 3);
  EXPECT_EQ(fault_of(view, {-3, 1}, make_tensor({2}, DType::Float32)), "");
}

TEST_F(Bounds, NameKernelBufferIndexAndAxes) {
  Tensor table = make_tensor({5}, DType::Float32);
  std::string fault = fault_of(table, {0, 5, 2}, make_tensor({3}, DType::Float32));
  EXPECT_NE(fault.find("kernel gather: index [5] of buffer 0"), std::string::npos) << fault;
  EXPECT_NE(fault.find("axes are at [1]"), std::string::npos) << fault;
  EXPECT_NE(fault.find("byte 20 of storage of 20 bytes"), std::string::npos) << fault;
}

TEST_F(Bounds, HoldBeforeTheStorageAndForStores) {
  Tensor table = make_tensor({5}, DType::Float32);
  EXPECT_NE(fault_of(table, {-1}, make_tensor({1}, DType::Float32)).find("byte -4"),
            std::string::npos);
  std::string fault = fault_of(table, {0, 1, 2}, make_tensor({2}, DType::Float32));
  EXPECT_NE(fault.find("index [2] of buffer 2"), std::string::npos) << fault;
}

TEST_F(Bounds, FollowLargeAndResizedStorages) {
  Tensor table = make_tensor({4000}, DType::Float32);
  EXPECT_EQ(fault_of(table, {3999}, make_tensor({1}, DType::Float32)), "");
  EXPECT_NE(fault_of(table, {4000}, make_tensor({1}, DType::Float32)), "");
  resize_storage(table.storage(), 4 * 5000);
  EXPECT_EQ(fault_of(table, {4999}, make_tensor({1}, DType::Float32)), "");
}

TEST_F(Bounds, ForgetStoragesThatAreGone) {
  const void* data = nullptr;
  {
    Tensor table = make_tensor({4000}, DType::Float32);
    data = table.data();
    EXPECT_EQ(listed_memory(data).bytes, 16000U);
  }
  EXPECT_EQ(listed_memory(data).begin, nullptr);
}

}  // namespace
}  // namespace rushlight
