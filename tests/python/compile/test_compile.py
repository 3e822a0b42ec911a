"""torch.compile of functions and modules: forms, state, exceptions, threads, generators."""

import asyncio
import copy
import pickle
import threading
import time

import numpy as np
import pytest
import rushlight as torch
from rushlight import _C, nn


def segments_of(function):
    """The result of a call, and how many segments ran for it."""
    before = _C._compile_statistics()["segments"]
    result = function()
    return result, _C._compile_statistics()["segments"] - before


def chain(x):
    return (x.sin() + 1).exp() * 2


def test_function():
    x = torch.randn(7)
    compiled = torch.compile(chain)
    result, segments = segments_of(lambda: compiled(x))
    assert torch.equal(result, chain(x))
    assert segments == 1
    assert compiled.__name__ == "chain" and compiled.__wrapped__ is chain


@pytest.mark.parametrize("decorator", [torch.compile, torch.compile(), torch.compile(dynamic=True)])
def test_decorator(decorator):
    @decorator
    def f(x, *, scale=2):
        """Documented."""
        return x * scale

    assert f(torch.ones(2), scale=3).tolist() == [3, 3]
    assert f.__doc__ == "Documented."


def test_method():
    class Thing:
        weight = 3

        @torch.compile
        def times(self, x):
            return x * self.weight

    assert Thing().times(torch.ones(2)).tolist() == [3, 3]
    assert torch.compile(Thing().times)(torch.ones(1)).tolist() == [3]


def test_callable_object():
    class Double:
        def __call__(self, x):
            return x + x

    assert torch.compile(Double())(torch.ones(2)).tolist() == [2, 2]


def test_builtin():
    assert torch.equal(torch.compile(torch.sin)(torch.ones(3)), torch.ones(3).sin())


def test_class_compiles_its_calls():
    class Shift(nn.Module):
        def forward(self, x):
            return x + 1

    assert torch.compile(Shift) is Shift
    result, segments = segments_of(lambda: Shift()(torch.ones(2)))
    assert result.tolist() == [2, 2] and segments == 1


def test_results_of_any_structure():
    @torch.compile
    def f(x):
        return {"a": [x + 1, (x * 2,)], "n": 3}, None

    found, nothing = f(torch.ones(2))
    assert found["a"][0].tolist() == [2, 2] and found["a"][1][0].tolist() == [2, 2]
    assert found["n"] == 3 and nothing is None


def test_disable_argument():
    assert torch.compile(chain, disable=True) is chain
    assert torch.compile(disable=True)(chain) is chain


# ---- Modules -----------------------------------------------------------------------------------


def network():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def test_module():
    module, x = network(), torch.randn(3, 4)
    compiled = torch.compile(module)
    result, segments = segments_of(lambda: compiled(x))
    assert torch.equal(result, module(x)) and segments == 1
    assert compiled._orig_mod is module
    assert isinstance(compiled, nn.Module) and not isinstance(compiled, nn.Sequential)
    assert type(compiled).__name__ == "OptimizedModule"
    assert len(compiled) == 3


def test_module_state():
    module = network()
    compiled = torch.compile(module)
    names = [f"_orig_mod.{name}" for name in module.state_dict()]
    assert list(compiled.state_dict()) == names
    assert [name for name, _ in compiled.named_parameters()] == names
    compiled.load_state_dict(network().state_dict() and compiled.state_dict())
    compiled.eval()
    assert not module.training and not compiled.training
    module.train()
    assert compiled.training


def test_module_attributes():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0
            self.register_buffer("total", torch.zeros(()))

        def forward(self, x):
            self.calls += 1
            self.total += x.sum()
            return x * self.calls

        def reset(self):
            self.calls = 0

    module = Counter()
    compiled = torch.compile(module)
    assert compiled(torch.ones(2)).tolist() == [1, 1]
    assert compiled(torch.ones(2)).tolist() == [2, 2]
    assert module.calls == compiled.calls == 2 and module.total.item() == 4
    compiled.reset()
    assert module.calls == 0
    compiled.extra = 5
    assert module.extra == 5
    del compiled.extra
    assert not hasattr(module, "extra")
    assert "reset" in dir(compiled)
    with pytest.raises(AttributeError, match="missing"):
        compiled.missing


