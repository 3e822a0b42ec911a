"""The memory budget: activations are made again in backward; only memory and time change."""

import gc
import threading
import weakref

import numpy as np
import pytest
import rushlight as torch
import rushlight.nn.functional as F
from rushlight import _C, nn

config = torch._functorch.config
WIDTH = 64


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


def blocks(count=4):
    torch.manual_seed(0)
    return nn.Sequential(*(Block() for _ in range(count)))


def remade():
    """How many results were not kept so far."""
    return _C._compile_statistics()["remade"]


def compiled(function, budget=0.0):
    return torch.compile(function, options={"activation_memory_budget": budget})


def gradients(function, *inputs, between=None):
    """The gradients of the sum of function(*inputs), and how many results were made again."""
    inputs = [x.detach().clone().requires_grad_(x.is_floating_point()) for x in inputs]
    before = remade()
    out = function(*inputs).sum()
    if between is not None:
        between(*inputs)
    out.backward()
    return [x.grad for x in inputs], remade() - before


def assert_same(function, *inputs, between=None, least=1):
    """Compiled with no budget, the function has eager's gradients, though it keeps less."""
    expected, _ = gradients(function, *inputs, between=between)
    found, count = gradients(compiled(function), *inputs, between=between)
    assert count >= least
    for a, b in zip(expected, found):
        assert torch.equal(a, b)


def chain(x):
    return (x.sin().cos().tanh() * x).exp()


def normalised(x, w):
    return F.gelu(F.layer_norm(x @ w, (WIDTH,))) @ w


def test_peak_falls_with_the_budget():
    model = blocks()
    x = torch.randn(512, WIDTH)
    results = {}
    for budget in (1.0, 0.5, 0.0):
        function = compiled(model, budget)
        for _ in range(2):
            model.zero_grad()
            before = _C._memory_statistics()["live_bytes"]
            loss = function(x).square().mean()
            kept = _C._memory_statistics()["live_bytes"] - before
            _C._memory_reset_peak()
            loss.backward()
            peak = _C._memory_statistics()["peak_bytes"] - before
        results[budget] = kept, peak, [p.grad.clone() for p in model.parameters()]
    for at in (0, 1):
        assert results[0.0][at] < results[0.5][at] < results[1.0][at]
    # Of 10 widths a block (x, its norm, 4 before gelu, 4 after), 5 may be made again.
    assert results[0.0][0] < 0.6 * results[1.0][0]
    assert 0.7 * results[1.0][0] < results[0.5][0] < 0.85 * results[1.0][0]
    for budget in (0.5, 0.0):
        for a, b in zip(results[1.0][2], results[budget][2]):
            assert torch.equal(a, b)


def test_what_costs_nothing_is_made_again_without_a_budget(monkeypatch):
    linear = nn.Linear(WIDTH, 256)

    def gelu(x):
        u = linear(x)
        return (0.5 * u * (1 + torch.tanh(0.79788 * (u + 0.044715 * u * u * u)))).sum()

    x = torch.randn(512, WIDTH, requires_grad=True)
    results = []
    for off in (True, False):
        if off:
            monkeypatch.setenv("RUSHLIGHT_PASSES", "-recomputation")
        else:
            monkeypatch.delenv("RUSHLIGHT_PASSES")
        torch._dynamo.reset()
        count, before = remade(), _C._memory_statistics()["live_bytes"]
        loss = torch.compile(gelu)(x)
        kept = _C._memory_statistics()["live_bytes"] - before
        results.append((kept, torch.autograd.grad(loss, x)[0]))
        assert (remade() > count) == (not off)
    assert results[1][0] < 0.6 * results[0][0]
    assert torch.equal(results[0][1], results[1][1])
    torch._dynamo.reset()  # a plan serves other sizes too
    count = remade()  # small results stay in the cache; what x holds is not lent
    torch.compile(gelu)(x[:8]).backward()
    torch.compile(lambda x: ((x * 2).relu() * x).sum())(torch.randn(512, 256, requires_grad=True))
    assert remade() == count


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_values(dtype):
    x = torch.randn(33, WIDTH, dtype=dtype)
    w = torch.randn(WIDTH, WIDTH, dtype=dtype) / 8
    assert_same(chain, x)
    assert_same(normalised, x, w, least=2)
    assert_same(lambda x, w: (x @ w).softmax(-1).log() @ w, x, w)
    assert_same(lambda x, w: F.silu((x @ w) * 2) @ w, x, w)
    assert_same(lambda x: (x.sin().view(-1, 2).cos().t() * 2).exp()[1:].tanh(), x)


def test_a_whole_step_in_one_capture():
    model = blocks(2)
    x = torch.randn(64, WIDTH)

    def step():
        model.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        return loss

    loss = step()
    expected = [p.grad.clone() for p in model.parameters()]
    before = remade()
    assert torch.equal(torch.compile(step, fullgraph=True)(), loss) and remade() == before
    with config.patch(activation_memory_budget=0.0):
        assert torch.equal(torch.compile(step, fullgraph=True)(), loss) and remade() > before
    assert all(torch.equal(p.grad, g) for p, g in zip(model.parameters(), expected))


