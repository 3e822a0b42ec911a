"""The one node that runs an f32 LSTM layer, against steps of cells."""

import pytest
import rushlight as torch

layer = torch.ops.aten._lstm_layer
F64 = {"dtype": torch.float64}


def arguments(steps, batch, hidden, **options):
    products = torch.randn(steps, batch, 4 * hidden, **options)
    state = [torch.randn(batch, hidden, **options) for _ in range(2)]
    return products, *state, torch.randn(4 * hidden, hidden, **options)


def by_cells(products, h, c, w_hh, reverse):
    steps = range(len(products))
    outputs, cells = [None] * len(products), [None] * len(products)
    for t in reversed(steps) if reverse else steps:
        i, f, g, o = (products[t] + h @ w_hh.T).chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        outputs[t], cells[t] = h, c
    return torch.stack(outputs), torch.stack(cells)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (3, 2, 5), (4, 17, 33), (2, 3, 300)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_and_gradients(sizes, dtype, reverse):
    torch.manual_seed(0)
    given = arguments(*sizes, dtype=dtype)
    close = 1e-12 if dtype == torch.float64 else 2e-5
    mine = [x.clone().requires_grad_() for x in given]
    other = [x.clone().requires_grad_() for x in given]
    output, cells, gates = layer(*mine, reverse)
    wanted, wanted_cells = by_cells(*other, reverse)
    torch.testing.assert_close(output, wanted, rtol=close, atol=close)
    torch.testing.assert_close(cells, wanted_cells, rtol=close, atol=close)
    assert gates.shape == given[0].shape
    above, above_cells = torch.randn_like(output), torch.randn_like(cells)
    got = torch.autograd.grad([output, cells], mine, [above, above_cells])
    want = torch.autograd.grad([wanted, wanted_cells], other, [above, above_cells])
    for x, y in zip(got, want):
        torch.testing.assert_close(x, y, rtol=20 * close, atol=20 * close * y.abs().max().item())


@pytest.mark.parametrize("reverse", [False, True])
def test_gradients_of_every_result_and_of_gradients(reverse):
    torch.manual_seed(1)
    given = [x.requires_grad_() for x in arguments(3, 2, 2, **F64)]
    assert torch.autograd.gradcheck(lambda *x: layer(*x, reverse), given)
    assert torch.autograd.gradcheck(lambda *x: layer(*x, reverse)[:2], given)
    assert torch.autograd.gradgradcheck(lambda *x: layer(*x, reverse), given)


def test_threads_do_not_change_bits():
    torch.manual_seed(2)
    given = [x.requires_grad_() for x in arguments(5, 40, 150)]
    before = torch.get_num_threads()
    seen = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        output, cells, _ = layer(*given, False)
        seen.append([output, *torch.autograd.grad(output.sum() + cells.sum(), given)])
    torch.set_num_threads(before)
    for other in seen[1:]:
        assert all(torch.equal(x, y) for x, y in zip(seen[0], other))


def test_strided_and_empty_arguments():
    torch.manual_seed(3)
    products, h, c, w = arguments(3, 4, 5)
    turned = [x.transpose(0, 1).contiguous().transpose(0, 1) for x in (products, h, c, w)]
    for x, y in zip(layer(products, h, c, w, False), layer(*turned, False)):
        assert torch.equal(x, y)
    output, cells, gates = layer(*arguments(3, 0, 5), False)
    assert output.shape == cells.shape == (3, 0, 5) and gates.shape == (3, 0, 20)


def test_special_values_go_through():
    products = torch.tensor([0.0, 200.0, -200.0, float("inf"), float("nan")]).reshape(5, 1, 1)
    output, cells, gates = layer(
        products.expand(5, 1, 4), torch.zeros(1, 1), torch.ones(1, 1), torch.zeros(4, 1), False
    )
    assert torch.equal(gates[1].flatten(), torch.ones(4))
    assert torch.equal(gates[2].flatten(), torch.tensor([0.0, 0.0, -1.0, 0.0]))
    assert torch.equal(gates[3].flatten(), torch.ones(4)) and gates[4].isnan().all()
    assert cells[:4].isfinite().all() and output[4].isnan().all()


def test_a_module_is_one_node_where_pytorch_s_is():
    module = torch.nn.LSTM(3, 4)
    assert module(torch.randn(5, 2, 3))[0].grad_fn.name() == "MkldnnRnnLayerBackward0"
    x = torch.randn(5, 2, 3, **F64)
    assert module.double()(x)[0].grad_fn.name() == "StackBackward0"
