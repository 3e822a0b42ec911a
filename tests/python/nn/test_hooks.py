"""Hooks around the call of a module, and around its gradients."""

import pytest
import rushlight as torch
from rushlight import nn
from rushlight.nn.modules import module as module_hooks


class Double(nn.Module):
    def forward(self, x, plus=0.0, fail=False):
        if fail:
            raise ValueError("asked to fail")
        return x * 2 + plus


def test_forward_pre_hook_replaces_arguments():
    module = Double()
    module.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
    assert module(torch.tensor(1.0)).item() == 4.0
    module = Double()
    module.register_forward_pre_hook(lambda m, args: args[0] + 1)
    assert module(torch.tensor(1.0)).item() == 4.0


def test_forward_pre_hook_with_keywords():
    module = Double()
    module.register_forward_pre_hook(
        lambda m, args, kwargs: (args, {**kwargs, "plus": 5.0}), with_kwargs=True
    )
    assert module(torch.tensor(1.0)).item() == 7.0


def test_forward_pre_hook_with_keywords_must_give_both():
    module = Double()
    module.register_forward_pre_hook(lambda m, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match="None or a tuple of .new_args, new_kwargs."):
        module(torch.tensor(1.0))


def test_forward_hook_replaces_the_output():
    module = Double()
    module.register_forward_hook(lambda m, args, output: output + 10)
    assert module(torch.tensor(1.0)).item() == 12.0


def test_hooks_run_in_order_of_registration_or_prepended():
    order = []
    module = Double()
    module.register_forward_hook(lambda *a: order.append("second"))
    module.register_forward_hook(lambda *a: order.append("third"))
    module.register_forward_hook(lambda *a: order.append("first"), prepend=True)
    module(torch.tensor(1.0))
    assert order == ["first", "second", "third"]


def test_removed_hooks_no_longer_run():
    calls = []
    module = Double()
    with module.register_forward_hook(lambda *a: calls.append(1)):
        module(torch.tensor(1.0))
    module(torch.tensor(1.0))
    handle = module.register_forward_hook(lambda *a: calls.append(2))
    handle.remove()
    module(torch.tensor(1.0))
    assert calls == [1]


def test_always_called_hook_runs_after_an_error():
    seen = []
    module = Double()
    module.register_forward_hook(lambda m, args, output: seen.append(output), always_call=True)
    module.register_forward_hook(lambda m, args, output: seen.append("skipped"))
    with pytest.raises(ValueError, match="asked to fail"):
        module(torch.tensor(1.0), fail=True)
    assert seen == [None]


def test_full_backward_hook_sees_and_replaces_gradients():
    module = Double()
    seen = []

    def hook(m, grad_input, grad_output):
        seen.append((grad_input[0].item(), grad_output[0].item()))
        return (grad_input[0] * 10,)

    module.register_full_backward_hook(hook)
    x = torch.tensor(3.0, requires_grad=True)
    (module(x) * 7).backward()
    assert seen == [(14.0, 7.0)]
    assert x.grad.item() == 140.0


def test_full_backward_pre_hook_replaces_output_gradients():
    module = nn.Linear(1, 1, bias=False)
    module.register_full_backward_pre_hook(lambda m, grad_output: (grad_output[0] * 3,))
    module(torch.tensor([[2.0]])).sum().backward()
    assert module.weight.grad.tolist() == [[6.0]]


def test_full_backward_hook_without_input_gradient_gets_none():
    module = nn.Linear(1, 1)
    seen = []
    module.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go[0].tolist())))
    module(torch.tensor([[2.0]])).sum().backward()
    assert seen == [((None,), [[1.0]])]


def test_backward_hook_must_give_as_many_gradients():
    module = Double()
    module.register_full_backward_hook(lambda m, gi, go: (gi[0], gi[0]))
    with pytest.raises(RuntimeError, match="invalid number of grad_input, got 2, but expected 1"):
        module(torch.ones(1, requires_grad=True)).sum().backward()


def test_two_kinds_of_backward_hooks_exclude_each_other():
    module = Double()
    module.register_full_backward_hook(lambda *a: None)
    with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks"):
        module.register_backward_hook(lambda *a: None)


def test_global_hooks_run_for_every_module():
    names = []
    handles = [
        module_hooks.register_module_forward_pre_hook(
            lambda m, args: names.append(("before", type(m).__name__))
        ),
        module_hooks.register_module_forward_hook(
            lambda m, args, out: names.append(("after", type(m).__name__))
        ),
    ]
    try:
        nn.Sequential(nn.ReLU())(torch.ones(1))
    finally:
        for handle in handles:
            handle.remove()
    assert names == [
        ("before", "Sequential"),
        ("before", "ReLU"),
        ("after", "ReLU"),
        ("after", "Sequential"),
    ]
    nn.ReLU()(torch.ones(1))
    assert len(names) == 4


def test_registration_hooks_replace_members():
    replacement = nn.Parameter(torch.full((1, 1), 9.0))
    handle = module_hooks.register_module_parameter_registration_hook(
        lambda m, name, param: replacement if name == "weight" else None
    )
    try:
        layer = nn.Linear(1, 1)
    finally:
        handle.remove()
    assert layer.weight is replacement
