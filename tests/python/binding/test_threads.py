"""Many Python threads at once: the results are those of one."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest
import rushlight as torch
from rushlight import nn

THREADS = 6


def on_threads(body) -> None:
    """Runs `body(thread)` on all threads, which start together; raises what the first raised."""
    start = threading.Barrier(THREADS)
    errors = []

    def run(thread: int) -> None:
        start.wait()
        try:
            body(thread)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(t,)) for t in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def test_operators_and_gradients():
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 1))
    x = torch.randn(32, 8)

    def gradients() -> tuple:
        return torch.autograd.grad(model(x).square().mean(), list(model.parameters()))

    expected = gradients()

    def body(_: int) -> None:
        for _ in range(20):
            for got, wanted in zip(gradients(), expected, strict=True):
                assert torch.equal(got, wanted)

    on_threads(body)


def test_gradients_of_one_leaf_add_up():
    leaf = torch.ones(16, requires_grad=True)
    seen = []
    leaf.register_hook(lambda grad: seen.append(threading.get_ident()))
    on_threads(lambda _: [(leaf * 2).sum().backward() for _ in range(10)])
    assert leaf.grad.tolist() == [20.0 * THREADS] * 16
    assert len(seen) == 10 * THREADS


def test_one_tensor_has_one_object():
    holder = nn.Module()
    holder.weight = nn.Parameter(torch.ones(4))
    (holder.weight * 2).sum().backward()

    def body(_: int) -> None:
        for _ in range(200):
            assert holder.weight.grad is holder.weight.grad
            view = holder.weight.detach()
            assert view.sum().item() == 4
            del view

    on_threads(body)


class Marked(torch.Tensor):
    pass


def test_subclasses_and_weak_references_come_and_go():
    def body(thread: int) -> None:
        for i in range(100):
            made = torch.ones(3).as_subclass(Marked)
            made.label = (thread, i)
            reference = weakref.ref(made)
            again = (made + 1).as_subclass(Marked)
            assert made.label == (thread, i)
            assert isinstance(again, Marked)
            assert reference() is made
            del made
        gc.collect()

    on_threads(body)


def test_modes_belong_to_the_thread():
    leaf = torch.ones(2, requires_grad=True)

    def body(thread: int) -> None:
        for _ in range(50):
            with torch.set_grad_enabled(thread % 2 == 0):
                assert (leaf * 2).requires_grad == (thread % 2 == 0)

    on_threads(body)


def test_the_default_generator_gives_each_number_once():
    torch.manual_seed(3)
    expected = torch.rand(THREADS * 50).sort().values.tolist()
    torch.manual_seed(3)
    drawn: list[float] = []
    on_threads(lambda _: drawn.extend([torch.rand(1).item() for _ in range(50)]))
    assert sorted(drawn) == expected


def test_saving_and_loading(tmp_path):
    state = {"a": torch.arange(100), "b": torch.randn(10)}
    torch.save(state, tmp_path / "shared.pt")

    def body(thread: int) -> None:
        for _ in range(5):
            assert torch.equal(torch.load(tmp_path / "shared.pt")["b"], state["b"])
            torch.save({"t": torch.tensor(thread)}, tmp_path / f"{thread}.pt")
            assert torch.load(tmp_path / f"{thread}.pt")["t"].item() == thread

    on_threads(body)


def test_errors_stay_with_their_thread():
    def body(thread: int) -> None:
        for _ in range(30):
            with pytest.raises(RuntimeError, match=f"{thread + 2}x3 and {thread + 5}x1"):
                torch.mm(torch.ones(thread + 2, 3), torch.ones(thread + 5, 1))

    on_threads(body)
