"""Bags of embeddings against plain sums, means and maxima of rows."""

import numpy as np
import pytest
import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F

INDICES = [3, 0, 3, 5, 1, 1, 4]
OFFSETS = [0, 3, 3, 5]
BAGS = [[3, 0, 3], [], [5, 1], [1, 4]]


def table(dtype=torch.float64):
    torch.manual_seed(0)
    return torch.randn(6, 5, dtype=torch.float64).to(dtype).requires_grad_()


def expected(weight, bags, mode, padding=None):
    made = np.zeros((len(bags), weight.shape[1]))
    for b, bag in enumerate(bags):
        rows = weight[[i for i in bag if i != padding]]
        if len(rows):
            made[b] = {"sum": rows.sum, "mean": rows.mean, "max": rows.max}[mode](axis=0)
    return made


@pytest.mark.parametrize("padding", [None, 1, -3])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_values_and_gradients(mode, padding):
    weight = table()
    arguments = {"mode": mode, "padding_idx": padding}
    left_out = None if padding is None else padding % 6

    def bag(weight):
        return F.embedding_bag(torch.tensor(INDICES), weight, torch.tensor(OFFSETS), **arguments)

    wanted = expected(weight.detach().numpy(), BAGS, mode, left_out)
    np.testing.assert_allclose(bag(weight).detach().numpy(), wanted, 1e-12, 1e-12)
    assert torch.autograd.gradcheck(bag, weight)
    if mode != "max":
        assert torch.autograd.gradgradcheck(bag, weight)
    for dtype, near in ((torch.float32, 1e-6), (torch.bfloat16, 0.02), (torch.float16, 0.003)):
        made = bag(weight.detach().to(dtype))
        assert made.dtype == dtype
        np.testing.assert_allclose(made.double().numpy(), wanted, near, near)


def test_forms_of_input():
    weight = table()
    rows = torch.tensor([[1, 2], [4, 4]], dtype=torch.int32)
    flat = F.embedding_bag(rows.flatten(), weight, torch.tensor([0, 2], dtype=torch.int32))
    assert torch.equal(F.embedding_bag(rows, weight), flat)
    last = F.embedding_bag(
        torch.tensor(INDICES), weight, torch.tensor([0, 3, 6]), include_last_offset=True, mode="sum"
    )
    assert torch.allclose(last[1], weight[[5, 1, 1]].sum(0))
    assert last.shape == (2, 5)


def test_weights_of_samples():
    weight = table()
    scales = torch.arange(1.0, 8.0, dtype=torch.float64).requires_grad_()

    def bag(weight, scales):
        given = torch.tensor(INDICES), weight, torch.tensor(OFFSETS)
        return F.embedding_bag(*given, mode="sum", per_sample_weights=scales, padding_idx=0)

    third = 4 * weight[5] + 5 * weight[1]
    assert torch.allclose(bag(weight, scales)[2], third)
    assert torch.autograd.gradcheck(bag, (weight, scales))
    assert torch.autograd.gradgradcheck(bag, (weight, scales))


def test_gradient_by_frequency():
    weight = table()
    made = F.embedding_bag(
        torch.tensor(INDICES), weight, torch.tensor(OFFSETS), scale_grad_by_freq=True, mode="sum"
    )
    made.sum().backward()
    assert weight.grad[:, 0].tolist() == [1, 1, 0, 1, 1, 1]


def test_places_of_maxima():
    """Values of PyTorch 2.13."""
    weight = torch.tensor([[1.0, 9.0], [2.0, 3.0], [2.0, 1.0]])
    made = torch.embedding_bag(weight, torch.tensor([1, 2, 0]), torch.tensor([0, 2, 2]), mode=2)
    assert made[0].tolist() == [[2, 3], [0, 0], [1, 9]]
    assert made[1].tolist() == [0, 0, 2] and made[2].tolist() == [2, 0, 1]
    assert made[3].tolist() == [[1, 1], [0, 0], [0, 0]]


def test_threads_do_not_show():
    torch.manual_seed(0)
    weight = torch.randn(500, 33, requires_grad=True)
    indices, offsets = torch.randint(500, (20000,)), torch.arange(0, 20000, 10)
    found = set()
    threads = torch.get_num_threads()
    try:
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            made = F.embedding_bag(indices, weight, offsets)
            (grad,) = torch.autograd.grad(made.square().sum(), weight)
            found.add(made.detach().numpy().tobytes() + grad.numpy().tobytes())
    finally:
        torch.set_num_threads(threads)
    assert len(found) == 1


def test_compiled_and_module():
    torch.manual_seed(0)
    layer = nn.EmbeddingBag(6, 5, padding_idx=2, max_norm=1.0)
    assert repr(layer) == "EmbeddingBag(6, 5, max_norm=1.0, mode='mean', padding_idx=2)"
    made = layer(torch.tensor([[0, 1], [2, 3]]))
    assert (made.norm(dim=1) <= 1.0001).all() and layer.weight[2].abs().sum() == 0
    weight, given = table().detach(), (torch.tensor(INDICES), torch.tensor(OFFSETS))
    compiled = torch.compile(lambda w, i, o: F.embedding_bag(i, w * 2, o))
    assert torch.equal(compiled(weight, *given), F.embedding_bag(given[0], weight * 2, given[1]))


ERRORS = [
    ([1, 7], [0], {}, "Index 1 of input takes value 7 which is not in the valid range"),
    ([1, -1], [0], {}, "takes value -1"),
    ([1, 2], [1], {}, r"offsets\[0\] has to be 0"),
    ([1, 2], [0, 5], {}, "can not be greater than input's length 2"),
    ([1, 2, 3], [0, 2, 1], {}, "must not decrease"),
    ([], [], {"include_last_offset": True}, "should be at least 1"),
]


@pytest.mark.parametrize("indices, offsets, options, text", ERRORS)
def test_errors(indices, offsets, options, text):
    given = torch.tensor(indices, dtype=torch.int64), torch.tensor(offsets, dtype=torch.int64)
    with pytest.raises(RuntimeError, match=text):
        F.embedding_bag(given[0], table(), given[1], **options)
