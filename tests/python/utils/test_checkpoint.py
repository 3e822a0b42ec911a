"""Checkpointed functions give the same gradients, from a second run."""

from collections import Counter
from functools import partial

import pytest
import rushlight as torch
from rushlight import nn
from rushlight.utils._python_dispatch import TorchDispatchMode
from rushlight.utils.checkpoint import (
    CheckpointError,
    CheckpointPolicy,
    DefaultDeviceType,
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
)

FORMS = pytest.mark.parametrize("reentrant", [True, False])


@FORMS
def test_gradients_are_the_same(reentrant):
    torch.manual_seed(0)
    layer = nn.Linear(3, 3)
    x = torch.randn(2, 3, requires_grad=True)
    layer(x).tanh().sum().backward()
    expected = x.grad.clone(), layer.weight.grad.clone()
    x.grad = layer.weight.grad = None
    output = checkpoint(lambda a: layer(a).tanh(), x, use_reentrant=reentrant)
    output.sum().backward()
    assert torch.equal(x.grad, expected[0])
    assert torch.equal(layer.weight.grad, expected[1])


@FORMS
@pytest.mark.parametrize("wide", [False, True])
def test_autocast_is_that_of_the_first_run(reentrant, wide):
    layer = nn.Linear(3, 3)

    def step(run):
        x = torch.ones(2, 3, requires_grad=True)
        layer.weight.grad = None
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=not wide):
            y = run(x)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=wide):  # backward's
            y.float().square().sum().backward()
        return y.dtype, x.grad.tolist(), layer.weight.grad.tolist()

    def outer(x):
        return layer(checkpoint(layer, x, use_reentrant=False).relu())

    expected = step(lambda x: layer(layer(x).relu()))
    assert step(lambda x: checkpoint(outer, x, use_reentrant=reentrant)) == expected


@FORMS
def test_the_function_runs_twice(reentrant):
    runs = []

    def function(a):
        runs.append(torch.is_grad_enabled())
        return (a * 2).exp()

    x = torch.ones(2, requires_grad=True)
    output = checkpoint(function, x, use_reentrant=reentrant)
    assert len(runs) == 1
    output.sum().backward()
    assert len(runs) == 2


@FORMS
def test_random_numbers_are_the_same_in_both_runs(reentrant):
    masks = []

    def function(a):
        noise = torch.rand(3)
        masks.append(noise.tolist())
        return (a * noise).exp()

    checkpoint(
        function, torch.ones(3, requires_grad=True), use_reentrant=reentrant
    ).sum().backward()
    assert masks[0] == masks[1]


@FORMS
def test_sequential(reentrant):
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 2), nn.Tanh())
    x = torch.randn(3, 2, requires_grad=True)
    layers(x).sum().backward()
    expected = x.grad.clone()
    x.grad = None
    checkpoint_sequential(layers, 2, x, use_reentrant=reentrant).sum().backward()
    assert torch.equal(x.grad, expected)


def test_keyword_arguments():
    x = torch.ones(1, requires_grad=True)
    output = checkpoint(lambda a, k: (a * k).exp(), x, k=2.0, use_reentrant=False)
    output.sum().backward()
    assert x.grad.item() == pytest.approx(14.778112)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: k"):
        checkpoint(lambda a, k: a, x, k=2.0, use_reentrant=True)


def test_a_second_run_that_differs_is_refused():
    runs = []

    def function(a):
        runs.append(1)
        return (a * 2).exp() if len(runs) == 1 else (a[:1] * 2).exp()

    output = checkpoint(function, torch.ones(2, requires_grad=True), use_reentrant=False)
    with pytest.raises(CheckpointError, match="different metadata than during the forward"):
        output.sum().backward()


def test_the_form_should_be_chosen():
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        checkpoint(lambda a: a * 2, torch.ones(1, requires_grad=True))


# ---- Selective checkpointing ---------------------------------------------------------------------

aten = torch.ops.aten


class _Count(TorchDispatchMode):
    """Counts the operators that really run."""

    def __init__(self):
        super().__init__()
        self.ran = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.ran[func.__name__] += 1
        return func(*args, **(kwargs or {}))


