"""Compiled functions and threads: results are shared, and seen whole."""

import threading
import time

import pytest
import rushlight as torch
from rushlight import nn


def network():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


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
