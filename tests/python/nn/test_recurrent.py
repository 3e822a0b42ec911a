"""Recurrent networks against plain loops in double precision."""

import pickle

import numpy as np
import pytest
import rushlight as torch
from rushlight import nn
from rushlight.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_packed_sequence
from rushlight.nn.utils.stateless import functional_call


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(kind, x, h, c, w_ih, w_hh, b_ih, b_hh):
    """The next (h, c) of one sequence."""
    given, own = w_ih @ x + b_ih, w_hh @ h + b_hh
    if kind == "LSTM":
        i, f, g, o = np.split(given + own, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c
    if kind == "GRU":
        (gr, gz, gn), (hr, hz, hn) = np.split(given, 3), np.split(own, 3)
        update = sigmoid(gz + hz)
        value = np.tanh(gn + sigmoid(gr + hr) * hn)
        return (1 - update) * value + update * h, c
    both = given + own
    return (np.maximum(both, 0) if kind == "relu" else np.tanh(both)), c


def layer(kind, steps, weights, size, reverse=False):
    """The outputs of one sequence (T, features), and the last state."""
    h, c = np.zeros(size), np.zeros(size)
    outputs = [None] * len(steps)
    for t in reversed(range(len(steps))) if reverse else range(len(steps)):
        h, c = step(kind, steps[t], h, c, *weights)
        outputs[t] = h
    return np.stack(outputs), h, c


def network(kind, x, module):
    """All layers over one sequence; the final h and c of each layer and direction."""
    weights = {name: value.detach().double().numpy() for name, value in module.named_parameters()}
    hs, cs = [], []
    for depth in range(module.num_layers):
        parts = []
        for suffix in ("", "_reverse") if module.bidirectional else ("",):
            names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            own = [weights[f"{name}_l{depth}{suffix}"] for name in names]
            out, h, c = layer(kind, x, own, module.hidden_size, bool(suffix))
            parts.append(out)
            hs.append(h)
            cs.append(c)
        x = np.concatenate(parts, -1)
    return x, np.stack(hs), np.stack(cs)


def make(kind, *sizes, **options):
    if kind in ("tanh", "relu"):
        return nn.RNN(*sizes, nonlinearity=kind, **options)
    return getattr(nn, kind)(*sizes, **options)


KINDS = ["tanh", "relu", "GRU", "LSTM"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("depth", "both"), [(1, False), (1, True), (3, True)])
def test_values(kind, depth, both):
    torch.manual_seed(0)
    module = make(kind, 3, 5, depth, bidirectional=both).double()
    x = torch.randn(6, 4, 3, dtype=torch.float64)
    output, state = module(x)
    hidden = state[0] if kind == "LSTM" else state
    for b in range(4):
        out, h, c = network(kind, x[:, b].numpy(), module)
        np.testing.assert_allclose(output[:, b].detach().numpy(), out, 1e-12, 1e-12)
        np.testing.assert_allclose(hidden[:, b].detach().numpy(), h, 1e-12, 1e-12)
        if kind == "LSTM":
            np.testing.assert_allclose(state[1][:, b].detach().numpy(), c, 1e-12, 1e-12)
    turned = make(kind, 3, 5, depth, bidirectional=both, batch_first=True).double()
    turned.load_state_dict(module.state_dict())
    assert torch.equal(turned(x.transpose(0, 1))[0], output.transpose(0, 1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("both", [False, True])
def test_packed(kind, both):
    torch.manual_seed(1)
    module = make(kind, 3, 4, 2, bidirectional=both).double()
    lengths = [6, 4, 4, 1]
    x = torch.randn(6, 4, 3, dtype=torch.float64)
    packed = pack_padded_sequence(x, lengths)
    output, state = module(packed)
    padded, found = pad_packed_sequence(output)
    assert found.tolist() == lengths
    hidden = state[0] if kind == "LSTM" else state
    for b, length in enumerate(lengths):
        out, h, _ = network(kind, x[:length, b].numpy(), module)
        np.testing.assert_allclose(padded[:length, b].detach().numpy(), out, 1e-12, 1e-12)
        np.testing.assert_allclose(hidden[:, b].detach().numpy(), h, 1e-12, 1e-12)
        assert not padded[length:, b].any()


@pytest.mark.parametrize("kind", KINDS)
def test_gradients(kind):
    torch.manual_seed(2)
    module = make(kind, 2, 3, 2, bidirectional=True).double()
    x = torch.randn(3, 2, 2, dtype=torch.float64, requires_grad=True)
    names = list(dict(module.named_parameters()))

    def call(x, *weights):
        return functional_call(module, dict(zip(names, weights)), (x,))[0]

    weights = [p.detach().clone().requires_grad_() for p in module.parameters()]
    assert torch.autograd.gradcheck(call, (x, *weights))
    small = make(kind, 2, 2).double()
    y = torch.randn(2, 1, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda y: small(y)[0], (y,))


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_a_cell_is_a_step(kind):
    torch.manual_seed(3)
    cell = getattr(nn, f"{kind}Cell")(3, 4)
    module = getattr(nn, kind)(3, 4)
    for name, value in cell.named_parameters():
        getattr(module, f"{name}_l0").data.copy_(value)
    x = torch.randn(2, 3)
    state = cell(x)
    output, _ = module(x[None])
    h = state[0] if kind == "LSTM" else state
    assert torch.allclose(h, output[0], atol=1e-6)
    single = cell(x[0])
    assert torch.allclose(single[0] if kind == "LSTM" else single, h[0], atol=1e-6)


def test_projection():
    module = nn.LSTM(3, 5, 2, proj_size=2, bidirectional=True)
    output, (h, c) = module(torch.randn(4, 2, 3))
    assert output.shape == (4, 2, 4) and h.shape == (4, 2, 2) and c.shape == (4, 2, 5)
    cell = nn.LSTMCell(3, 5)
    single = nn.LSTM(3, 5, proj_size=2)
    x, h, c = torch.randn(1, 2, 3), torch.randn(1, 2, 2), torch.randn(1, 2, 5)
    gates = x[0] @ single.weight_ih_l0.T + h[0] @ single.weight_hh_l0.T
    i, f, g, o = (gates + single.bias_ih_l0 + single.bias_hh_l0).chunk(4, 1)
    after = f.sigmoid() * c[0] + i.sigmoid() * g.tanh()
    wanted = (o.sigmoid() * after.tanh()) @ single.weight_hr_l0.T
    output, _ = single(x, (h, c))
    assert torch.allclose(output[0], wanted, atol=1e-6)
    assert cell.weight_hh.shape == (20, 5)


def test_dropout_between_layers_draws_the_stream_of_dropout():
    module = nn.GRU(3, 4, 3, dropout=0.5)
    x = torch.ones(2, 2, 3)
    torch.manual_seed(7)
    module(x)
    after = torch.rand(3)
    torch.manual_seed(7)
    for _ in range(2):
        nn.functional.dropout(torch.ones(2, 2, 4), 0.5)
    assert torch.equal(torch.rand(3), after)
    module.eval()
    assert torch.equal(module(x)[0], module(x)[0])


def test_packing_and_padding():
    a, b = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4.0])
    packed = pack_sequence([a, b])
    assert packed.data.tolist() == [1.0, 4.0, 2.0, 3.0]
    assert packed.batch_sizes.tolist() == [2, 1, 1]
    padded, lengths = pad_packed_sequence(
        packed, batch_first=True, padding_value=9.0, total_length=4
    )
    assert padded.tolist() == [[1.0, 2.0, 3.0, 9.0], [4.0, 9.0, 9.0, 9.0]]
    assert lengths.tolist() == [3, 1]
    again, _ = pad_packed_sequence(pack_sequence([b, a], enforce_sorted=False))
    assert again.T.tolist() == [[4.0, 0.0, 0.0], [1.0, 2.0, 3.0]]


def test_without_a_device():
    output, (h, c) = nn.LSTM(3, 4, device="meta")(torch.empty(5, 2, 3, device="meta"))
    assert output.shape == (5, 2, 4) and h.shape == c.shape == (1, 2, 4)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_compiled_bits(kind):
    torch.manual_seed(4)
    module = getattr(nn, kind)(3, 4, 2, bidirectional=True)
    x = torch.randn(3, 2, 3)
    output, _ = module(x)
    output.square().sum().backward()
    wanted = [p.grad.clone() for p in module.parameters()]
    module.zero_grad()
    made, _ = torch.compile(module)(x)
    made.square().sum().backward()
    assert torch.equal(made, output)
    assert all(torch.equal(p.grad, g) for p, g in zip(module.parameters(), wanted))


def test_state_has_what_other_readers_of_pickles_look_for():
    layer = nn.LSTM(2, 3)
    state = layer.__getstate__()
    assert state["_flat_weights_names"] == [name for name, _ in layer.named_parameters()]
    assert all(a is b for a, b in zip(state["_flat_weights"], layer.parameters(), strict=True))
    again = pickle.loads(pickle.dumps(layer))
    assert set(vars(again)) == set(vars(layer))
    assert torch.equal(again.all_weights[0][0], layer.all_weights[0][0])
    again.weight_ih_l0 = nn.Parameter(torch.zeros(12, 2))
    assert again.all_weights[0][0] is again.weight_ih_l0