def write_data(x, *rest):
    x.data.add_(1)


def write_out(x, *rest):
    torch.add(x.detach(), 1, out=x.data)


def write_compiled(x, *rest):
    torch.compile(lambda: x.data.mul_(3))()


@pytest.mark.parametrize("between", [write_data, write_out, write_compiled])
def test_inputs_written_before_backward(between):
    """Eager's gradients are of what was saved; what is made again must not see the write."""
    x = torch.randn(8, WIDTH)
    assert_same(lambda x: (x + 1).sin().cos(), x, between=between)
    assert_same(lambda x: (x * 2).exp().tanh() + x, x, between=between)


def test_biases_written_before_backward():
    """A bias is not saved, so writing it is no error in eager."""
    torch.manual_seed(0)
    norm, linear = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)
    x = torch.randn(8, WIDTH)
    found = []
    for function in (nn.Sequential(norm, linear), compiled(nn.Sequential(norm, linear))):
        linear.weight.grad = None
        norm.bias.data.zero_()
        before = remade()
        out = function(x).sum()
        assert (remade() > before) == (len(found) == 1)
        with torch.no_grad():
            norm.bias.add_(1)
        out.backward()
        found.append(linear.weight.grad)
    assert torch.equal(*found)


def test_saved_inputs_written_are_errors():
    x = torch.randn(8, WIDTH, requires_grad=True)
    out = compiled(lambda x: x.sin().cos().exp().sum())(x)
    with torch.no_grad():
        x.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_arrays_over_inputs():
    """What NumPy may write is read by no recipe."""
    array = np.ones((4, 4), np.float32)
    x = torch.from_numpy(array).requires_grad_()
    out = compiled(lambda x: (x * 2).exp().sin().sum())(x)
    array[:] = 7
    out.backward()
    y = torch.ones(4, 4, requires_grad=True)
    (y * 2).exp().sin().sum().backward()
    assert torch.equal(x.grad, y.grad)

    z = torch.ones(4, 4, requires_grad=True)
    array = z.detach().numpy()
    out = compiled(lambda x: (x * 2).exp().sin().sum())(z)
    array[:] = 7
    out.backward()
    assert torch.equal(z.grad, y.grad)


def test_backward_twice_and_double():
    x = torch.randn(16, WIDTH, dtype=torch.float64, requires_grad=True)
    results = []
    for function in (chain, compiled(chain)):
        out = function(x).sum()
        first = torch.autograd.grad(out, x, retain_graph=True)[0]
        second = torch.autograd.grad(out, x, retain_graph=True)[0]
        third = torch.autograd.grad(out, x, create_graph=True)[0]
        fourth = torch.autograd.grad(third.square().sum(), x)[0]
        assert torch.equal(first, second) and torch.equal(first, third)
        results.append((first, fourth))
    for a, b in zip(*results):
        assert torch.equal(a, b)


def test_a_freed_graph():
    x = torch.randn(16, WIDTH, requires_grad=True)
    out = compiled(chain)(x).sum()
    out.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        out.backward()
    before = _C._memory_statistics()["live_bytes"]
    for _ in range(3):
        out = compiled(chain)(x).sum()
        del out
    gc.collect()
    assert _C._memory_statistics()["live_bytes"] <= before + 4096


def test_hooks_and_saved_tensors_see_values():
    x = torch.randn(16, WIDTH, requires_grad=True)
    eager = x.sin().cos().exp().sum()
    out = compiled(lambda x: x.sin().cos().exp().sum())(x)
    node, expected = out.grad_fn, eager.grad_fn
    values = []
    while node.next_functions:
        for name in ("_saved_self", "_saved_result"):
            if hasattr(node, name):
                assert torch.equal(getattr(node, name), getattr(expected, name))
                values.append(name)
        node, expected = node.next_functions[0][0], expected.next_functions[0][0]
    assert len(values) == 3
    seen = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: seen.append(t) or t):
        out = compiled(chain)(x).sum()
    out.backward()
    assert len(seen) > 2


def test_results_that_are_seen_are_kept():
    kept = []

    def function(x):
        y = x.sin()
        kept.append(y)
        return y.cos().sum()

    x = torch.randn(4, 4, requires_grad=True)
    before = remade()
    out = compiled(function)(x)
    assert remade() == before
    out.backward()
    assert torch.equal(kept[0], x.sin())


def test_partial_backward_in_other_threads():
    x = torch.randn(64, WIDTH, requires_grad=True)
    y = torch.randn(64, WIDTH, requires_grad=True)

    def function(x, y):
        return ((x * 2).sin().exp() * (y + 1).cos().tanh()).sum()

    expected = torch.autograd.grad(function(x, y), (x, y))
    for _ in range(20):
        out = compiled(function)(x, y)
        found = [None, None]

        def work(i, out=out, found=found):
            found[i] = torch.autograd.grad(out, (x, y)[i], retain_graph=True)[0]

        threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert torch.equal(found[0], expected[0]) and torch.equal(found[1], expected[1])


