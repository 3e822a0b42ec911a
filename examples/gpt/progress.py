"""A progress bar on a terminal; a line now and then elsewhere."""

from __future__ import annotations

import sys
import time

BAR = 24


class Progress:
    """Shows step, loss, tokens a second and the time left, at most ten times a second."""

    def __init__(self, first: int, last: int, tokens_a_step: int) -> None:
        self.first, self.last, self.tokens_a_step = first, last, tokens_a_step
        self.terminal = sys.stderr.isatty()
        self.began = time.perf_counter()
        self.shown = 0.0

    def show(self, done: int, loss: float) -> None:
        now = time.perf_counter()
        if now - self.shown < (0.1 if self.terminal else 10.0) and done < self.last:
            return
        self.shown = now
        elapsed = now - self.began
        rate = (done - self.first) / elapsed
        left = (self.last - done) / rate
        full = BAR * done // self.last
        sys.stderr.write(
            ("\r" if self.terminal else "")
            + f"[{'#' * full}{'.' * (BAR - full)}] {done}/{self.last}"
            + f"  loss {loss:.4f}  {rate * self.tokens_a_step:,.0f} tokens/s"
            + f"  ETA {int(left) // 60}:{int(left) % 60:02d} "
            + ("" if self.terminal else "\n")
        )
        sys.stderr.flush()

    def clear(self) -> None:
        """Leaves an empty line for other output."""
        if self.terminal:
            sys.stderr.write("\r" + " " * 79 + "\r")
            sys.stderr.flush()
