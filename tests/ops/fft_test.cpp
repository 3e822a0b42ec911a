#include <gtest/gtest.h>
#include <rushlight/rushlight.h>

namespace rushlight {
namespace {

// The functions of a submodule are in a namespace of its name.
TEST(Namespaces, HaveWhatSubmodulesHave) {
  const Tensor x = arange(Scalar(6), TensorOptions(DType::Float64));
  const Tensor back = fft::irfft(fft::rfft(x), 6);
  EXPECT_LT(max(abs(sub(back, x))).item<double>(), 1e-12);
  EXPECT_EQ(fft::rfft(x, 8, -1, "ortho").size(0), 5);
  EXPECT_EQ(select(special::erf(x), 0, 0).item<double>(), 0.0);
  EXPECT_NEAR(linalg::vector_norm(x).item<double>(), 7.416198487095663, 1e-12);
  const Tensor out = empty({6}, DType::Float64);
  special::expit_out(out, x);
  EXPECT_EQ(select(out, 0, 0).item<double>(), 0.5);
}

}  // namespace
}  // namespace rushlight