def test_threads_that_share_weights():
    model = blocks(2)
    function = compiled(model)
    inputs = [torch.randn(32, WIDTH, requires_grad=True) for _ in range(4)]
    expected = [torch.autograd.grad(model(x).sum(), x)[0] for x in inputs]
    failures = []

    def work(i):
        for step in range(10):
            out = function(inputs[i]).sum()
            if step % 3 == i % 3:
                model[0].norm.bias.sum().item()  # has what reads it made
            if not torch.equal(torch.autograd.grad(out, inputs[i])[0], expected[i]):
                failures.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_checkpoint():
    from rushlight.utils.checkpoint import checkpoint

    model = blocks(2)
    x = torch.randn(32, WIDTH, requires_grad=True)

    def function(x):
        return checkpoint(model[1], model[0](x), use_reentrant=False)

    expected = torch.autograd.grad(function(x).sum(), x)[0]
    assert torch.equal(torch.autograd.grad(compiled(function)(x).sum(), x)[0], expected)


def test_random_results_are_kept():
    x = torch.randn(64, WIDTH, requires_grad=True)
    results = []
    for function in (chain, compiled(chain)):
        torch.manual_seed(3)
        out = F.dropout(function(F.dropout(x, 0.5)), 0.5).sum()
        state = torch.get_rng_state()
        results.append((torch.autograd.grad(out, x)[0], state))
        assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(results[0][0], results[1][0]) and torch.equal(results[0][1], results[1][1])


def test_tensors_die_in_time():
    """What autograd saved is held no longer than the call."""
    died = []

    def function(x):
        y = x.sin()
        weakref.finalize(y, died.append, 1)
        return y.cos().sum()

    x = torch.randn(4, 4, requires_grad=True)
    out = compiled(function)(x)
    out.backward()
    del out
    gc.collect()
    assert died == [1]


def test_cpp_and_python_settings_are_checked():
    with pytest.raises(RuntimeError, match="valid ranges for memory budget are 0 <= m <= 1"):
        torch.compile(chain, options={"activation_memory_budget": 1.5})
    with pytest.raises(RuntimeError, match="provided value is 'half'"):
        torch.compile(chain, options={"activation_memory_budget": "half"})
    with config.patch(activation_memory_budget=-1.0):
        with pytest.raises(RuntimeError, match="valid ranges for memory budget"):
            torch.compile(chain)(torch.ones(2))


def test_the_global_budget_is_read_at_each_call():
    function = torch.compile(chain)
    x = torch.randn(8, 8, requires_grad=True)
    counts = []
    for budget in (1.0, 0.0, 1.0):
        with config.patch(activation_memory_budget=budget):
            before = remade()
            function(x).sum().backward()
            counts.append(remade() - before)
    assert counts[0] == 0 and counts[1] > 0 and counts[2] == 0


def test_the_pass_can_be_switched_off(monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_PASSES", "-recomputation")
    torch._dynamo.reset()
    before = remade()
    x = torch.randn(8, 8, requires_grad=True)
    compiled(chain)(x).sum().backward()
    assert remade() == before
    torch._dynamo.reset()


# ---- Regions -----------------------------------------------------------------------------------

region = torch.autograd.graph.region_activation_memory_budget


@pytest.mark.parametrize("fullgraph", [False, True])
def test_a_region_has_a_budget_of_its_own(fullgraph):
    def parted(x):
        x = chain(x)
        with region(0.0):
            x = chain(x)
        return chain(x)

    x = torch.rand(64, WIDTH)
    expected, _ = gradients(lambda x: chain(chain(chain(x))), x)
    found, remade_in_region = gradients(torch.compile(parted, fullgraph=fullgraph), x)
    assert torch.equal(expected[0], found[0])
    _, remade_nowhere = gradients(torch.compile(lambda x: chain(chain(chain(x)))), x)
    _, remade_everywhere = gradients(compiled(lambda x: chain(chain(chain(x)))), x)
    assert remade_nowhere < remade_in_region < remade_everywhere


def test_a_region_keeps_all_under_a_smaller_budget():
    def kept(x):
        with region(1.0):
            return chain(x)

    x = torch.rand(64, WIDTH)
    expected, _ = gradients(chain, x)
    found, count = gradients(compiled(kept), x)
    assert torch.equal(expected[0], found[0])
    assert count < gradients(compiled(chain), x)[1]


def test_regions_nest_and_end_with_an_error():
    def f(x):
        with region(0.0):
            try:
                with region(1.0):
                    x = x.sin()
                    raise KeyError
            except KeyError:
                x = x.cos()
            x = chain(x)
        return x

    x = torch.rand(8, WIDTH)
    expected, _ = gradients(lambda x: chain(x.sin().cos()), x)
    found, count = gradients(torch.compile(f), x)
    assert torch.equal(expected[0], found[0]) and count > 0


def test_region_mistakes():
    with pytest.raises(RuntimeError, match="can only be used inside a torch.compile region"):
        with region(0.5):
            pass
    with pytest.raises(ValueError, match=r"must be in \[0, 1\], got 2"):
        with region(2):
            pass
    with pytest.raises(TypeError, match="expects a float, got str"):
        with region("x"):
            pass
