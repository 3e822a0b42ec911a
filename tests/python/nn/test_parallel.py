"""Data parallelism in one process; gradients of convolutions as functions."""

import collections

import pytest
import rushlight as torch
from rushlight import nn
from rushlight.nn import grad, parallel

Pair = collections.namedtuple("Pair", "a b")
DEVICES = ["cpu", "cpu"]


def test_without_accelerators_the_module_runs():
    layer = nn.Linear(2, 3)
    runner = nn.DataParallel(layer)
    rows = torch.rand(4, 2)
    assert torch.equal(runner(rows), layer(rows))
    assert runner.device_ids == [] and runner.module is layer
    assert sorted(runner.state_dict()) == ["module.bias", "module.weight"]
    assert torch.equal(parallel.data_parallel(layer, rows), layer(rows))


def test_trees_are_cut_and_joined():
    rows = torch.arange(6.0).view(3, 2)
    parts = parallel.scatter({"x": rows, "n": 3, "p": Pair(rows, [rows])}, DEVICES)
    assert len(parts) == 2 and [part["n"] for part in parts] == [3, 3]
    assert parts[0]["x"].tolist() == [[0, 1], [2, 3]] and parts[1]["p"].b[0].tolist() == [[4, 5]]
    joined = parallel.gather([{"x": p["x"], "p": p["p"]} for p in parts], "cpu")
    assert torch.equal(joined["x"], rows) and torch.equal(joined["p"].b[0], rows)
    numbers = parallel.gather([torch.tensor(1.0), torch.tensor(2.0)], "cpu")
    assert numbers.tolist() == [1, 2]
    inputs, keywords = parallel.scatter_gather.scatter_kwargs((rows,), {"k": 1}, DEVICES)
    assert len(inputs) == len(keywords) == 2 and keywords[1] == {"k": 1}


def test_replicas_send_gradients_to_the_module():
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    rows = torch.rand(4, 2)
    replicas = parallel.replicate(model, DEVICES)
    assert replicas[0][0] is not model[0]
    outputs = parallel.parallel_apply(replicas, parallel.scatter(rows, DEVICES))
    result = parallel.gather(outputs, "cpu")
    torch.testing.assert_close(result, model(rows))
    result.sum().backward()
    found = model[0].weight.grad.clone()
    model.zero_grad()
    model(rows).sum().backward()
    torch.testing.assert_close(found, model[0].weight.grad)
    detached = parallel.replicate(model, DEVICES, detach=True)
    assert not detached[0](rows).requires_grad


def test_errors_of_replicas_are_raised():
    layer = nn.Linear(2, 2)
    with pytest.raises(RuntimeError, match="shape"):
        parallel.parallel_apply([layer, layer], [torch.ones(1, 2), torch.ones(1, 5)])
    with pytest.raises(AssertionError, match="is not equal to the number of inputs"):
        parallel.parallel_apply([layer], [])


@pytest.mark.parametrize("count", [1, 2, 3])
def test_gradients_of_convolutions(count):
    convolution = getattr(nn.functional, f"conv{count}d")
    x = torch.rand(2, 4, *[6] * count, requires_grad=True)
    weight = torch.rand(6, 2, *[3] * count, requires_grad=True)
    result = convolution(x, weight, stride=2, padding=1, groups=2)
    seed = torch.rand_like(result)
    wanted = torch.autograd.grad(result, (x, weight), seed)
    options = {"stride": 2, "padding": 1, "groups": 2}
    of_input = getattr(grad, f"conv{count}d_input")(x.shape, weight.detach(), seed, **options)
    of_weight = getattr(grad, f"conv{count}d_weight")(x.detach(), weight.shape, seed, **options)
    torch.testing.assert_close(of_input, wanted[0])
    torch.testing.assert_close(of_weight, wanted[1])
