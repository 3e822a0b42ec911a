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
    "var": lambda: X.var(0),
    "softmax": lambda: F.softmax(X, 1),
    "softmax over rows": lambda: F.softmax(X, 0),
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
