"""Times a statement."""

from __future__ import annotations

import enum
import itertools
import textwrap
import timeit
from collections.abc import Callable
from typing import Any, NoReturn

from .common import Measurement, TaskSpec, set_torch_threads

timer = timeit.default_timer


class Language(enum.Enum):
    """What a statement is written in."""

    PYTHON = 0
    CPP = 1


class Timer:
    """Times `stmt` after `setup`, with `globals` at hand and with `num_threads` threads.

    label, sub_label and description say which table, row and column the result belongs to.
    """

    _timer_cls = timeit.Timer

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Timer: language must be Python, got {language}")
        if global_setup:
            raise ValueError(f"global_setup is C++ only, got `{global_setup}`.")
        import rushlight

        stmt, setup = textwrap.dedent(stmt).strip(), textwrap.dedent(setup).strip()
        scope = {"torch": rushlight, **(globals or {})}
        self._timer = self._timer_cls(stmt=stmt, setup=setup, timer=timer, globals=scope)
        self._task_spec = TaskSpec(
            stmt=stmt,
            setup=setup,
            label=label,
            sub_label=sub_label,
            description=description,
            env=env,
            num_threads=num_threads,
        )

    def _timeit(self, number: int) -> float:
        # A statement that the clock cannot see still took some time.
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number: int = 1000000) -> Measurement:
        """The time of `number` runs, after a few that are not counted."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(number // 100, 2))
            return Measurement(number, [self._timeit(number)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> NoReturn:
        """See blocked_autorange."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable | None = None) -> NoReturn:
        """See blocked_autorange."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def blocked_autorange(
        self, callback: Callable[[int, float], NoReturn] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Blocks of runs for at least `min_run_time` seconds.

        A block is long enough for the clock's own time to be under a thousandth of it.
        """
        number = self._block_size(min_run_time)
        return self._threaded_blocks(number, callback, lambda times: sum(times) >= min_run_time)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], NoReturn] | None = None,
    ) -> Measurement:
        """Blocks of runs until quartiles are within `threshold` of the median, or time is up."""
        number = self._block_size(min_run_time)

        def enough(times: list[float]) -> bool:
            if sum(times) >= max_run_time:
                return True
            found = Measurement(number, times, self._task_spec)
            return sum(times) >= min_run_time and found.meets_confidence(threshold)

        return self._threaded_blocks(number, callback, enough)

    def _block_size(self, min_run_time: float) -> int:
        with set_torch_threads(self._task_spec.num_threads):
            overhead = sorted(self._timeit(0) for _ in range(5))[2]
            for number in itertools.accumulate(itertools.repeat(10), lambda a, b: a * b, initial=1):
                taken = self._timeit(number)
                if overhead <= taken * 1e-4 or taken >= min_run_time or taken > 1:
                    return number
        raise AssertionError("unreachable")

    def _threaded_blocks(
        self, number: int, callback: Callable | None, enough: Callable[[list[float]], bool]
    ) -> Measurement:
        times: list[float] = []
        with set_torch_threads(self._task_spec.num_threads):
            while not times or not enough(times):
                times.append(self._timeit(number))
                if callback is not None:
                    callback(number, times[-1])
        return Measurement(number, times, self._task_spec)

    def collect_callgrind(self, *args: object, **kwargs: object) -> NoReturn:
        """Instruction counts are not here: they need valgrind."""
        raise OSError("collect_callgrind: instruction counts need valgrind, which is not supported")
