"""Orders of arguments that PyTorch deprecated and still takes."""

import pytest
import rushlight as torch

X, Y, V, B = torch.ones(2, 2), torch.full((2, 2), 2.0), torch.ones(2), torch.ones(1, 2, 2)

CASES = {
    "add": (lambda: torch.add(X, 3, Y), 7),
    "add_": (lambda: X.clone().add_(3, Y), 7),
    "add_ with a tensor": (lambda: X.clone().add_(torch.tensor(3.0), Y), 7),
    "sub": (lambda: X.sub(3, Y), -5),
    "addcmul_": (lambda: X.clone().addcmul_(3, Y, Y), 13),
    "addcdiv": (lambda: torch.addcdiv(X, 0.5, Y, Y), 1.5),
    "addmm": (lambda: torch.addmm(0.5, X, 2, Y, Y), 16.5),
    "addmm without alpha": (lambda: torch.addmm(0.5, X, Y, Y), 8.5),
    "addmm_": (lambda: X.clone().addmm_(0.5, 2, Y, Y), 16.5),
    "addmm_ without alpha": (lambda: X.clone().addmm_(0.5, Y, Y), 8.5),
    "addmv_": (lambda: V.clone().addmv_(0.5, 2, Y, V), 8.5),
    "addr_": (lambda: X.clone().addr_(0.5, 2, V, V), 2.5),
    "baddbmm_": (lambda: B.clone().baddbmm_(0.5, 2, B, B), 4.5),
    "addbmm": (lambda: X.addbmm(0.5, 2, B, B), 4.5),
    "out": (lambda: torch.add(X, 3, Y, out=torch.empty(2, 2)), 7),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_taken_with_a_warning(name):
    call, expected = CASES[name]
    with pytest.warns(UserWarning, match="This overload of .* is deprecated"):
        result = call()
    assert result.flatten().tolist() == [expected] * result.numel()


def test_others_are_refused():
    for call in (lambda: X.add_(Y, Y), lambda: X.mul(3, Y), lambda: torch.addmm(0.5, 2, X, Y, Y)):
        with pytest.raises(TypeError):
            call()


def test_seeds_are_what_int_takes():
    torch.manual_seed(3)
    expected = torch.rand(2)
    for seed in (3.7, "3", torch.tensor(3)):
        torch.manual_seed(seed)
        assert torch.equal(torch.rand(2), expected)
    with pytest.raises(ValueError, match="invalid literal"):
        torch.manual_seed("a")
