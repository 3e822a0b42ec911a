"""Batch normalization folded into the layer before it."""

import pytest
import rushlight as torch
from rushlight import nn
from rushlight.nn.utils import fuse_conv_bn_eval, fuse_linear_bn_eval, fusion


def trained(bn):
    with torch.no_grad():
        bn.running_mean.uniform_(-1, 1)
        bn.running_var.uniform_(0.5, 2)
        if bn.affine:
            bn.weight.uniform_(0.5, 2)
            bn.bias.uniform_(-1, 1)
    return bn.eval()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("affine", [True, False])
def test_convolutions(bias, affine):
    conv = nn.Conv2d(2, 4, 3, bias=bias).eval()
    bn = trained(nn.BatchNorm2d(4, affine=affine))
    image = torch.rand(1, 2, 5, 5)
    fused = fuse_conv_bn_eval(conv, bn)
    torch.testing.assert_close(fused(image), bn(conv(image)), rtol=1e-4, atol=1e-5)
    assert isinstance(fused.weight, nn.Parameter) and fused.weight is not conv.weight
    turned = nn.ConvTranspose2d(2, 4, 3, bias=bias).eval()
    fused = fuse_conv_bn_eval(turned, bn, transpose=True)
    torch.testing.assert_close(fused(image), bn(turned(image)), rtol=1e-4, atol=1e-5)


def test_linear_layers():
    linear = nn.Linear(3, 4).eval()
    bn = trained(nn.BatchNorm1d(4))
    rows = torch.rand(2, 3)
    fused = fuse_linear_bn_eval(linear, bn)
    torch.testing.assert_close(fused(rows), bn(linear(rows)), rtol=1e-4, atol=1e-5)


def test_weights_keep_dtype_and_whether_they_are_trained():
    weight = torch.rand(4, 2, 3).half()
    new, bias = fusion.fuse_conv_bn_weights(
        weight, None, torch.zeros(4), torch.ones(4), 1e-5, None, None
    )
    assert new.dtype == torch.float16 and not new.requires_grad and bias.dtype == torch.float16


def test_mistakes():
    with pytest.raises(AssertionError, match="Fusion only for eval!"):
        fuse_conv_bn_eval(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1).eval())
    with pytest.raises(AssertionError, match="linear.out_features == bn.num_features"):
        fuse_linear_bn_eval(nn.Linear(2, 3).eval(), nn.BatchNorm1d(2).eval())
