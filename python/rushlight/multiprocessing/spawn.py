"""Processes that run one function, and whose errors come back."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable

__all__ = [
    "ENV_VAR_PARALLEL_START",
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]

ENV_VAR_PARALLEL_START = "TORCH_MP_PARALLEL_START"


class ProcessException(Exception):
    """A process that did not end well: which one, and its process id."""

    __slots__ = ("error_index", "error_pid")

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.error_pid = error_pid

    @property
    def pid(self) -> int:
        """The process id, under its short name."""
        return self.error_pid

    def __reduce__(self) -> tuple:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """A process whose function raised."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg, error_index, error_pid)


class ProcessExitedException(ProcessException):
    """A process that ended with an exit code, or by a signal."""

    __slots__ = ("exit_code",)

    def __init__(
        self,
        msg: str,
        error_index: int,
        error_pid: int,
        exit_code: int,
        signal_name: str | None = None,
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> tuple:
        return type(self), (
            self.msg,
            self.error_index,
            self.error_pid,
            self.exit_code,
            self.signal_name,
        )


def _wrap(fn: Callable, i: int, args: tuple, error_file: str) -> None:
    """What each process runs: the function, and a file with the traceback where it raises."""
    if sys.platform == "linux":  # it ends when its parent does
        _end_with_parent()
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        import traceback

        with open(error_file, "wb") as file:
            pickle.dump(traceback.format_exc(), file)
        sys.exit(1)


def _end_with_parent() -> None:
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGINT, 0, 0, 0)  # PR_SET_PDEATHSIG


class ProcessContext:
    """Processes that were started together."""

    def __init__(self, processes: list, error_files: list[str]) -> None:
        self.error_files = error_files
        self.processes = processes
        self.sentinels = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """Their process ids."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits for a process to end; True when all have. Where one fails the others are ended,
        after grace_period seconds where it is given, and its error is raised.
        """
        if not self.sentinels:
            return True
        ready = multiprocessing.connection.wait(self.sentinels.keys(), timeout=timeout)
        failed = None
        for sentinel in ready:
            index = self.sentinels.pop(sentinel)
            process = self.processes[index]
            process.join()
            if process.exitcode != 0:
                failed = index
                break
        if failed is None:
            return not self.sentinels
        self._end_all(grace_period)
        self._raise(failed)
        return False

    def _end_all(self, grace_period: float | None) -> None:
        if grace_period is not None:
            end = time.monotonic() + grace_period
            for process in self.processes:
                process.join(max(end - time.monotonic(), 0))
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        end = time.monotonic() + 30
        for process in self.processes:
            process.join(max(end - time.monotonic(), 0))
            if process.is_alive():
                process.kill()
                process.join()

    def _raise(self, index: int) -> None:
        process, error_file = self.processes[index], self.error_files[index]
        if os.access(error_file, os.R_OK) and os.path.getsize(error_file):
            with open(error_file, "rb") as file:
                text = pickle.load(file)
            os.unlink(error_file)
            raise ProcessRaisedException(
                f"\n\n-- Process {index} terminated with the following error:\n{text}",
                error_index=index,
                error_pid=process.pid,
            )
        code = process.exitcode
        if code >= 0:
            raise ProcessExitedException(
                f"process {index} terminated with exit code {code}", index, process.pid, code
            )
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"<Unknown signal {-code}>"
        raise ProcessExitedException(
            f"process {index} terminated with signal {name}", index, process.pid, code, name
        )


class SpawnContext(ProcessContext):
    """The old name of ProcessContext."""

    def __init__(self, processes: list, error_files: list[str]) -> None:
        warnings.warn("SpawnContext is renamed to ProcessContext since 1.4 release.", stacklevel=2)
        super().__init__(processes, error_files)


def start_processes(
    fn: Callable,
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Starts processes that run fn(i, *args), i = 0 .. nprocs - 1, and waits for them to end; with
    join=False gives their ProcessContext at once. start_method: 'spawn', 'fork', 'forkserver'.
    """
    context = multiprocessing.get_context(start_method)
    processes, files = [], []
    for index in range(nprocs):
        with tempfile.NamedTemporaryFile(
            prefix="pytorch-errorfile-", suffix=".pickle", delete=False
        ) as file:
            name = file.name
        os.unlink(name)  # there again only where the process fails
        process = context.Process(target=_wrap, args=(fn, index, args, name), daemon=daemon)
        process.start()
        files.append(name)
        processes.append(process)
    started = ProcessContext(processes, files)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable,
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """start_processes of freshly started interpreters."""
    if start_method != "spawn":
        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}).\n"
            "To use a different start_method use:\n\t\t"
            " torch.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