def test_module_copies():
    compiled, x = torch.compile(network()), torch.randn(2, 4)
    for other in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        assert type(other) is type(compiled)
        result, segments = segments_of(lambda other=other: other(x))
        assert torch.equal(result, compiled(x)) and segments == 1
        assert other._orig_mod is not compiled._orig_mod


def test_module_hooks_run_in_capture():
    module = nn.Linear(2, 2)
    seen = []
    module.register_forward_hook(lambda *_: seen.append(torch.compiler.is_compiling()))
    torch.compile(module)(torch.ones(1, 2))
    assert seen == [True]


def test_in_place():
    module, x = network(), torch.randn(3, 4)
    expected = module(x)
    names = list(module.state_dict())
    assert module.compile() is None
    result, segments = segments_of(lambda: module(x))
    assert torch.equal(result, expected) and segments == 1
    assert list(module.state_dict()) == names and isinstance(module, nn.Sequential)
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert segments_of(lambda other=other: other(x))[1] == 0


def test_in_place_with_hooks():
    module = nn.Linear(2, 2)
    module.register_forward_hook(lambda module, args, output: output + 1)
    expected = module(torch.ones(1, 2))
    module.compile()
    assert torch.equal(module(torch.ones(1, 2)), expected)


def test_training_is_eager_s():
    plain = network()
    compiled = torch.compile(copy.deepcopy(plain))
    x, y = torch.randn(16, 4), torch.randn(16, 2)

    def train(module):
        optimizer = torch.optim.AdamW(module.parameters(), lr=0.01)
        losses = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(module(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    assert train(plain) == train(compiled)
    for a, b in zip(plain.parameters(), compiled.parameters()):
        assert torch.equal(a, b)


def test_whole_step():
    plain = network()
    other = copy.deepcopy(plain)
    x = torch.randn(5, 4)

    def make(module):
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)

        def step():
            optimizer.zero_grad()
            loss = module(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        return step

    eager, compiled = make(plain), torch.compile(make(other))
    assert [eager().item() for _ in range(4)] == [compiled().item() for _ in range(4)]


# ---- Any Python --------------------------------------------------------------------------------


def test_values_end_segments():
    @torch.compile
    def f(x):
        y = x * 2
        if y.sum() > 0:
            y = y + 1
        scale = y[0].item()
        return y * scale, float(y.mean()), str(y), y.tolist(), y.numpy().copy()

    y, mean, text, listed, array = f(torch.ones(2))
    assert y.tolist() == [9, 9] and mean == 3 and "3., 3." in text and listed == [3, 3]
    assert np.array_equal(array, [3, 3])


def test_data_dependent_shapes():
    @torch.compile
    def f(x):
        return x[x > 0].sum() + x.nonzero().shape[0]

    assert f(torch.tensor([1.0, -1.0, 2.0])).item() == 6


def test_reads_after_writes_of_inputs():
    x = torch.ones(3)

    @torch.compile
    def f():
        x.add_(1)
        first = x[0].item()
        x.mul_(2)
        return first, x.numpy().copy(), x.tolist()

    first, array, listed = f()
    assert first == 2 and array.tolist() == [4, 4, 4] and listed == [4, 4, 4]


def test_views_of_inputs_are_written():
    x = torch.zeros(4)

    @torch.compile
    def f():
        x[1:3].add_(1)
        x[0] = 5
        return x.sum()

    assert f().item() == 7 and x.tolist() == [5, 1, 1, 0]


def test_results_alias_as_in_eager():
    @torch.compile
    def f(x):
        y = x + 1
        return x, y, y[1:], y

    x = torch.zeros(3)
    a, b, c, d = f(x)
    assert a is x and b is d
    b.add_(1)
    assert c.tolist() == [2, 2]


def test_random_numbers_are_eager_s():
    def draw():
        torch.manual_seed(3)
        a = torch.rand(3)
        torch.manual_seed(4)
        b = torch.randn(3)
        state = torch.get_rng_state()
        c = torch.nn.functional.dropout(torch.ones(8), 0.5)
        return a, b, c, state, torch.rand(2)

    for eager, compiled in zip(draw(), torch.compile(draw)()):
        assert torch.equal(eager, compiled)


def test_exception_closes_capture():
    x = torch.zeros(2)

    @torch.compile
    def f():
        x.add_(1)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        f()
    assert not torch.compiler.is_compiling()
    assert x.tolist() == [1, 1]


def test_errors_of_operators_are_eager_s():
    @torch.compile
    def f(x):
        return x @ torch.ones(5, 5)

    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        f(torch.ones(2, 3))


def test_errors_that_depend_on_data():
    @torch.compile
    def f(x, index):
        return x[index] + 1

    with pytest.raises(IndexError, match="out of bounds"):
        f(torch.ones(3), torch.tensor([7]))
    assert f(torch.ones(3), torch.tensor([1])).tolist() == [2]


def test_nested_and_recursive():
    @torch.compile
    def inner(x):
        return x + 1

    @torch.compile
    def outer(x, depth):
        return outer(inner(x), depth - 1) if depth else x

    result, segments = segments_of(lambda: outer(torch.zeros(2), 5))
    assert result.tolist() == [5, 5] and segments == 1


def test_generator():
    @torch.compile
    def count(x):
        sent = yield x + 1
        try:
            yield x * sent
        except ValueError:
            yield x - 1
        return "end"

    generator = count(torch.ones(2))
    assert next(generator).tolist() == [2, 2]
    assert not torch.compiler.is_compiling()
    assert generator.send(3).tolist() == [3, 3]
    assert generator.throw(ValueError()).tolist() == [0, 0]
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value == "end"


def test_async():
    @torch.compile
    async def add(x):
        y = x + 1
        await asyncio.sleep(0)
        return y * 2

    @torch.compile
    async def stream(x):
        for i in range(2):
            await asyncio.sleep(0)
            yield x + i

    async def main():
        both = await asyncio.gather(add(torch.ones(1)), add(torch.zeros(1)))
        return [t.item() for t in both], [t.item() async for t in stream(torch.zeros(1))]

    assert asyncio.run(main()) == ([4, 2], [0, 1])


def test_threads():
    module = network()
    compiled = torch.compile(module)
    inputs = [torch.randn(3, 4) for _ in range(8)]
    expected = [module(x) for x in inputs]
    failures = []

    def work(number):
        for _ in range(20):
            if not torch.equal(compiled(inputs[number]), expected[number]):
                failures.append(number)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_pending_results_are_read_by_other_threads():
    found = []

    @torch.compile
    def f(x):
        y = x * 3
        thread = threading.Thread(target=lambda: found.append(y.tolist()))
        thread.start()
        thread.join()
        return y + 1

    assert f(torch.ones(2)).tolist() == [4, 4] and found == [[3, 3]]


def test_no_grad_and_inference_mode():
    compiled = torch.compile(nn.Linear(2, 2))
    assert compiled(torch.ones(1, 2)).requires_grad
    with torch.no_grad():
        assert not compiled(torch.ones(1, 2)).requires_grad
    with torch.inference_mode():
        assert compiled(torch.ones(1, 2)).is_inference()


def test_autocast_needs_two_segments():
    """Gradients are converted in backward, which must not end segments."""
    model = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8))
    compiled = torch.compile(model)
    x = torch.randn(4, 8)

    def step(function):
        model.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = function(x)
        out.float().sum().backward()
        return [p.grad for p in model.parameters()]

    found, segments = segments_of(lambda: step(compiled))
    assert segments == 2
    for a, b in zip(found, step(model)):
        assert torch.equal(a, b)


