"""Other tensors in an optimizer's place for a while."""

from __future__ import annotations

import copy

import pytest
import rushlight as torch
from rushlight.optim import swap_in_optimizer_params_and_state


@pytest.fixture
def optimizer():
    weight = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    made = torch.optim.SGD([weight], lr=0.5, momentum=0.5)
    weight.grad = torch.ones(2)
    made.step()
    return made


def test_a_step_changes_what_was_swapped_in(optimizer):
    own = optimizer.param_groups[0]["params"][0]
    other = torch.zeros(2, requires_grad=True)
    other.grad = torch.ones(2)
    state = copy.deepcopy(optimizer.state_dict())
    with swap_in_optimizer_params_and_state(optimizer, {"w": other}, state):
        assert optimizer.param_groups[0]["params"][0] is other
        optimizer.step()
    assert other.tolist() == [-0.75, -0.75] and own.tolist() == [0.5, 1.5]
    assert optimizer.param_groups[0]["params"][0] is own
    assert state["state"][0]["momentum_buffer"].tolist() == [1.5, 1.5]
    assert optimizer.state[own]["momentum_buffer"].tolist() == [1.0, 1.0]


def test_misuse(optimizer):
    state = optimizer.state_dict()
    with pytest.raises(RuntimeError, match="it has 1 parameters, got 0"):
        with swap_in_optimizer_params_and_state(optimizer, {}, state):
            pass
    fresh = torch.optim.Adam([torch.ones(1, requires_grad=True)])
    with pytest.raises(RuntimeError, match="requires initialized optimizer state"):
        with swap_in_optimizer_params_and_state(fresh, {"w": torch.ones(1)}, fresh.state_dict()):
            pass
