"""Layers and losses on small inputs: text, sums of results, gradients and buffers.

layers.cpp is the same program in C++; test_layers.py compares what they print.
"""

from __future__ import annotations

import rushlight as torch
from rushlight import nn

randn = torch.randn


def shown(what: str, tensor) -> str:
    if tensor is None:
        return ""
    plain = tensor.detach().to(torch.float32)
    return f" {what} {plain.sum().item():.9g} {plain.abs().sum().item():.9g}"


def show(make, make_inputs) -> None:
    torch.manual_seed(0)
    layer = make()
    print(layer)
    for training in (True, False):
        layer.train(training)
        layer.zero_grad()
        inputs = make_inputs()
        for x in inputs:
            if x.is_floating_point():
                x.requires_grad_()
        output = layer(*inputs)
        output = output[0] if isinstance(output, tuple) else output
        line = shown(" output", output)
        (output * output).sum().backward()
        line += "".join(shown("input", x.grad) for x in inputs if x.is_floating_point())
        line += "".join(shown("gradient", p.grad) for p in layer.parameters())
        line += "".join(shown("buffer", b) for b in layer.buffers())
        print(line)


def normalizations() -> None:
    show(lambda: nn.BatchNorm1d(3), lambda: (randn(4, 3),))
    show(lambda: nn.BatchNorm1d(3, momentum=None), lambda: (randn(4, 3, 5),))
    show(lambda: nn.BatchNorm2d(3, eps=1e-3, momentum=0.2), lambda: (randn(2, 3, 4, 5),))
    show(
        lambda: nn.BatchNorm2d(3, affine=False, track_running_stats=False),
        lambda: (randn(2, 3, 4, 5),),
    )
    show(lambda: nn.BatchNorm3d(2, bias=False), lambda: (randn(2, 2, 3, 4, 2),))
    show(lambda: nn.InstanceNorm1d(3), lambda: (randn(2, 3, 6),))
    show(lambda: nn.InstanceNorm1d(3), lambda: (randn(3, 6),))
    show(
        lambda: nn.InstanceNorm2d(3, affine=True, track_running_stats=True),
        lambda: (randn(2, 3, 4, 4),),
    )
    show(lambda: nn.InstanceNorm3d(2), lambda: (randn(2, 2, 3, 4, 2),))
    show(lambda: nn.GroupNorm(2, 4), lambda: (randn(2, 4, 5),))
    show(lambda: nn.GroupNorm(4, 4, affine=False), lambda: (randn(2, 4, 5, 3),))


def dropouts() -> None:
    show(lambda: nn.Dropout1d(0.5), lambda: (randn(3, 4, 5),))
    show(lambda: nn.Dropout1d(0.5), lambda: (randn(4, 5),))
    show(lambda: nn.Dropout2d(0.3), lambda: (randn(3, 4, 5, 2),))
    show(lambda: nn.Dropout3d(0.3), lambda: (randn(4, 5, 2, 3),))
    show(lambda: nn.AlphaDropout(0.4), lambda: (randn(30),))
    show(lambda: nn.FeatureAlphaDropout(0.4), lambda: (randn(3, 4, 5),))
    show(lambda: nn.RReLU(), lambda: (randn(20),))


def borders_and_shapes() -> None:
    line, image, volume = (2, 3, 5), (2, 3, 5, 4), (1, 2, 3, 4, 3)
    show(lambda: nn.ReflectionPad1d(2), lambda: (randn(line),))
    show(lambda: nn.ReflectionPad2d((1, 2, 0, 1)), lambda: (randn(image),))
    show(lambda: nn.ReflectionPad3d(1), lambda: (randn(volume),))
    show(lambda: nn.ReplicationPad1d((1, 2)), lambda: (randn(3, 5),))
    show(lambda: nn.ReplicationPad2d(1), lambda: (randn(image),))
    show(lambda: nn.ReplicationPad3d(1), lambda: (randn(volume),))
    show(lambda: nn.CircularPad1d(2), lambda: (randn(line),))
    show(lambda: nn.CircularPad2d(1), lambda: (randn(image),))
    show(lambda: nn.CircularPad3d(1), lambda: (randn(volume),))
    show(lambda: nn.ZeroPad1d(1), lambda: (randn(line),))
    show(lambda: nn.ZeroPad2d((1, 0, 2, 1)), lambda: (randn(image),))
    show(lambda: nn.ZeroPad3d(1), lambda: (randn(volume),))
    show(lambda: nn.ConstantPad1d(2, 1.5), lambda: (randn(line),))
    show(lambda: nn.ConstantPad2d(1, -0.5), lambda: (randn(image),))
    show(lambda: nn.ConstantPad3d(1, 3.0), lambda: (randn(volume),))
    show(lambda: nn.Unflatten(1, (2, 3)), lambda: (randn(4, 6),))
    show(lambda: nn.PixelShuffle(2), lambda: (randn(2, 8, 3, 4),))
    show(lambda: nn.PixelUnshuffle(2), lambda: (randn(2, 2, 6, 4),))
    show(lambda: nn.ChannelShuffle(2), lambda: (randn(2, 6, 3),))
    show(lambda: nn.Softmax2d(), lambda: (randn(2, 3, 4, 5),))
    show(lambda: nn.Upsample(scale_factor=2), lambda: (randn(line),))
    show(lambda: nn.Upsample(scale_factor=(2, 1.5), mode="bilinear"), lambda: (randn(image),))
    show(
        lambda: nn.Upsample(size=(7, 3), mode="bicubic", align_corners=True),
        lambda: (randn(image),),
    )
    show(lambda: nn.Upsample(size=4, mode="area"), lambda: (randn(2, 3, 6, 5),))
    show(lambda: nn.Upsample(scale_factor=2, mode="trilinear"), lambda: (randn(volume),))
    show(lambda: nn.UpsamplingNearest2d(scale_factor=2), lambda: (randn(image),))
    show(lambda: nn.UpsamplingBilinear2d(size=(6, 9)), lambda: (randn(image),))


