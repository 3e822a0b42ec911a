"""The iterators of a data loader: in this process, or over workers."""

from __future__ import annotations

import functools
import itertools
import os
import queue
import threading
import time

import rushlight as torch

from ._utils import fetch, worker


class _DatasetKind:
    """How a dataset is read."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind: int, dataset, auto_collation: bool, collate_fn, drop_last: bool):
        """The object that reads a dataset of this kind."""
        if kind == _DatasetKind.Map:
            cls = fetch._MapDatasetFetcher
        else:
            cls = fetch._IterableDatasetFetcher
        return cls(dataset, auto_collation, collate_fn, drop_last)


class _BaseDataLoaderIter:
    def __init__(self, loader) -> None:
        self._loader = loader
        self._dataset_kind = loader._dataset_kind
        self._base_seed = int(
            torch.empty((), dtype=torch.int64).random_(generator=loader.generator).item()
        )
        self._start()

    def _start(self) -> None:
        """Begins an epoch, with a new order of keys."""
        self._sampler_iter = iter(self._loader._index_sampler)
        self._num_yielded = 0

    def __iter__(self):
        return self

    def _next_index(self):
        return next(self._sampler_iter)

    def _next_data(self):
        raise NotImplementedError

    def __next__(self):
        data = self._next_data()
        self._num_yielded += 1
        loader = self._loader
        called = loader._IterableDataset_len_called
        if (
            self._dataset_kind == _DatasetKind.Iterable
            and called is not None
            and self._num_yielded > called
        ):
            import warnings

            message = (
                f"Length of IterableDataset {loader.dataset} was reported to be {called} (when "
                f"accessing len(dataloader)), but {self._num_yielded} samples have been fetched. "
            )
            if loader.num_workers > 0:
                message += (
                    "For multiprocessing data-loading, this could be caused by not properly "
                    "configuring the IterableDataset replica at each worker. Please see "
                    "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset "
                    "for "
                    "examples."
                )
            warnings.warn(message, stacklevel=2)
        return data

    def __len__(self) -> int:
        return len(self._loader._index_sampler)

    def __getstate__(self):
        raise NotImplementedError(f"{self.__class__.__name__} cannot be pickled")


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Loads each batch when it is asked for."""

    def __init__(self, loader) -> None:
        super().__init__(loader)
        self._fetcher = _DatasetKind.create_fetcher(
            loader._dataset_kind,
            loader.dataset,
            loader._auto_collation,
            loader.collate_fn,
            loader.drop_last,
        )

    def _next_data(self):
        return self._fetcher.fetch(self._next_index())