def test_custom_function_and_hooks():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 3 * x * x * grad

    def f(x):
        y = Cube.apply(x).sin()
        y.register_hook(lambda grad: grad * 2)
        return y.sum()

    gradients = []
    for function in (f, torch.compile(f)):
        x = torch.randn(5, generator=torch.Generator().manual_seed(1), requires_grad=True)
        function(x).backward()
        gradients.append(x.grad)
    assert torch.equal(*gradients)


def test_double_backward():
    def f(x):
        return (x.sin() * x).sum()

    found = []
    for function in (f, torch.compile(f)):
        x = torch.arange(4.0, requires_grad=True)
        (g,) = torch.autograd.grad(function(x), x, create_graph=True)
        (gg,) = torch.autograd.grad(g.sum(), x)
        found.append((g, gg))
    assert torch.equal(found[0][0], found[1][0]) and torch.equal(found[0][1], found[1][1])


def test_new_shapes_make_no_plans():
    compiled = torch.compile(chain)
    compiled(torch.randn(7, 3))
    before = _C._compile_statistics()["plans"]
    for rows in (2, 5, 40):
        x = torch.randn(rows, 3)
        assert torch.equal(compiled(x), chain(x))
    assert _C._compile_statistics()["plans"] == before


def test_storage_of_captured_inputs():
    x = torch.zeros(2)

    @torch.compile
    def f():
        x.add_(1)
        clone = x.untyped_storage().clone()
        x.add_(1)
        return torch.frombuffer(bytearray(bytes(clone)), dtype=torch.float32), x.data_ptr()

    copied, address = f()
    assert copied.tolist() == [1, 1] and address == x.data_ptr() and x.tolist() == [2, 2]


