"""The operators of exported programs, before and after decompositions."""

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn
from rushlight.export import export


class Calls(nn.Module):
    def __init__(self, function, layer=None):
        super().__init__()
        self.function, self.layer = function, layer

    def forward(self, x):
        return self.function(x) if self.layer is None else self.function(self.layer, x)


def show(x, *functions, layer=None):
    for function in functions:
        program = export(Calls(function, layer).eval(), (x,))
        for one in (program, program.run_decompositions()):
            print([str(n.target) for n in one.graph.nodes if "aten" in str(n.target)])


def layers():
    x, image = torch.ones(3, 4), torch.ones(2, 3, 8, 8)
    show(x, lambda m, x: m(x), layer=nn.Linear(4, 2))
    show(x, lambda m, x: m(x), layer=nn.Linear(4, 2, bias=False))
    show(x[None], lambda m, x: m(x), layer=nn.Linear(4, 2))
    show(x, lambda m, x: m(x), layer=nn.LayerNorm(4))
    show(image, lambda m, x: m(x), layer=nn.GroupNorm(3, 3))
    show(image, lambda m, x: m(x), layer=nn.BatchNorm2d(3))
    show(image, lambda m, x: m(x), layer=nn.Conv2d(3, 4, 3, padding=1))
    show(torch.tensor([1, 2]), lambda m, x: m(x), layer=nn.Embedding(4, 2))


def functions():
    x, image = torch.ones(3, 4), torch.ones(2, 3, 8, 8)
    show(x, lambda x: x.softmax(-1), lambda x: F.gelu(x), lambda x: F.silu(x), lambda x: x // 2)
    show(x, lambda x: F.hardswish(x), lambda x: F.log_softmax(x, 1), lambda x: 1 - x)
    show(x, lambda x: x.t() @ x, lambda x: x.transpose(0, 1).reshape(-1), lambda x: x.sum())
    show(image, lambda x: F.max_pool2d(x, 2), lambda x: F.adaptive_avg_pool2d(x, 1))
    show(image, lambda x: x @ x.transpose(-1, -2), lambda x: x.mean((2, 3)))
    show(x, lambda x: (x > 1).any(), lambda x: x.max() + x.norm(), lambda x: x**2 + x % 2)
