"""no_grad and its relatives, anomaly mode, saved-tensor hooks."""

import warnings

import pytest
import rushlight as torch


def leaf(*values):
    return torch.tensor(values, dtype=torch.float32, requires_grad=True)


def test_no_grad_as_context_and_decorator():
    x = leaf(1.0)
    with torch.no_grad():
        assert not torch.is_grad_enabled()
        assert not (x * 2).requires_grad
        with torch.enable_grad():
            assert (x * 2).requires_grad
    assert torch.is_grad_enabled()

    @torch.no_grad()
    def called():
        return torch.is_grad_enabled()

    @torch.no_grad
    def bare():
        return torch.is_grad_enabled()

    assert not called()
    assert not bare()
    assert called.__name__ == "called"


def test_no_grad_is_left_after_an_error():
    with pytest.raises(ValueError), torch.no_grad():
        raise ValueError
    assert torch.is_grad_enabled()


def test_generators_hold_the_mode_only_while_they_run():
    @torch.no_grad()
    def numbers():
        received = yield torch.is_grad_enabled()
        while received is not None:
            received = yield (received, torch.is_grad_enabled())
        return torch.is_grad_enabled()

    generator = numbers()
    assert next(generator) is False
    assert torch.is_grad_enabled()
    assert generator.send(5) == (5, False)
    assert torch.is_grad_enabled()
    with pytest.raises(StopIteration) as stop:
        generator.send(None)
    assert stop.value.value is False


def test_set_grad_enabled():
    torch.set_grad_enabled(False)
    try:
        assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)
    with torch.set_grad_enabled(False):
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()

    @torch.set_grad_enabled(False)
    def inside():
        return torch.is_grad_enabled()

    assert torch.is_grad_enabled()
    assert not inside()


def test_inference_mode():
    x = leaf(1.0, 2.0)
    with torch.inference_mode():
        assert torch.is_inference_mode_enabled()
        y = x * 2
        y.add_(1)
        with torch.inference_mode(False):
            assert (x * 2).requires_grad
    assert not torch.is_inference_mode_enabled()
    assert y.is_inference()
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x * y
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside"):
        y.add_(1)
    with pytest.raises(RuntimeError, match="do not track version counter"):
        _ = y._version
    assert (x * y.clone()).requires_grad

    @torch.inference_mode
    def inside():
        return torch.is_inference_mode_enabled()

    assert inside()


def test_anomaly_mode_names_the_forward_line():
    x = leaf(0.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with torch.autograd.detect_anomaly():
            y = torch.sqrt(x) * 0  # the line to name
            with pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values"):
                y.sum().backward()
    texts = [str(warning.message) for warning in caught]
    assert any("Anomaly Detection has been enabled" in text for text in texts)
    trace = next(text for text in texts if "Error detected in SqrtBackward0" in text)
    assert "# the line to name" in trace
    assert not torch.is_anomaly_enabled()


def test_set_detect_anomaly():
    torch.autograd.set_detect_anomaly(True, check_nan=False)
    try:
        assert torch.is_anomaly_enabled()
        assert not torch.is_anomaly_check_nan_enabled()
    finally:
        torch.autograd.set_detect_anomaly(False)


def test_saved_tensors_hooks():
    x = leaf(2.0, 3.0)
    calls = []

    def pack(tensor):
        calls.append("pack")
        return tensor.tolist()

    def unpack(values):
        calls.append("unpack")
        return torch.tensor(values)

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = x * x
    y.sum().backward()
    assert x.grad.tolist() == [4.0, 6.0]
    assert calls == ["pack", "pack", "unpack", "unpack"]


def test_hooks_are_given_the_arguments_themselves():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    doubled = x * 2
    seen = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (seen.append(t), t)[1], lambda t: t):
        doubled * y  # what `self` and `other` stand for, by name: other first
        doubled.exp()
    assert seen[0] is y and seen[1] is doubled
    assert seen[1].grad_fn is doubled.grad_fn
    assert len(seen) == 3 and not seen[2].requires_grad  # a result, without the node that keeps it


def test_saved_tensors_hooks_are_checked_and_disabled():
    x = leaf(2.0)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: 5):
        y = x * x
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor"):
        y.sum().backward()
    with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"):
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                pass


def test_save_on_cpu():
    x = leaf(2.0)
    with torch.autograd.graph.save_on_cpu():
        y = x * x
    y.sum().backward()
    assert x.grad.tolist() == [4.0]


@pytest.mark.parametrize("name", ["eq", "logical_or", "bessel_j0", "airy_ai"])
def test_results_without_gradient_are_written_to_a_leaf(name: str) -> None:
    x = torch.tensor([0.5, 2.0])
    out = torch.zeros(2, requires_grad=True)
    function = getattr(torch, name, None) or getattr(torch.special, name)
    arguments = (x, x) if name in ("eq", "logical_or") else (x,)
    assert function(*arguments, out=out) is out
    assert out.grad_fn is None and out.requires_grad
    assert torch.equal(out.detach(), function(*arguments).to(torch.float32))


def test_gradients_that_need_not_lie_like_their_leaves():
    leaf = torch.ones(2, 3, requires_grad=True)
    weight = torch.arange(6.0).reshape(3, 2)

    def stride():
        leaf.grad = None
        (leaf.t().contiguous() * weight).sum().backward()
        assert torch.equal(leaf.grad, weight.t())
        return leaf.grad.stride()

    policy = torch.autograd.enforce_grad_layout_policy
    assert stride() == (3, 1)
    with policy(False):
        assert stride() == (1, 2)
        with policy(True):
            assert stride() == (3, 1)
        assert stride() == (1, 2)
    assert stride() == (3, 1)
    assert policy(False)(stride)() == (1, 2) and stride() == (3, 1)
