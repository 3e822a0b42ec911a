"""Tensors with and without memory in one call: refused, as their elements cannot meet."""

import pytest
import rushlight as torch
from rushlight.nn import functional as F

HERE = torch.ones(3, 4)
META = torch.ones(3, 4, device="meta")
SQUARE = torch.ones(4, 4)

CALLS = {
    "add": lambda a: a(HERE) + a(META),
    "pow": lambda a: torch.pow(a(HERE), a(META)),
    "eq": lambda a: torch.eq(a(META), a(HERE)),
    "where": lambda a: torch.where(HERE > 0, a(META), a(HERE)),
    "lerp": lambda a: torch.lerp(a(HERE), a(META), 0.5),
    "addcmul": lambda a: torch.addcmul(a(HERE), a(HERE), a(META)),
    "complex": lambda a: torch.complex(a(HERE), a(META)),
    "kron": lambda a: torch.kron(a(HERE), a(META)),
    "isclose": lambda a: torch.isclose(a(HERE), a(META)),
    "mm": lambda a: torch.mm(a(META), SQUARE),
    "mv": lambda a: torch.mv(a(META), SQUARE[0]),
    "linear": lambda a: F.linear(a(META), SQUARE),
    "layer_norm": lambda a: F.layer_norm(a(META), (4,), SQUARE[0], SQUARE[0]),
    "mse_loss": lambda a: F.mse_loss(a(HERE), a(META)),
    "kl_div": lambda a: F.kl_div(a(META), a(HERE)),
    "cosine_similarity": lambda a: F.cosine_similarity(a(HERE), a(META)),
    "masked_fill": lambda a: a(META).masked_fill(HERE > 0, 0.0),
    "prelu": lambda a: F.prelu(a(META), SQUARE[0]),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
@pytest.mark.parametrize("gradient", [False, True])
def test_two_devices(call, gradient):
    def given(x):
        return x.detach().requires_grad_(gradient)

    with pytest.raises(RuntimeError, match="on device .* is not on the expected device"):
        call(given)


def test_a_number_may_stand_beside_any_device():
    assert (META + torch.tensor(2.0)).is_meta
    assert (META * 2 + HERE.sum()).is_meta
    assert torch.where(META > 0, META, torch.tensor(0.0)).is_meta
    assert torch.clamp(META, torch.tensor(0.0), torch.tensor(1.0)).is_meta


def test_the_argument_is_named():
    with pytest.raises(RuntimeError, match=r"lerp: .*argument 'end'"):
        torch.lerp(HERE, META, 0.5)
