"""What a worker process of a data loader does."""

from __future__ import annotations

import os
import queue

import rushlight as torch

# How often, in seconds, each side looks whether the other one is still there.
CHECK_INTERVAL = 5.0

_worker_info = None


class WorkerInfo:
    """Where the code runs: `id` of `num_workers`, with `seed` and its own copy of `dataset`."""

    def __init__(self, id: int, num_workers: int, seed: int, dataset) -> None:
        self.id = id
        self.num_workers = num_workers
        self.seed = seed
        self.dataset = dataset

    def __repr__(self) -> str:
        return (
            f"WorkerInfo(id={self.id}, num_workers={self.num_workers}, seed={self.seed}, "
            f"dataset={self.dataset!r})"
        )


def get_worker_info() -> WorkerInfo | None:
    """What a worker process knows of itself; None in the main process."""
    return _worker_info


class ExceptionWrapper:
    """An exception on its way from a worker to the main process, with its traceback as text."""

    def __init__(self, error: BaseException, where: str) -> None:
        import traceback

        self.type = type(error)
        self.where = where
        self.text = "".join(traceback.format_exception(type(error), error, error.__traceback__))

    def reraise(self) -> None:
        """Raises an exception of the same type that shows the original traceback."""
        message = f"Caught {self.type.__name__} {self.where}.\nOriginal {self.text}"
        if self.type is KeyError:
            # KeyError prints the repr of its argument, which would hide the line breaks.
            raise KeyError(_PlainText(message))
        try:
            error = self.type(message)
        except Exception:
            raise RuntimeError(message) from None
        raise error


class _PlainText(str):
    def __repr__(self) -> str:
        return str(self)


class StreamEnd:
    """Sent by a worker whose stream has ended."""

    def __init__(self, worker_id: int) -> None:
        self.worker_id = worker_id


class Resume:
    """Tells a persistent worker to start anew, and is sent back when it has."""


def _seed_everything(base_seed: int, worker_id: int) -> None:
    import random
    import sys

    seed = base_seed + worker_id
    random.seed(seed)
    torch.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        low, high = base_seed & 0xFFFFFFFF, base_seed >> 32
        sequence = numpy.random.SeedSequence([worker_id, low, high, 0])
        numpy.random.seed(sequence.generate_state(4))


def _share_pipes(dataset, base_seed: int, worker_id: int, num_workers: int) -> None:
    """Gives pipes of data the same seeds in all workers, and each worker its share of the items."""
    import sys

    if "rushlight.utils.data.datapipes.datapipe" in sys.modules:
        from rushlight.utils.data.datapipes.datapipe import IterDataPipe
        from rushlight.utils.data.graph_settings import apply_random_seed, apply_sharding

        if isinstance(dataset, IterDataPipe):
            apply_random_seed(dataset, torch.Generator().manual_seed(base_seed))
            apply_sharding(dataset, num_workers, worker_id)


def _send_values() -> None:
    """Makes tensors go to the main process by value: it may read them when the worker is gone."""
    import sys

    if "rushlight.multiprocessing" in sys.modules:
        from rushlight.multiprocessing.reductions import forget_reductions

        forget_reductions()


def run(
    create_fetcher,
    dataset,
    index_queue,
    result_queue,
    done_event,
    base_seed: int,
    init_fn,
    worker_id: int,
    num_workers: int,
) -> None:
    """Answers (number, keys) with (number, data) until None comes or the main process is gone."""
    global _worker_info
    torch.set_num_threads(1)
    _send_values()
    _seed_everything(base_seed, worker_id)
    _worker_info = WorkerInfo(worker_id, num_workers, base_seed + worker_id, dataset)
    _share_pipes(dataset, base_seed, worker_id, num_workers)
    where = f"in DataLoader worker process {worker_id}"
    start_error = None
    fetcher = None
    try:
        if init_fn is not None:
            init_fn(worker_id)
        fetcher = create_fetcher()
    except Exception as error:
        start_error = ExceptionWrapper(error, where)
    parent = os.getppid()
    while True:
        try:
            message = index_queue.get(timeout=CHECK_INTERVAL)
        except queue.Empty:
            if os.getppid() != parent:
                break
            continue
        if message is None:
            break
        if isinstance(message, Resume):
            try:
                fetcher = create_fetcher()
                start_error = None
            except Exception as error:
                start_error = ExceptionWrapper(error, where)
            result_queue.put(_packed(message, None, where))
            continue
        if done_event.is_set():
            continue  # the main process no longer wants what it asked for
        number, keys = message
        result_queue.put(
            _packed(number, _answer(fetcher, keys, start_error, worker_id, where), where)
        )
        start_error = None
    if done_event.is_set():
        result_queue.cancel_join_thread()
        result_queue.close()


def _packed(number, data, where: str) -> bytes:
    """The message as bytes. A queue pickles later, in a thread, where an error would be lost."""
    from multiprocessing.reduction import ForkingPickler

    try:
        return bytes(ForkingPickler.dumps((number, data)))
    except Exception as error:
        return bytes(ForkingPickler.dumps((number, ExceptionWrapper(error, where))))


def unpacked(message: bytes) -> tuple:
    """The (number, data) of a worker's message."""
    import pickle

    return pickle.loads(message)


def _answer(fetcher, keys, start_error, worker_id: int, where: str):
    """The data, or what stands for the end of a stream or for an error."""
    if start_error is not None:
        return start_error
    if fetcher is None:
        return StreamEnd(worker_id)
    try:
        return fetcher.fetch(keys)
    except StopIteration as error:
        if type(fetcher).__name__ == "_IterableDatasetFetcher":
            return StreamEnd(worker_id)
        return ExceptionWrapper(error, where)
    except Exception as error:
        return ExceptionWrapper(error, where)