def test_lent_memory_is_written():
    @torch.compile
    def f(x):
        y = x * 2
        x.numpy()[0] = 100
        z = x * 1
        return y, z

    y, z = f(torch.ones(2))
    assert y.tolist() == [2, 2] and z.tolist() == [100, 1]


def test_pickle_inside():
    @torch.compile
    def f(x):
        return pickle.loads(pickle.dumps(x + 1)) * 2

    assert f(torch.ones(2)).tolist() == [4, 4]


@pytest.mark.parametrize("backend", ["inductor", "eager", lambda gm, inputs: gm.forward])
def test_threads_share_pending_results(backend):
    """Others read what a thread has captured while it goes on capturing: no deadlock, no tear."""
    results = []
    stop = threading.Event()
    wrong = []

    def read():
        while not stop.is_set():
            for x, number in results[-20:]:
                if x.tolist() != [number, number]:
                    wrong.append(number)
            time.sleep(0.001)  # or nobody else gets the interpreter

    @torch.compile(backend=backend)
    def write(base):
        x = torch.zeros(2)
        for number in range(base, base + 100):
            x = x * 0 + number
            results.append((x, number))
        return x

    readers = [threading.Thread(target=read) for _ in range(3)]
    for thread in readers:
        thread.start()
    for base in range(0, 5000, 100):  # one run in some hundred tore
        assert write(base).tolist() == [base + 99, base + 99]
    stop.set()
    for thread in readers:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("backend", ["inductor", "eager"])
def test_running_segments_hide_what_comes_in_between(backend):
    """Nobody sees a result before the last of the writes that were captured."""
    shown = []
    stop = threading.Event()
    wrong = []

    def read():
        while not stop.is_set():
            for x in shown[-5:]:
                if x.min().item() != 3:
                    wrong.append(x.min().item())

    @torch.compile(backend=backend)
    def write():
        x = torch.ones(3000, 2)
        y = x.t().cumsum(0)[1:]  # kernels of their own, writes in between
        x[:, 1:].add_(y.t())
        x.clamp_(3, 3)
        shown.append(x)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for thread in readers:
        thread.start()
    for _ in range(100):
        write()
    stop.set()
    for thread in readers:
        thread.join()
    assert not wrong


