"""Mistakes with convolutions: one a test, with the text it gets."""

import pytest
import rushlight as torch
import rushlight.nn.functional as F

X = torch.ones(1, 3, 5, 5)
W = torch.ones(4, 3, 3, 3)


def refused(match, call, kind=RuntimeError):
    with pytest.raises(kind, match=match):
        call()


def test_channels():
    refused(
        r"weight of size \[4, 3, 3, 3\], expected input\[1, 2, 5, 5\] to have 3 channels",
        lambda: F.conv2d(X[:, :2], W),
    )


def test_channels_of_the_transposed():
    refused("transposed=1.*to have 4 channels, but got 3", lambda: F.conv_transpose2d(X, W))


def test_groups():
    refused("groups=2.*to have 6 channels", lambda: F.conv2d(X, W, groups=2))


def test_no_groups():
    refused("non-positive groups", lambda: F.conv2d(X, W, groups=0))


def test_groups_that_do_not_divide():
    refused("divisible by 3 at dimension 0", lambda: F.conv2d(X, W[:, :1], groups=3))


def test_dtypes():
    refused("expected scalar type Float but found Double", lambda: F.conv2d(X, W.double()))


def test_dtype_of_the_bias():
    refused("bias type", lambda: F.conv2d(X, W, torch.ones(4).double()))


def test_bool():
    refused("'Bool'", lambda: F.conv2d(X.bool(), W.bool()), NotImplementedError)


def test_shape_of_the_bias():
    refused("1-dimensional with 4 elements", lambda: F.conv2d(X, W, torch.ones(3)))


def test_stride():
    refused("non-positive stride", lambda: F.conv2d(X, W, stride=0))


def test_padding():
    refused("negative padding", lambda: F.conv2d(X, W, padding=-1))


def test_dilation():
    refused("dilation should be greater than zero", lambda: F.conv2d(X, W, dilation=0))


def test_number_of_steps():
    refused("a list of 2 values", lambda: F.conv2d(X, W, stride=(1, 1, 1)))


def test_kernel_larger_than_input():
    refused(r"\(2 x 5\). Kernel size: \(3 x 3\)", lambda: F.conv2d(X[:, :, :2], W))


def test_dimensions_of_the_input():
    refused(r"Expected 3D \(unbatched\) or 4D \(batched\)", lambda: F.conv2d(X[0, 0], W))


def test_dimensions_of_the_weight():
    refused("a list of 1 values", lambda: F.conv2d(X, W[0]))


def test_same_with_steps():
    refused("not supported for strided", lambda: F.conv2d(X, W, stride=2, padding="same"))


def test_name_of_the_padding():
    refused("Invalid padding string: 'full'", lambda: F.conv2d(X, W, padding="full"))


def test_output_padding():
    refused(
        "must be smaller than either stride or dilation",
        lambda: F.conv_transpose2d(X, W[:3], output_padding=1),
    )


def test_output_too_small():
    refused("Output size is too small", lambda: F.conv_transpose2d(X, W[:3], padding=9))


def test_sizes_that_overflow():
    refused("overflow", lambda: F.conv2d(X, W, padding=2**62))


def test_empty_kernel():
    refused("kernel size should be greater than zero", lambda: F.conv2d(X, W[:, :, :0]))
