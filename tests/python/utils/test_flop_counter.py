"""Floating-point operations counted in a block."""

import pytest
import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn
from rushlight.utils import flop_counter
from rushlight.utils.flop_counter import FlopCounterMode, register_flop_formula


def counted(function, **options):
    with FlopCounterMode(display=False, **options) as mode:
        function()
    names = {op.__name__: n for op, n in mode.get_flop_counts().get("Global", {}).items()}
    assert sum(names.values()) == mode.get_total_flops()
    return names


def test_products():
    a, b = torch.rand(3, 4, requires_grad=True), torch.rand(4, 5, requires_grad=True)
    assert counted(lambda: a @ b) == {"mm": 120}
    assert counted(lambda: (a @ b).sum().backward()) == {"mm": 360}
    assert counted(lambda: (a.detach() @ b).sum().backward()) == {"mm": 240}
    assert counted(lambda: torch.addmm(torch.ones(5), a, b)) == {"addmm": 120}
    c, d = torch.rand(2, 3, 4), torch.rand(2, 4, 5)
    assert counted(lambda: c @ d) == {"bmm": 240}
    assert counted(lambda: c @ b) == {"mm": 240}
    assert counted(lambda: torch.baddbmm(torch.ones(2, 3, 5), c, d)) == {"baddbmm": 240}
    assert counted(lambda: torch.einsum("ij,jk->ik", a, b)) == {"bmm": 120}
    assert counted(lambda: nn.Linear(4, 5)(c)) == {"addmm": 240}
    assert counted(lambda: a @ torch.rand(4) + a.sum()) == {}


def test_convolutions():
    x = torch.rand(2, 4, 8, 8, requires_grad=True)
    layer = nn.Conv2d(4, 6, 3, padding=1, stride=2, groups=2)
    assert counted(lambda: layer(x)) == {"convolution": 6912}
    both = counted(lambda: layer(x).sum().backward())
    assert both == {"convolution": 6912, "convolution_backward": 20736}
    turned = nn.ConvTranspose2d(4, 6, 3)
    both = counted(lambda: turned(x).sum().backward())
    assert both == {"convolution": 55296, "convolution_backward": 110592}


def test_attention():
    q = torch.rand(2, 3, 4, 8, requires_grad=True)
    k, v = torch.rand(2, 3, 5, 8, requires_grad=True), torch.rand(2, 3, 5, 6, requires_grad=True)
    assert counted(lambda: F.scaled_dot_product_attention(q, k, v)) == {"bmm": 3360}
    assert counted(lambda: F.scaled_dot_product_attention(q, k, v).sum().backward()) == {
        "bmm": 10080
    }


def test_modules_have_their_share(capsys):
    model = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 2))
    with FlopCounterMode() as mode:
        model(torch.rand(3, 4)).sum().backward()
    counts = mode.get_flop_counts()
    shares = {name: sum(table.values()) for name, table in counts.items()}
    assert shares == {
        "Global": 420,
        "Sequential": 420,
        "Sequential.0": 240,
        "Sequential.2": 180,
    }
    text = capsys.readouterr().out
    assert "Sequential.2" in text and "42.86%" in text
    assert "Sequential.2" not in mode.get_table(1)


def test_formulas_of_ones_own():
    a, b = torch.rand(3, 4), torch.rand(4, 5)

    def rows(one, other, out_shape=None):
        assert out_shape == (3, 5)
        return one[0]

    assert counted(lambda: a @ b, custom_mapping={torch.ops.aten.mm: rows}) == {"mm": 3}
    target = torch.ops.aten.relu

    @register_flop_formula(target, get_raw=True)
    def elements(x, out_val=None):
        return x.numel()

    try:
        assert counted(lambda: torch.relu(a)) == {"relu": 12}
    finally:
        del flop_counter.flop_registry[target]
    assert counted(lambda: torch.relu(a)) == {}


def test_an_error_ends_the_count():
    layer = nn.Linear(4, 5)
    with pytest.raises(RuntimeError), FlopCounterMode(display=False):
        layer(torch.rand(3, 7))
    assert counted(lambda: layer(torch.rand(3, 4))) == {"addmm": 120}
