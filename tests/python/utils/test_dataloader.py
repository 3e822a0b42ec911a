"""The data loader: batches, workers, errors."""

import collections
import gc
import os
import threading
import time

import pytest
import rushlight as torch
from rushlight.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    default_collate,
    get_worker_info,
)

Pair = collections.namedtuple("Pair", ["x", "y"])


class Squares(Dataset):
    def __len__(self):
        return 7

    def __getitem__(self, index):
        return index, torch.tensor(float(index * index))


class Failing(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, index):
        if index == 3:
            raise KeyError("no sample three")
        return index


class Stream(IterableDataset):
    def __iter__(self):
        worker = get_worker_info()
        start = 0 if worker is None else worker.id * 10
        return iter(range(start, start + 3))


class Dying(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        os._exit(3)


class Slow(Dataset):
    def __len__(self):
        return 1

    def __getitem__(self, index):
        time.sleep(60)  # longer than any machine is busy


def keys(loader):
    return [batch[0].tolist() for batch in loader]


def test_batches():
    assert keys(DataLoader(Squares(), batch_size=3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert keys(DataLoader(Squares(), batch_size=3, drop_last=True)) == [[0, 1, 2], [3, 4, 5]]
    last = list(DataLoader(Squares(), batch_size=3))[-1]
    assert last[1].tolist() == [36.0]
    assert len(DataLoader(Squares(), batch_size=3)) == 3


def test_shuffling_draws_pytorchs_order():
    torch.manual_seed(0)
    batches = [b.tolist() for b in DataLoader(list(range(7)), batch_size=3, shuffle=True)]
    assert batches == [[0, 4, 1], [5, 2, 6], [3]]
    assert torch.rand(1).item() == pytest.approx(0.3074, abs=1e-4)


def test_without_batches():
    assert list(DataLoader([1.5, 2.5], batch_size=None)) == [1.5, 2.5]


def test_own_batches():
    loader = DataLoader([10, 11, 12], batch_sampler=[[2, 0], [1]])
    assert [batch.tolist() for batch in loader] == [[12, 10], [11]]


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_keep_the_order(workers):
    loader = DataLoader(Squares(), batch_size=2, num_workers=workers)
    assert keys(loader) == [[0, 1], [2, 3], [4, 5], [6]]


def test_persistent_workers_serve_several_epochs():
    loader = DataLoader(Squares(), batch_size=2, num_workers=2, persistent_workers=True)
    assert keys(loader) == keys(loader) == [[0, 1], [2, 3], [4, 5], [6]]
    next(iter(loader))  # an epoch that is broken off
    assert keys(loader) == [[0, 1], [2, 3], [4, 5], [6]]


def test_streams():
    assert [b.tolist() for b in DataLoader(Stream(), batch_size=2)] == [[0, 1], [2]]
    loader = DataLoader(Stream(), batch_size=2, num_workers=2)
    assert [b.tolist() for b in loader] == [[0, 1], [10, 11], [2], [12]]


def test_errors_keep_their_type():
    with pytest.raises(KeyError, match="no sample three"):
        list(DataLoader(Failing()))
    with pytest.raises(KeyError, match="Caught KeyError in DataLoader worker process 1"):
        list(DataLoader(Failing(), num_workers=2))


def test_loading_goes_on_after_an_error():
    batches = iter(DataLoader(Failing(), num_workers=2))
    found = []
    for _ in range(6):
        try:
            found.append(next(batches).item())
        except KeyError:
            found.append("error")
    assert found == [0, 1, 2, "error", 4, 5]


def test_error_in_worker_start():
    def fail(identity):
        raise ZeroDivisionError(f"worker {identity}")

    with pytest.raises(ZeroDivisionError, match="Original Traceback"):
        list(DataLoader(Squares(), num_workers=1, worker_init_fn=fail))


def test_dead_worker_is_reported():
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(DataLoader(Dying(), num_workers=1))


def test_timeout():
    with pytest.raises(RuntimeError, match="timed out after 0.5 seconds"):
        list(DataLoader(Slow(), num_workers=1, timeout=0.5))


def test_collation():
    assert default_collate([1, 2]).tolist() == [1, 2]
    floats = default_collate([1.0, 2.0])
    assert floats.dtype == torch.float64
    assert default_collate(["a", "b"]) == ["a", "b"]
    assert default_collate([{"k": 1}, {"k": 2}])["k"].tolist() == [1, 2]
    pair = default_collate([Pair(1, 2.0), Pair(3, 4.0)])
    assert type(pair) is Pair
    assert pair.x.tolist() == [1, 3]
    columns = default_collate([(torch.ones(2), 1), (torch.zeros(2), 2)])
    assert columns[0].tolist() == [[1.0, 1.0], [0.0, 0.0]]
    with pytest.raises(RuntimeError, match="should be of equal size"):
        default_collate([[1, 2], [3]])
    with pytest.raises(TypeError, match="must contain tensors, numpy arrays, numbers"):
        default_collate([object()])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"num_workers": -1}, "num_workers option should be non-negative"),
        ({"timeout": -1}, "timeout option should be non-negative"),
        ({"prefetch_factor": 2}, "could only be specified in multiprocessing"),
        ({"persistent_workers": True}, "needs num_workers > 0"),
        ({"sampler": [0], "shuffle": True}, "mutually exclusive with shuffle"),
        ({"batch_sampler": [[0]], "batch_size": 2}, "mutually exclusive with batch_size"),
        ({"batch_size": None, "drop_last": True}, "mutually exclusive with drop_last"),
        ({"batch_size": 0}, "batch_size should be a positive integer"),
    ],
)
def test_wrong_options(options, text):
    with pytest.raises(ValueError, match=text):
        DataLoader([1, 2], **options)


def test_fixed_attributes():
    loader = DataLoader([1])
    with pytest.raises(ValueError, match="batch_size attribute should not be set after"):
        loader.batch_size = 2


def test_data_that_cannot_travel_is_an_error():
    with pytest.raises((AttributeError, TypeError), match="Caught .* in DataLoader worker"):
        list(DataLoader(Squares(), num_workers=1, collate_fn=lambda batch: lambda: batch))


def test_the_garbage_collector_may_run_in_a_thread_that_feeds_the_workers():
    """Where it ends an iterator while that thread holds the lock of the iterator's queue."""
    batches = iter(DataLoader(Squares(), num_workers=1))
    next(batches)
    lock, workers = batches._index_queues[0]._notempty, batches._workers
    held, dropped = [batches], threading.Event()
    del batches

    def feed():
        with lock:
            held.clear()
            gc.collect()
        dropped.set()

    threading.Thread(target=feed, daemon=True).start()
    assert dropped.wait(4), "the iterator waits for a lock of its own thread"
    for process in workers:
        # Asked again and again: of two threads that wait for a process one is told its exit code.
        until = time.monotonic() + 20
        while process.exitcode is None and time.monotonic() < until:
            time.sleep(0.02)
        assert process.exitcode == 0