def signs(count: int):
    return torch.randint(0, 2, (count,)) * 2 - 1


def pairs() -> None:
    show(lambda: nn.CosineSimilarity(-1), lambda: (randn(4, 5), randn(4, 5)))
    show(lambda: nn.PairwiseDistance(3, keepdim=True), lambda: (randn(4, 5), randn(4, 5)))
    show(lambda: nn.Bilinear(3, 4, 2), lambda: (randn(5, 3), randn(5, 4)))
    show(lambda: nn.CosineEmbeddingLoss(0.1), lambda: (randn(6, 4), randn(6, 4), signs(6)))
    show(lambda: nn.MarginRankingLoss(0.5), lambda: (randn(6), randn(6), signs(6)))
    show(lambda: nn.MultiMarginLoss(2, 0.7), lambda: (randn(5, 4), torch.randint(0, 4, (5,))))
    show(
        lambda: nn.MultiLabelSoftMarginLoss(),
        lambda: (randn(5, 4), torch.randint(0, 2, (5, 4))),
    )
    show(lambda: nn.PoissonNLLLoss(full=True), lambda: (randn(6), torch.randint(0, 9, (6,))))
    show(
        lambda: nn.GaussianNLLLoss(full=True),
        lambda: (randn(6, 2), randn(6, 2), torch.rand(6, 1)),
    )
    triplet = (5, 4)
    show(
        lambda: nn.TripletMarginLoss(swap=True),
        lambda: (randn(triplet), randn(triplet), randn(triplet)),
    )
    show(
        lambda: nn.TripletMarginWithDistanceLoss(margin=2, swap=True),
        lambda: (randn(triplet), randn(triplet), randn(triplet)),
    )
    show(
        lambda: nn.AdaptiveLogSoftmaxWithLoss(16, 20, [4, 10], head_bias=True),
        lambda: (randn(6, 16), torch.randint(0, 20, (6,))),
    )


def attention() -> None:
    show(
        lambda: nn.MultiheadAttention(8, 2),
        lambda: (randn(5, 3, 8), randn(4, 3, 8), randn(4, 3, 8)),
    )
    show(
        lambda: nn.MultiheadAttention(8, 4, batch_first=True, dropout=0.2),
        lambda: (randn(3, 5, 8), randn(3, 4, 8), randn(3, 4, 8)),
    )
    show(
        lambda: nn.MultiheadAttention(8, 2, kdim=6, vdim=5, add_bias_kv=True, add_zero_attn=True),
        lambda: (randn(5, 3, 8), randn(4, 3, 6), randn(4, 3, 5)),
    )
    show(
        lambda: nn.MultiheadAttention(8, 2, bias=False),
        lambda: (randn(5, 8), randn(4, 8), randn(4, 8)),
    )
    show(
        lambda: nn.MultiheadAttention(8, 2),
        lambda: (randn(5, 3, 8), randn(4, 3, 8), randn(4, 3, 8), randn(3, 4) > 1.0),
    )
    show(lambda: nn.TransformerEncoderLayer(8, 2, dim_feedforward=12), lambda: (randn(5, 3, 8),))
    show(
        lambda: nn.TransformerEncoderLayer(
            8, 2, dim_feedforward=12, norm_first=True, activation="gelu", batch_first=True
        ),
        lambda: (randn(3, 5, 8),),
    )
    show(
        lambda: nn.TransformerDecoderLayer(8, 2, dim_feedforward=12, bias=False),
        lambda: (randn(5, 3, 8), randn(4, 3, 8)),
    )
    show(
        lambda: nn.TransformerEncoder(
            nn.TransformerEncoderLayer(8, 2, dim_feedforward=12), 2, nn.LayerNorm(8)
        ),
        lambda: (randn(5, 3, 8), nn.Transformer.generate_square_subsequent_mask(5)),
    )
    show(
        lambda: nn.Transformer(
            d_model=8,
            nhead=2,
            num_encoder_layers=2,
            num_decoder_layers=1,
            dim_feedforward=12,
            norm_first=True,
        ),
        lambda: (randn(5, 3, 8), randn(4, 3, 8)),
    )


if __name__ == "__main__":
    normalizations()
    dropouts()
    borders_and_shapes()
    pairs()
    attention()
