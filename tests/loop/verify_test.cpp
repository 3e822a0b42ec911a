// verify(): one mistake a test, by text.
#include <gtest/gtest.h>

#include "loop/kernel.h"

namespace rushlight::loop {
namespace {

// A kernel of a parallel and a reduce axis, with these stores.
std::string fault(const std::string& stores) {
  return verify(
      parse("kernel \"v\"\naxis 0 parallel\naxis 1 reduce\nbuffer 0 f32 any unit\n"
            "buffer 1 f16 unit\nbuffer 2 b8 unit\nscalar 0 f32\n" +
            stores));
}

TEST(Verify, AcceptsGoodKernels) {
  EXPECT_EQ(fault("store b1(i0) = reduce.sum(i1, load.f32(b0, i0, i1))"), "");
  EXPECT_EQ(fault("store b1(i0) = mul(load.f16(b1, i0), s0:f32) if load.b8(b2, i0)"), "");
}

TEST(Verify, NoStore) {
  EXPECT_EQ(fault(""), "a kernel without a store does nothing");
}

TEST(Verify, UnknownAxis) {
  EXPECT_EQ(fault("store b1(i0) = cast.f32(n2)"), "`n2` names axis 2, but there are 2");
}

TEST(Verify, UnknownBuffer) {
  EXPECT_EQ(fault("store b1(i0) = load.f32(b5, i0)"),
            "`load.f32(b5, i0)` names buffer 5, but there are 3");
  EXPECT_EQ(fault("store b7(i0) = 1:f32"), "store 0 names buffer 7, but there are 3");
}

TEST(Verify, WrongDtypeOfLoad) {
  EXPECT_EQ(fault("store b1(i0) = load.bf16(b1, i0)"),
            "`load.bf16(b1, i0)` reads bfloat16, but buffer 1 is float16");
}

TEST(Verify, WrongNumberOfIndices) {
  EXPECT_EQ(fault("store b1(i0) = load.f32(b0, i0)"),
            "`load.f32(b0, i0)` has 1 indices, but buffer 0 has 2 dimensions");
  EXPECT_EQ(fault("store b1(i0, i1) = 1:f32"),
            "store 0 of `1:f32` has 2 indices, but buffer 1 has 1 dimensions");
}

TEST(Verify, WrongScalar) {
  EXPECT_EQ(fault("store b1(i0) = s1:f32"), "`s1:f32` names scalar 1, but there are 1");
  EXPECT_EQ(fault("store b1(i0) = s0:f64"),
            "`s0:f64` disagrees with the declared dtype of scalar 0");
}

TEST(Verify, FoldOverTheWrongKindOfAxis) {
  EXPECT_EQ(fault("store b1(i0) = reduce.sum(i0, load.f16(b1, i0))"),
            "`reduce.sum(i0, load.f16(b1, i0))` needs a reduce axis, but axis 0 is parallel");
  EXPECT_EQ(fault("store b1(i0) = scan.sum(i1, load.f32(b0, i0, i1))"),
            "`scan.sum(i1, load.f32(b0, i0, i1))` needs a scan axis, but axis 1 is reduce");
}

TEST(Verify, MaskAndIndexTypes) {
  EXPECT_EQ(fault("store b1(i0) = 1:f32 if i0"), "the mask of store 0 must be bool: `i0`");
  EXPECT_EQ(fault("store b1(s0:f32) = 1:f32"), "an index of store 0 must be int64: `s0:f32`");
}

TEST(Verify, AddingToBool) {
  EXPECT_EQ(fault("store.add b2(i0) = true"), "store 0 adds to or multiplies a bool buffer");
}

TEST(Verify, StoreOutsideTheParallelAxis) {
  EXPECT_EQ(fault("store b1(0:i64) = s0:f32"),
            "store 0 of `s0:f32` does not depend on the first parallel axis, 0, so that every "
            "thread would execute it");
}

TEST(Verify, ComplexBuffer) {
  Kernel kernel = parse("kernel \"v\"\naxis 0 parallel\nbuffer 0 c64 unit\nstore b0(i0) = 1:f32");
  EXPECT_EQ(verify(kernel),
            "buffer 0 is complex: declare it as its real type, with one more dimension");
}

TEST(Verify, ZeroLayoutDependsOnNothing) {
  Kernel kernel = parse(
      "kernel \"v\"\naxis 0 parallel\naxis 1 reduce\nbuffer 0 f32 any zero\n"
      "store b0(i0, i1) = load.f32(b0, i0, i1)");
  EXPECT_EQ(store_axes(kernel, kernel.stores[0], free_axes(kernel)), 1u);
}

}  // namespace
}  // namespace rushlight::loop
