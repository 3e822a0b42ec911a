"""Results that come later: set once, waited for, and followed by other functions."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import rushlight as torch

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")


class Future(Generic[T]):
    """A result that comes later."""

    def __init__(self, *, devices: Any = None) -> None:
        for device in devices or ():
            if torch.device(device).index is None:
                raise ValueError(f"Expected devices to have indices, got {torch.device(device)}")
        self._condition = threading.Condition()
        self._done = False
        self._value: Any = None
        self._error: Exception | None = None
        self._callbacks: list[Callable[[], None]] = []

    def done(self) -> bool:
        """Whether the result, or an error, is there."""
        with self._condition:
            return self._done

    def wait(self) -> T:
        """Waits for the result; raises the error where there is one."""
        with self._condition:
            self._condition.wait_for(lambda: self._done)
        return self._given()

    def value(self) -> T:
        """The result that is there already; raises the error where there is one."""
        if not self.done():
            raise RuntimeError("value() of a Future that is not completed: use wait()")
        return self._given()

    def _given(self) -> T:
        if self._error is not None:
            raise self._error
        return self._value

    def _complete(self, value: Any, error: Exception | None) -> None:
        with self._condition:
            if self._done:
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that a Future "
                    "can only be marked completed once."
                )
            self._value, self._error, self._done = value, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._condition.notify_all()
        for callback in callbacks:
            callback()

    def set_result(self, result: T) -> None:
        """Gives the result; what follows runs in this thread."""
        self._complete(result, None)

    def set_exception(self, result: Exception) -> None:
        """Gives an error in the place of a result."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def _when_done(self, callback: Callable[[], None]) -> None:
        with self._condition:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback()

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """A future of callback(self), which runs when this one is complete."""
        if not callable(callback):
            raise TypeError(f"then(): expected a callable, but got {type(callback)}")
        following: Future = Future()

        def run() -> None:
            try:
                result = callback(self)
            except Exception as error:
                message = f"Got the following error when running the callback: {_text(error)}"
                following._complete(None, RuntimeError(message))
            else:
                following._complete(result, None)

        self._when_done(run)
        return following

    def add_done_callback(self, callback: Callable[[Future], None]) -> None:
        """Runs callback(self) when the future is complete; its errors are printed and dropped."""

        def run() -> None:
            try:
                callback(self)
            except Exception:
                traceback.print_exc()

        self._when_done(run)


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def collect_all(futures: list[Future]) -> Future[list[Future]]:
    """A future of the futures, complete when all of them are; an error of one is its error."""
    given = list(futures)
    for each in given:
        if not isinstance(each, Future):
            raise TypeError(f"collect_all(): expected a list of Futures, but got {type(each)}")
    collected: Future = Future()
    left = len(given)
    lock = threading.Lock()
    if not given:
        collected.set_result([])

    def count() -> None:
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if last:
            errors = [each._error for each in given if each._error is not None]
            collected._complete(given, errors[0] if errors else None)

    for each in given:
        each._when_done(count)
    return collected


def wait_all(futures: list[Future]) -> list:
    """Waits for futures and gives their results; raises the first error."""
    return [future.wait() for future in collect_all(futures).wait()]