def test_writes_are_seen_by_other_threads():
    x = torch.zeros(2)
    seen = []

    @torch.compile
    def f():
        x.add_(1)
        thread = threading.Thread(target=lambda: seen.append(x.tolist()))
        thread.start()
        thread.join()
        x.add_(1)

    f()
    assert seen == [[1, 1]] and x.tolist() == [2, 2]


def test_backward_in_another_thread():
    module = network()
    compiled = torch.compile(module)
    loss = compiled(torch.ones(2, 4)).sum()
    thread = threading.Thread(target=loss.backward)
    thread.start()
    thread.join()
    expected = torch.autograd.grad(module(torch.ones(2, 4)).sum(), list(module.parameters()))
    assert all(torch.equal(p.grad, g) for p, g in zip(module.parameters(), expected))


def test_checkpointed_and_frozen_layers():
    from rushlight.utils.checkpoint import checkpoint

    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    first.weight.requires_grad_(False)

    def f(x):
        return checkpoint(lambda x: second(first(x).relu()).tanh(), x, use_reentrant=False).sum()

    found = []
    for function in (f, torch.compile(f)):
        x = torch.arange(6.0).reshape(2, 3).requires_grad_()
        second.zero_grad()
        function(x).backward()
        found.append((x.grad, second.weight.grad.clone()))
    assert torch.equal(found[0][0], found[1][0]) and torch.equal(found[0][1], found[1][1])


def test_autocast_and_modes():
    def f(x):
        with torch.no_grad():
            y = x * 2
        with torch.enable_grad():
            return y, x * 3

    y, z = torch.compile(f)(torch.ones(2, requires_grad=True))
    assert not y.requires_grad and z.requires_grad


def test_data_of_parameters():
    weight = nn.Parameter(torch.ones(2))

    @torch.compile
    def f():
        weight.data.mul_(3)
        weight.data = weight.data + 1
        return weight * 1

    assert f().tolist() == [4, 4] and weight.tolist() == [4, 4]


def test_results_outlive_what_made_them():
    @torch.compile
    def f(x):
        views = [(x + i)[1:] for i in range(3)]
        return views

    views = f(torch.zeros(3))
    assert [view.tolist() for view in views] == [[0, 0], [1, 1], [2, 2]]


def test_deep_chain():
    @torch.compile
    def f(x):
        for _ in range(3000):
            x = x + 1
        return x

    assert f(torch.zeros(2)).tolist() == [3000, 3000]


def test_empty_tensors():
    @torch.compile
    def f(x):
        return x.sin().sum(), (x + 1).max(dim=-1).values, x @ x.mT

    total, largest, product = f(torch.zeros(0, 3))
    assert total.item() == 0 and largest.shape == (0,) and product.shape == (0, 0)


def test_fusion_keeps_the_order_of_draws():
    def f(p):
        x = p * 1
        kept = x.abs().clamp(0, 1).bernoulli()
        return x, kept, x + torch.rand(2)

    found = []
    for function in (f, torch.compile(f)):
        torch.manual_seed(0)
        found.append(function(torch.full((2,), 0.5)))
    assert all(torch.equal(a, b) for a, b in zip(*found))


def test_dropout_draws_in_order():
    def f():
        return torch.randn(3), nn.functional.dropout(torch.ones(8), 0.4), torch.rand(2)

    found = []
    for function in (f, torch.compile(f)):
        torch.manual_seed(0)
        found.append(function())
    assert all(torch.equal(a, b) for a, b in zip(*found))


def test_gradients_of_shared_arguments():
    def f(x):
        y = x.sin()
        return torch.minimum(x, x).sum() + torch.hypot(y, x).sum() + torch.fmax(y, y).sum()

    found = []
    for function in (f, torch.compile(f)):
        x = torch.tensor([0.3, -1.7, 2.1], requires_grad=True)
        function(x).backward()
        found.append(x.grad)
    assert torch.equal(*found)
