"""Copies of images between pixels that lie together and planes that do."""

import numpy
import pytest
import rushlight as torch

DTYPES = ["uint8", "int16", "float32", "float64", "complex128"]


@pytest.mark.parametrize("planes", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("name", DTYPES)
def test_planes_are_split_and_joined(name, planes):
    torch.manual_seed(planes)
    for batch, height, width in ((1, 9, 200), (3, 40, 41), (2, 130, 127)):
        pixels = torch.randint(0, 200, (batch, height, width, planes)).to(getattr(torch, name))
        split = pixels.permute(0, 3, 1, 2).contiguous()
        assert numpy.array_equal(split.numpy(), pixels.numpy().transpose(0, 3, 1, 2))
        assert split.is_contiguous()
        assert torch.equal(split.permute(0, 2, 3, 1).contiguous(), pixels)
        # Parts of images, whose lines lie apart.
        part = pixels[:, 1:, 3:].permute(0, 3, 1, 2)
        assert numpy.array_equal(part.contiguous().numpy(), part.numpy())
        inside = torch.zeros(batch, planes, height + 2, width + 5, dtype=pixels.dtype)
        inside[:, :, 1:-1, 2:-3] = pixels.permute(0, 3, 1, 2)
        assert torch.equal(inside[:, :, 1:-1, 2:-3], split)
        assert (inside != 0).sum() == (split != 0).sum()
        last = split.to(memory_format=torch.channels_last)
        assert torch.equal(last, split)
        assert torch.equal(last.contiguous(memory_format=torch.contiguous_format), split)
