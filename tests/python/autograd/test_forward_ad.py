"""Dual tensors: forward mode."""

import pytest
import rushlight as torch
from rushlight.autograd import forward_ad as fw


@pytest.fixture(autouse=True)
def no_level_is_left():
    yield
    assert fw._current_level == -1


def x():
    return torch.tensor([1.0, 2.0])


def v():
    return torch.tensor([1.0, 0.5])


def test_tangents_of_results():
    with fw.dual_level():
        dual = fw.make_dual(x(), v())
        assert fw.unpack_dual(dual).tangent.tolist() == [1.0, 0.5]
        primal, tangent = fw.unpack_dual((dual.sin() * x()).exp())
        wanted = (x().sin() * x()).exp()
        torch.testing.assert_close(primal, wanted)
        torch.testing.assert_close(tangent, wanted * x().cos() * x() * v())
        assert not primal.requires_grad and not tangent.requires_grad
        assert fw.unpack_dual(dual.view(1, 2)).tangent.shape == (1, 2)
        assert fw.unpack_dual(dual * 2 + 1).tangent.tolist() == [2.0, 1.0]
        assert fw.unpack_dual(x() * 2).tangent is None
        assert fw.unpack_dual(dual.detach()).tangent is None
    assert fw.unpack_dual(dual).tangent is None


def test_several_duals_add_up():
    with torch.no_grad(), fw.dual_level():
        one, other = fw.make_dual(x(), v()), fw.make_dual(x() + 1, v() * 10)
        tangent = fw.unpack_dual(one * other).tangent
    torch.testing.assert_close(tangent, v() * (x() + 1) + x() * v() * 10)


def test_parameters_of_modules():
    layer = torch.nn.Linear(2, 2)
    weight = layer.weight
    del layer.weight
    with fw.dual_level():
        layer.weight = fw.make_dual(weight, torch.ones(2, 2))
        primal, tangent = fw.unpack_dual(layer(x()))
    assert tangent.tolist() == [3.0, 3.0] and primal.requires_grad


def test_reverse_over_forward():
    weight = x().requires_grad_()
    with fw.dual_level():
        dual = fw.make_dual(torch.ones(2), v())
        tangent = fw.unpack_dual(dual * weight**2).tangent
        (found,) = torch.autograd.grad(tangent.sum(), weight)
    torch.testing.assert_close(found, 2 * x() * v())


def test_mistakes():
    with pytest.raises(RuntimeError, match="no level exists, make sure to enter_dual_level"):
        fw.make_dual(x(), v())
    with pytest.raises(RuntimeError, match="Dual level must be a positive number"):
        fw.exit_dual_level()
    level = fw.enter_dual_level()
    assert level == 0
    with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"):
        fw.enter_dual_level()
    with pytest.raises(RuntimeError, match="not the last one that was created"):
        fw.exit_dual_level(level=3)
    with pytest.raises(RuntimeError, match="forward gradient that has a different size"):
        fw.make_dual(x(), v()[:1])
    with pytest.raises(ValueError, match="Expected primal to be floating point or complex, but"):
        fw.make_dual(x().long(), v())
    dual = fw.make_dual(x(), v())
    with pytest.raises(RuntimeError, match="already has a forward gradient at the same level"):
        fw.make_dual(dual, v())
    fw.exit_dual_level(level=level)


@fw.dual_level()
def decorated():
    return fw.unpack_dual(fw.make_dual(x(), v()) * 3).tangent


def test_levels_decorate_functions():
    assert decorated().tolist() == [3.0, 1.5]
