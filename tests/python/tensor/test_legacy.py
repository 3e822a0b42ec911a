"""What old programs call: methods that run Python for each element, and functions that moved."""

import pytest
import rushlight as torch


def x():
    return torch.tensor([1.0, 2.0])


def test_python_for_each_element():
    t = x()
    assert t.apply_(lambda v: v * 2) is t and t.tolist() == [2, 4]
    assert x().map_(torch.ones(1), lambda a, b: a + b).tolist() == [2, 3]
    assert x().map2_(x(), x(), lambda a, b, c: a + b * c).tolist() == [2, 6]
    whole = torch.arange(4).view(2, 2).t()
    assert whole.apply_(lambda v: v + 1).tolist() == [[1, 3], [2, 4]]
    assert torch.tensor([True, False]).apply_(lambda v: not v).tolist() == [False, True]
    with pytest.raises(RuntimeError, match=r"Can't call apply_\(\) on Variable that requires grad"):
        x().requires_grad_().apply_(abs)
    with pytest.raises(TypeError, match="map_: expected a tensor of torch.float32"):
        x().map_(x().double(), lambda a, b: a)
    with pytest.raises(TypeError, match="must be float, not str"):
        x().apply_(lambda v: "a")


def test_resize_out_of_place():
    with pytest.warns(UserWarning, match="non-inplace resize is deprecated"):
        assert x().resize(2, 1).shape == (2, 1)
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="requested resize to 1 "):
        x().resize_as(torch.ones(1))


def test_module_load():
    t = x()
    assert t.module_load(torch.ones(2)).tolist() == [1, 1] and t.tolist() == [1, 2]
    other = torch.ones(2)
    assert t.module_load(other, assign=True).data_ptr() == other.data_ptr()


@pytest.mark.parametrize(
    "call",
    [
        lambda: x().eig(),
        lambda: x().lstsq(x()),
        lambda: x().solve(x()),
        lambda: x().symeig(),
        lambda: torch.lstsq(x(), x()),
        lambda: torch.solve(x(), x()),
        lambda: torch.eig(x()),
        lambda: torch.matrix_rank(x()),
        lambda: x().reinforce(1),
    ],
)
def test_what_was_removed_says_what_has_its_place(call):
    with pytest.raises(RuntimeError, match=r"removed[\s\S]*(torch.linalg|torch.distributions)"):
        call()


def test_functions_of_old_names():
    a = torch.rand(2, 3)
    torch.testing.assert_close(torch.chain_matmul(a, a.T, a), a @ a.T @ a)
    assert torch.chain_matmul(a) is a
    torch.testing.assert_close(torch.frobenius_norm(a, 1), a.norm(dim=1))
    torch.testing.assert_close(torch.frobenius_norm(a, ()), a.norm())
    torch.testing.assert_close(torch.norm_except_dim(a, 2, 0), a.norm(dim=1, keepdim=True))
    torch.testing.assert_close(torch.norm_except_dim(a, 2, -1), a.norm())
    assert torch.get_device(a) == -1 and not torch.is_conj(a) and not torch.is_neg(a)
    tracked = (x().requires_grad_() * 2).view(2).clone()
    assert torch.detach_(tracked) is tracked and not tracked.requires_grad
    assert torch.get_autocast_cpu_dtype() == torch.bfloat16 and not torch.is_autocast_cpu_enabled()
    with torch.autocast("cpu"):
        assert torch.is_autocast_cpu_enabled()
    assert torch.Storage is torch.FloatStorage
    assert x().__div__(2).tolist() == [0.5, 1.0] and x()[1].__long__() == 2
    assert not x().is_ipu and x().name is None and x().const_data_ptr() != 0


def test_sizes_as_symbols():
    assert torch.sym_max(1, 2.0) == 2.0 and isinstance(torch.sym_max(3, 2.0), float)
    assert torch.sym_min(1, 2) == 1 and torch.sym_int(-2.7) == -2 and torch.sym_float(2) == 2.0
    assert torch.sym_not(3) is False and torch.sym_ite(True, 1, 2) == 1
    assert torch.sym_sum([1, 2]) == torch.sym_sum(1, 2) == 3 and torch.sym_sqrt(4) == 2.0
    assert not isinstance(torch.ones(3).shape[0], torch.SymInt)
    assert torch.zeros(torch.SymInt(3).bit_length()).shape == (2,)
    assert torch.SymFloat(2.0).is_integer() and int(torch.SymInt(4)) == 4
    torch.sym_constrain_range(3, min=1, max=4)
    with pytest.raises(RuntimeError, match="Invalid value range for -1"):
        torch.sym_constrain_range_for_size(-1)
    with pytest.raises(AssertionError, match="two values of one type"):
        torch.sym_ite(True, 1, 2.0)
