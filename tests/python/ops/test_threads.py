"""The number of threads never shows in a result: the same bits with 1, 2, 3 and 8."""

import pytest
import rushlight as torch
from rushlight.nn import functional as F

torch.manual_seed(0)
X = torch.randn(700, 3000)
W = torch.randn(500, 3000)
Q = torch.randn(2, 4, 200, 32)
GAIN = torch.randn(3000)
ROWS = torch.arange(700) % 50


def embedding_gradient():
    table = torch.zeros(50, 3000, requires_grad=True)
    return torch.autograd.grad((F.embedding(ROWS, table) * X).sum(), table)[0]


def layer_norm_gradient():
    gain = GAIN.clone().requires_grad_()
    return torch.autograd.grad((F.layer_norm(X, (3000,), gain, GAIN) * X).sum(), gain)[0]


WORK = {
    "sum": lambda: X.sum(),
    "sum over rows": lambda: X.sum(0),
    "sum over columns": lambda: X.sum(1),
    "sum over rows of few columns": lambda: X.view(-1, 3).sum(0),
    "mean over planes of few columns": lambda: X.view(2, -1, 5).mean((0, 1)),
    "products of few rows and columns": lambda: X.view(-1, 4).t() @ X.view(-1, 4),
    "product of a vector": lambda: GAIN @ X.t(),
    "topk": lambda: torch.stack([x.double() for x in X.topk(7, 1)]),
    "median": lambda: X.median(1).indices,
    "var": lambda: X.var(0),
    "softmax": lambda: F.softmax(X, 1),
    "softmax over rows": lambda: F.softmax(X, 0),
    "softmax over few rows": lambda: F.softmax(X[:, :512], 0),
    "log_softmax over planes": lambda: F.log_softmax(X.view(7, 100, 3000)[..., :300], 1),
    "flip": lambda: X.flip(1),
    "rot90": lambda: X.rot90(),
    "arange": lambda: torch.arange(3, 900_000, 7),
    "linspace": lambda: torch.linspace(-1, 2, 300_001),
    "pad": lambda: F.pad(X.view(7, 100, 3000), (5, 9), mode="reflect"),
    "bilinear": lambda: F.interpolate(X.view(1, 7, 100, 3000), scale_factor=1.5, mode="bilinear"),
    "cross": lambda: torch.linalg.cross(X.view(-1, 3), X.flip(0).view(-1, 3)),
    "nll_loss": lambda: F.nll_loss(X.repeat(20, 1), ROWS.repeat(20)),
    "i1e": lambda: torch.special.i1e(X),
    "layer_norm": lambda: F.layer_norm(X, (3000,), GAIN, GAIN),
    "layer_norm gradient": layer_norm_gradient,
    "mm": lambda: X @ W.t(),
    "cumsum": lambda: X.cumsum(1),
    "cumsum over rows": lambda: X.cumsum(0),
    "attention": lambda: F.scaled_dot_product_attention(Q, Q, Q, is_causal=True),
    "gelu": lambda: F.gelu(X),
    "index_add": lambda: torch.zeros(50, 3000).index_add(0, ROWS, X),
    "embedding gradient": embedding_gradient,
}


@pytest.mark.parametrize("name", WORK)
def test_same_bits(name):
    before = torch.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 3, 8):
            torch.set_num_threads(threads)
            results.append(WORK[name]())
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(results[0], other) for other in results[1:])
