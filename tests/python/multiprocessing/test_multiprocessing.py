"""Processes that share tensors, and processes whose errors come back."""

import os
import pickle
import sys
import time

import pytest
import rushlight as torch
import rushlight.multiprocessing as mp

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="memory is shared by descriptors")


@pytest.fixture(params=["file_descriptor", "file_system"])
def strategy(request):
    before = mp.get_sharing_strategy()
    mp.set_sharing_strategy(request.param)
    yield request.param
    mp.set_sharing_strategy(before)


@pytest.mark.parametrize("size", [3, 5000])
@pytest.mark.parametrize("lend", ["numpy", "dlpack", "from_numpy"])
def test_what_was_lent_lives_on_where_memory_moves(size, lend):
    numpy = pytest.importorskip("numpy")
    if lend == "from_numpy":
        array = numpy.arange(size, dtype="float32")
        tensor = torch.from_numpy(array)
    else:
        tensor = torch.arange(float(size))
        array = tensor.numpy() if lend == "numpy" else numpy.from_dlpack(tensor)
    tensor.share_memory_()
    tensor.zero_()
    taken = [torch.full((size,), -1.0) for _ in range(50)]
    assert array.tolist() == list(range(size))
    assert tensor.is_shared() and not tensor.any() and len(taken) == 50
    del tensor
    taken += [torch.full((size,), -1.0) for _ in range(50)]
    if lend == "numpy":
        assert array.tolist() == list(range(size))


def test_memory_moves_and_stays_the_tensors():
    x = torch.arange(4.0)
    view = x[1:]
    assert not x.is_shared()
    assert x.share_memory_() is x
    assert x.is_shared() and view.is_shared() and x.tolist() == [0, 1, 2, 3]
    view[0] = 7
    assert x[1].item() == 7
    with pytest.raises(RuntimeError, match="not resizable"):
        x.resize_(100)
    assert torch.empty(0).share_memory_().is_shared()
    layer = torch.nn.Linear(2, 2).share_memory()
    assert layer.weight.is_shared() and isinstance(layer.weight, torch.nn.Parameter)
    assert torch.UntypedStorage(3).share_memory_().is_shared()
    with pytest.raises(RuntimeError, match="meta storage has no bytes to share"):
        torch.empty(2, device="meta").share_memory_()


def fill(tensor, queue, read):
    tensor.fill_(3)
    queue.put(tensor.sum() + 1)
    read.wait(60)  # the sender of memory lives until the receiver has it


def echo(queue, answers):
    while (message := queue.get()) is not None:
        message["weight"].detach().mul_(2)
        answers.put((message["weight"].detach()[0], type(message["weight"]).__name__))
    answers.put(torch.ones(2, 3)[:, 1])
    queue.get()  # lives until the answers have been read


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_both_sides_see_what_is_written(strategy, method):
    context = mp.get_context(method)
    queue, read = context.Queue(), context.Event()
    x = torch.zeros(3)
    process = context.Process(target=fill, args=(x.share_memory_(), queue, read))
    process.start()
    assert queue.get(timeout=60).item() == 10
    read.set()
    process.join(60)
    assert x.tolist() == [3, 3, 3]


def test_queues_hand_over_memory(strategy):
    context = mp.get_context("spawn")
    queue, answers = context.Queue(), context.Queue()
    process = context.Process(target=echo, args=(queue, answers))
    process.start()
    weight = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    queue.put({"weight": weight})
    value, kind = answers.get(timeout=60)
    assert value.item() == 2 and kind == "Parameter"
    assert weight.tolist() == [2, 4] and weight.is_shared()
    queue.put(None)
    assert answers.get(timeout=60).tolist() == [1, 1]
    queue.put(None)
    process.join(60)
    assert process.exitcode == 0


def test_what_cannot_be_sent():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        mp.reductions.ForkingPickler.dumps(x * 2)


def test_ordinary_pickles_copy():
    x = torch.ones(2).share_memory_()
    copy = pickle.loads(pickle.dumps(x))
    copy.fill_(5)
    assert x.tolist() == [1, 1] and not copy.is_shared()


def test_strategies_are_known():
    assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies()
    with pytest.raises(AssertionError, match="invalid sharing strategy 'x', expected one of"):
        mp.set_sharing_strategy("x")


def add(rank, table, amount):
    table[rank] += amount


def raise_in_one(rank):
    if rank == 1:
        raise ValueError("no luck")
    time.sleep(60)


def exit_with(rank, code):
    sys.exit(code)


def die(rank):
    os.kill(os.getpid(), 9)


def test_spawned_processes_share_their_arguments():
    table = torch.zeros(2)
    assert mp.spawn(add, (table, 5), nprocs=2) is None
    assert table.tolist() == [5, 5]
    context = mp.start_processes(add, (table, 1), nprocs=2, join=False, start_method="fork")
    assert len(context.pids()) == 2
    while not context.join():
        pass
    assert context.join() and table.tolist() == [6, 6]


def test_errors_come_back():
    with pytest.raises(mp.ProcessRaisedException, match="Process 1 terminated.*\n(.*\n)*.*no luck"):
        mp.start_processes(raise_in_one, nprocs=2, start_method="fork")
    with pytest.raises(mp.ProcessExitedException, match="process 0 terminated with exit code 3"):
        mp.start_processes(exit_with, (3,), start_method="fork")
    with pytest.raises(mp.ProcessExitedException, match="terminated with signal SIGKILL") as caught:
        mp.start_processes(die, start_method="fork")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.error_index, copy.exit_code, copy.signal_name) == (0, -9, "SIGKILL")


def test_spawn_starts_fresh_interpreters_only():
    with pytest.warns(FutureWarning, match="only supports start_method=spawn"):
        mp.spawn(add, (torch.zeros(1), 1), start_method="fork")


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, index):
        return torch.full((2,), float(index))


def test_data_loaders_still_read_what_workers_sent():
    loader = torch.utils.data.DataLoader(Rows(), batch_size=2, num_workers=2)
    assert [batch[:, 0].tolist() for batch in loader] == [[0, 1], [2, 3], [4, 5]]