def selectively(policy, x, layer, **options):
    """A checkpointed layer's gradients, and what ran in backward."""
    layer.zero_grad()
    contexts = partial(create_selective_checkpoint_contexts, policy, **options)
    output = checkpoint(lambda x: layer(x).sin().exp(), x, use_reentrant=False, context_fn=contexts)
    with _Count() as count:
        output.sum().backward()
    return [p.grad.clone() for p in layer.parameters()], count.ran


def test_the_results_that_are_kept_are_not_computed_again():
    torch.manual_seed(0)
    layer, x = nn.Linear(3, 3), torch.randn(2, 3)
    layer(x).sin().exp().sum().backward()
    expected = [p.grad.clone() for p in layer.parameters()]
    for policy, products, sines in (
        ([], 1, 1),
        ([aten.addmm.default], 0, 1),
        ([aten.addmm.default, aten.sin.default], 0, 0),
        (lambda context, op, *args, **kwargs: op is aten.sin.default, 1, 0),
        (lambda context, op, *args, **kwargs: CheckpointPolicy.MUST_SAVE, 0, 0),
        (lambda context, op, *args, **kwargs: CheckpointPolicy.PREFER_RECOMPUTE, 1, 1),
    ):
        grads, ran = selectively(policy, x, layer)
        assert (ran["addmm.default"], ran["sin.default"]) == (products, sines)
        for grad, wanted in zip(grads, expected):
            assert torch.equal(grad, wanted)


def test_what_a_policy_is_told():
    seen = []

    def policy(context, op, *args, **kwargs):
        if op is aten.sin.default:
            seen.append((context.is_recompute, args[0].shape))
        return CheckpointPolicy.PREFER_SAVE

    selectively(policy, torch.randn(2, 3), nn.Linear(3, 3))
    assert seen == [(False, (2, 3)), (True, (2, 3))]


def test_kept_results_serve_one_backward():
    contexts = partial(create_selective_checkpoint_contexts, [aten.mm.default])
    x, w = torch.randn(2, 2), torch.randn(2, 2, requires_grad=True)
    output = checkpoint(lambda x: (x @ w).sin(), x, use_reentrant=False, context_fn=contexts)
    output.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
        output.sum().backward()


def test_kept_results_that_were_written():
    def function(x):
        y = (x @ w).sin()
        return y.add_(1).exp()

    x, w = torch.randn(2, 2), torch.randn(2, 2, requires_grad=True)
    for allowed in (False, True):
        contexts = partial(
            create_selective_checkpoint_contexts,
            [aten.sin.default],
            allow_cache_entry_mutation=allowed,
        )
        output = checkpoint(function, x, use_reentrant=False, context_fn=contexts)
        if allowed:
            output.sum().backward()
            continue
        with pytest.raises(RuntimeError, match="cached during selective .* has been mutated"):
            output.sum().backward()


def test_policies_are_checked():
    with pytest.raises(ValueError, match=r"to be an OpOverload but got: aten\.mm of type"):
        create_selective_checkpoint_contexts([aten.mm])
    with pytest.raises(TypeError, match="must be either a function or a list of ops"):
        create_selective_checkpoint_contexts(3)


def test_attention_is_kept_by_any_of_its_names():
    names = ("flash_attention", "efficient_attention", "flash_attention_for_cpu")
    ops = [getattr(aten, f"_scaled_dot_product_{name}").default for name in names]
    assert ops == [aten._attention.default] * 3

    q = torch.randn(1, 2, 4, 8, requires_grad=True)
    contexts = partial(create_selective_checkpoint_contexts, ops)
    output = checkpoint(
        lambda q: nn.functional.scaled_dot_product_attention(q, q, q).sin(),
        q,
        use_reentrant=False,
        context_fn=contexts,
    )
    with _Count() as count:
        output.sum().backward()
    assert count.ran["_attention.default"] == 0 and count.ran["_attention_backward.default"] == 1
    with pytest.raises(RuntimeError, match="_attention"):
        ops[0](q, q, q, 0.0, True)  # they have arguments of their own


def test_the_device_type():
    assert DefaultDeviceType.get_device_type() == "cpu"
    DefaultDeviceType.set_device_type("meta")
    assert DefaultDeviceType.get_device_type() == "meta"
    DefaultDeviceType.set_device_type()