def _stop(done_event, index_queues: list, workers: list, result_queue) -> None:
    """Tells workers to end, waits for them, and ends those that do not."""
    done_event.set()
    for indices in index_queues:
        indices.put(None)
    for process in workers:
        process.join(timeout=worker.CHECK_INTERVAL)
        if process.is_alive():
            process.terminate()
    for indices in index_queues:
        indices.close()
    result_queue.close()


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Loads batches ahead in worker processes; gives them in order unless the loader says
    otherwise.

    Each batch has a number. Workers get (number, keys) in turn from queues of their own and put
    (number, data) into one common queue; what comes too early waits in `_arrived`.
    """

    def __init__(self, loader) -> None:
        super().__init__(loader)
        self._num_workers = loader.num_workers
        context = loader.multiprocessing_context
        if context is None:
            import multiprocessing as context
        self._result_queue = context.Queue()
        self._done_event = context.Event()
        self._index_queues = []
        self._workers = []
        self._shutdown = False
        self._owner_process = os.getpid()
        self._owner_thread = threading.get_ident()
        create = functools.partial(
            _DatasetKind.create_fetcher,
            loader._dataset_kind,
            loader.dataset,
            loader._auto_collation,
            loader.collate_fn,
            loader.drop_last,
        )
        for identity in range(self._num_workers):
            indices = context.Queue()
            indices.cancel_join_thread()
            process = context.Process(
                target=worker.run,
                args=(
                    create,
                    loader.dataset,
                    indices,
                    self._result_queue,
                    self._done_event,
                    self._base_seed,
                    loader.worker_init_fn,
                    identity,
                    self._num_workers,
                ),
                daemon=True,
            )
            process.start()
            self._index_queues.append(indices)
            self._workers.append(process)
        self._prepare()

    def _prepare(self) -> None:
        """Empties the books and asks for the first batches."""
        self._sent = 0  # number of the next batch to ask for
        self._wanted = 0  # number of the next batch to give
        self._arrived: dict = {}
        self._owner: dict[int, int] = {}  # of batches asked for and not given yet
        self._active = [True] * self._num_workers
        self._turn = itertools.cycle(range(self._num_workers))
        for _ in range(self._loader.prefetch_factor * self._num_workers):
            self._ask()

    def _reset(self) -> None:
        """Begins another epoch with the same workers."""
        # Batches that are still on their way belong to an epoch that was broken off.
        while any(number not in self._arrived for number in self._owner):
            number, data = self._receive()
            self._arrived[number] = data
        self._start()
        for indices in self._index_queues:
            indices.put(worker.Resume())
        waiting = self._num_workers
        while waiting:
            message, _ = self._receive()
            waiting -= isinstance(message, worker.Resume)
        self._prepare()

    def _ask(self) -> None:
        """Asks the next active worker for the next batch, if there is one."""
        for _ in range(self._num_workers):
            identity = next(self._turn)
            if self._active[identity]:
                break
        else:
            return
        try:
            keys = self._next_index()
        except StopIteration:
            return
        self._index_queues[identity].put((self._sent, keys))
        self._owner[self._sent] = identity
        self._sent += 1

    def _receive(self) -> tuple:
        """The next message of any worker; fails if one has died or the time is over."""
        timeout = self._loader.timeout
        deadline = time.monotonic() + timeout if timeout > 0 else None
        while True:
            wait = worker.CHECK_INTERVAL
            if deadline is not None:
                wait = min(wait, max(0.0, deadline - time.monotonic()))
            try:
                return worker.unpacked(self._result_queue.get(timeout=wait))
            except queue.Empty:
                dead = [str(p.pid) for p in self._workers if not p.is_alive()]
                if dead:
                    self._shutdown_workers()
                    raise RuntimeError(
                        f"DataLoader worker (pid(s) {', '.join(dead)}) exited unexpectedly"
                    ) from None
                if deadline is not None and time.monotonic() >= deadline:
                    raise RuntimeError(f"DataLoader timed out after {timeout} seconds") from None

    def _next_number(self) -> int | None:
        """The number of the batch to give next, if it has arrived."""
        if self._loader.in_order:
            return self._wanted if self._wanted in self._arrived else None
        return next(iter(self._arrived), None)

    def _next_data(self):
        while True:
            if self._wanted not in self._owner and self._loader.in_order:
                self._wanted += self._wanted < self._sent
            if not self._owner:
                if not self._loader.persistent_workers:
                    self._shutdown_workers()
                raise StopIteration
            number = self._next_number()
            if number is None:
                number, data = self._receive()
                self._arrived[number] = data
                continue
            data = self._arrived.pop(number)
            identity = self._owner.pop(number)
            if isinstance(data, worker.StreamEnd):
                self._active[identity] = False
                self._ask()
                continue
            self._ask()
            if isinstance(data, worker.ExceptionWrapper):
                data.reraise()
            return data

    def _take_parts(self) -> tuple:
        self._shutdown = True
        return self._done_event, self._index_queues, self._workers, self._result_queue

    def _shutdown_workers(self) -> None:
        if not self._shutdown:
            _stop(*self._take_parts())

    def __del__(self) -> None:
        # A worker that was forked later has a copy of this object, but not its processes.
        if getattr(self, "_owner_process", None) != os.getpid() or self._shutdown:
            return
        parts = self._take_parts()
        if threading.get_ident() == self._owner_thread:
            _stop(*parts)
            return
        # The garbage collector runs in any thread: in one that feeds these very queues it would
        # wait for itself, with the lock in its hand.
        try:
            threading.Thread(target=_stop, args=parts, daemon=True).start()
        except RuntimeError:  # the interpreter ends, and the workers, which are daemons, with it
            parts[0].set()
