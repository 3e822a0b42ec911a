"""The order of contractions in einsum."""

import importlib.util
import types

import pytest
import rushlight as torch

aten = torch.ops.aten
PATHS = [[0, 1, 0, 1], [0, 2, 0, 1], [2, 1, 1, 0]]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk,kl->il", [(3, 4), (4, 5), (5, 2)]),
        ("bij,bjk,k->bi", [(2, 3, 4), (2, 4, 5), (5,)]),
        ("...i,i...,ii->i", [(2, 3), (3, 2), (3, 3)]),
        ("i,j,k", [(2,), (3,), (4,)]),
        ("ij,ij,ij->", [(2, 3), (1, 3), (2, 1)]),
        ("a,a,b->", [(3,), (1,), (4,)]),
    ],
)
def test_every_order_gives_the_sum(equation, shapes, path):
    torch.manual_seed(0)
    operands = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    along = aten.einsum(equation, operands, path=path)
    plain = aten.einsum(equation, operands)
    torch.testing.assert_close(along, plain)
    gradients = torch.autograd.grad(along.sum(), operands)
    torch.testing.assert_close(gradients, torch.autograd.grad(plain.sum(), operands))


def test_paths_that_do_not_fit():
    operands = [torch.ones(2, 2)] * 3
    with pytest.raises(RuntimeError, match="path parameter to have size 4 but got 2"):
        aten.einsum("ij,jk,kl->il", operands, path=[0, 1])
    for pair in ([0, 2], [0, 0], [-1, 0]):
        with pytest.raises(RuntimeError, match=rf"invalid contraction \({pair[0]}, {pair[1]}\)"):
            aten.einsum("ij,jk,kl->il", operands, path=[0, 1, *pair])


@pytest.fixture
def package(monkeypatch):
    """A package opt_einsum that contracts the last two first, and writes down what it is asked."""
    asked = []

    def contract_path(equation, *shapes, shapes_given=None, **options):
        asked.append((equation, shapes, options))
        return [(1, 2), (0, 1)], "a report"

    found = types.ModuleType("opt_einsum")
    found.contract_path = contract_path
    monkeypatch.setitem(__import__("sys").modules, "opt_einsum", found)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: found)
    return asked


def test_the_package_says_the_order(package):
    settings = torch.backends.opt_einsum
    operands = [torch.ones(1, 40), torch.ones(40, 50), torch.ones(50, 1)]
    before = settings.enabled, settings.strategy
    with settings.flags(enabled=True, strategy="greedy"):
        assert torch.einsum("ij,jk,kl->il", *operands).item() == 2000
        torch.einsum("ij,jk->ik", *operands[:2])
    assert (settings.enabled, settings.strategy) == before
    shapes = tuple(tuple(operand.shape) for operand in operands)
    assert package == [("ij,jk,kl->il", shapes, {"shapes": True, "optimize": "greedy"})]
    with settings.flags(enabled=False):
        torch.einsum("ij,jk,kl->il", *operands)
    assert len(package) == 1


def test_without_the_package(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    settings = torch.backends.opt_einsum
    assert not settings.is_available() and settings.get_opt_einsum() is None
    with pytest.raises(ValueError, match="left to right"):
        settings.enabled = True
    with pytest.raises(ValueError, match="setting `strategy` to greedy"):
        settings.strategy = "greedy"
