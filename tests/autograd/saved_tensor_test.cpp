#include "autograd/saved_tensor.h"

#include "autograd/meta.h"
#include "helpers.h"

namespace rushlight {
namespace {

using testing::expect_error;
using testing::Floats;
using testing::leaf;
using testing::tensor;
using testing::values;

TEST(SavedTensor, WrittenResultIsAnError) {
  Tensor x = leaf({1, 2, 3});
  Tensor y = exp(x);
  add_(y, Scalar(1));
  expect_error(ErrorKind::Runtime,
               "one of the variables needed for gradient computation has been modified by an "
               "inplace operation: [torch.FloatTensor [3]], which is output 0 of Exp, is at "
               "version 1; expected version 0 instead.",
               [&] { sum(y).backward(); });
}

TEST(SavedTensor, WrittenArgumentIsAnError) {
  Tensor x = tensor({1, 2, 3});
  Tensor w = leaf({1, 1, 1});
  Tensor y = mul(w, x);
  add_(x, Scalar(1));
  expect_error(ErrorKind::Runtime, "[torch.FloatTensor [3]] is at version 1; expected version 0",
               [&] { sum(y).backward(); });
}

TEST(SavedTensor, ArgumentsThatNoGradientReadsMayBeWritten) {
  Tensor x = tensor({1, 2, 3});
  Tensor w = leaf({4, 5, 6});
  Tensor y = mul(w, x);  // the gradient of w reads x only
  {
    NoGradGuard off;
    mul_(w, Scalar(0));
  }
  sum(y).backward();
  EXPECT_EQ(values(w.grad()), (Floats{1, 2, 3}));
}

TEST(SavedTensor, ResultAndNodeDoNotKeepEachOther) {
  Tensor x = leaf({1});
  StorageImpl* storage;
  {
    Tensor y = exp(x);
    storage = y.storage();
    retain(storage);
  }
  EXPECT_EQ(storage->references.load(), 1u);
  release(storage);
}

TEST(SavedTensor, BackwardReleasesWhatWasSaved) {
  Tensor x = leaf({1});
  Tensor z = tensor({7});
  Tensor y = mul(x, z);
  EXPECT_EQ(z.impl()->references.load(), 2u);
  y.backward();
  EXPECT_EQ(z.impl()->references.load(), 1u);
}

TEST(SavedTensor, HooksPackAndUnpack) {
  Tensor x = leaf({2, 3});
  int packed = 0;
  int unpacked = 0;
  Tensor y;
  {
    autograd::SavedTensorHooksGuard hooks({
        [&](const Tensor& t) -> std::shared_ptr<void> {
          ++packed;
          return std::make_shared<Floats>(values(t));
        },
        [&](const std::shared_ptr<void>& kept) {
          ++unpacked;
          return tensor(*std::static_pointer_cast<Floats>(kept));
        },
    });
    y = mul(x, x);
  }
  EXPECT_EQ(packed, 2);
  sum(y).backward();
  EXPECT_EQ(unpacked, 2);
  EXPECT_EQ(values(x.grad()), (Floats{4, 6}));
}

TEST(SavedTensor, HookedTensorsDifferentiateTwice) {
  Tensor x = leaf({3});
  Tensor y;
  {
    autograd::SavedTensorHooksGuard hooks({
        [](const Tensor& t) -> std::shared_ptr<void> { return std::make_shared<Tensor>(t); },
        [](const std::shared_ptr<void>& kept) { return *std::static_pointer_cast<Tensor>(kept); },
    });
    y = mul(mul(x, x), x);
  }
  Tensor first = autograd::grad({y}, {x}, {}, {}, true)[0];
  EXPECT_EQ(values(first), (Floats{27}));
  EXPECT_EQ(values(autograd::grad({first}, {x})[0]), (Floats{18}));
}

TEST(SavedTensor, DisabledHooksAreAnError) {
  autograd::disable_saved_tensor_hooks("not here");
  expect_error(ErrorKind::Runtime, "not here", [] { autograd::push_saved_tensor_hooks({}); });
  autograd::disable_saved_tensor_hooks("");
}

}  // namespace
}  // namespace rushlight
