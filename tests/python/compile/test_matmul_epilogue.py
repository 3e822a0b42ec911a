"""Kernels that run on the blocks of a matrix product: eager's bits, forward and backward."""

import os
import subprocess
import sys

import pytest
import rushlight as torch
from rushlight.nn import functional as F

torch.manual_seed(0)
X, W, B = torch.randn(300, 200), torch.randn(700, 200), torch.randn(700)
R = torch.randn(300, 700)

FUNCTIONS = {
    "gelu": lambda x, w, b, r: F.gelu(F.linear(x, w, b)),
    "residual": lambda x, w, b, r: F.relu(F.linear(x, w, b)) * 0.5 + r,
    "bias by hand": lambda x, w, b, r: (x @ w.t()) * 0.3 + b,
    "a factor for each row": lambda x, w, b, r: (x @ w.t()) * x[:, :1],
    "batches": lambda x, w, b, r: torch.tanh(F.linear(x.view(3, 100, 200), w, b)),
    "addmm": lambda x, w, b, r: torch.addmm(b, x, w.t(), beta=0.5, alpha=2).sigmoid(),
    "halves": lambda x, w, b, r: F.gelu(F.linear(x.bfloat16(), w.bfloat16())).float(),
    "a vector": lambda x, w, b, r: F.relu(x @ w[0]),
    "a weight that is a vector": lambda x, w, b, r: F.linear(x[:7], w[0]).exp2(),
    "a vector and a matrix": lambda x, w, b, r: F.linear(x[0], w, b).exp2(),
    "the product and its transpose": lambda x, w, b, r: (x @ x.t()) + (x @ x.t()).t(),
    "the product seen twice": lambda x, w, b, r: (lambda y: F.relu(y) + y[0])(x @ w.t()),
    "a product of what the kernel writes": lambda x, w, b, r: F.relu(x @ w.t()) @ w,
    "result in place of a factor": lambda x, w, b, r: F.relu((x * 2) @ w[:200]) + x * 2,
}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_same_bits(name, threads):
    function = FUNCTIONS[name]
    compiled = torch.compile(function)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        assert torch.equal(function(X, W, B, R), compiled(X, W, B, R))
        results = []
        for call in (function, compiled):
            leaves = [t.clone().requires_grad_() for t in (X, W, B, R)]
            call(*leaves).square().sum().backward()
            results.append([t.grad for t in leaves])
    finally:
        torch.set_num_threads(before)
    for one, other in zip(*results, strict=True):
        assert (one is None and other is None) or torch.equal(one, other)


def test_written_in_place():
    def function(x, w):
        y = x @ w.t()
        kept = y.add_(1).mul_(y)
        x.add_(1)  # after the product has read it
        return kept

    one, other = X.clone(), X.clone()
    assert torch.equal(function(one, W), torch.compile(function)(other, W))
    assert torch.equal(one, other)


def test_written_in_place_beside_what_ends_there():
    def function(x, w):
        other = (x * 3).tanh() @ w.t()
        y = x @ w.t()
        y.mul_(0.5).add_(other)
        return y

    assert torch.equal(function(X, W), torch.compile(function)(X, W))


@pytest.mark.parametrize("shapes", [[(300, 200, 700), (7, 5, 3), (1, 200, 700), (64, 64, 64)]])
def test_one_plan_for_other_sizes(shapes):
    function = torch.compile(lambda x, w, b: F.gelu(F.linear(x, w, b)))
    for m, k, n in shapes:
        x, w, b = torch.randn(m, k), torch.randn(n, k), torch.randn(n)
        assert torch.equal(function(x, w, b), F.gelu(F.linear(x, w, b)))


_LOG = """
import rushlight as torch
F = torch.nn.functional
f = torch.compile(lambda x, w, b: F.gelu(F.linear(x, w, b)))
f(torch.randn(64, 32), torch.randn(48, 32), torch.randn(48))
"""


@pytest.mark.parametrize("passes, joined", [("", True), ("-matmul-epilogue", False)])
def test_the_pass_is_named_and_can_be_switched_off(passes, joined):
    environment = {**os.environ, "RUSHLIGHT_LOG": "plans,passes", "RUSHLIGHT_PASSES": passes}
    log = subprocess.run(
        [sys.executable, "-c", _LOG], env=environment, capture_output=True, text=True, check=True
    ).stderr
    assert ("[passes] matmul-epilogue: 1 changes" in log) == joined
    assert ("2 nodes in 1 steps" in log) == joined
