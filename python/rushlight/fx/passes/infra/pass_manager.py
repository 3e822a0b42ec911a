"""PassManager: several passes over a module, one after another."""

from __future__ import annotations

import functools
import inspect
import logging
from collections import deque
from collections.abc import Callable

from rushlight.fx.graph_module import GraphModule
from rushlight.fx.passes.infra.pass_base import PassResult
from rushlight.nn.modules.module import Module

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]

_log = logging.getLogger(__name__)


def _name(fn: Callable) -> str:
    return fn.__name__ if inspect.isfunction(fn) else type(fn).__name__


def pass_result_wrapper(fn: Callable | None) -> Callable | None:
    """A pass of a function that changes a module in place, or gives another one."""
    if fn is None:
        return None

    @functools.wraps(fn)
    def wrapped(module: Module) -> PassResult:
        result = fn(module)
        if result is None:
            return PassResult(module, True)
        if isinstance(result, PassResult):
            return result
        if isinstance(result, Module):
            return PassResult(result, True)
        raise TypeError(
            f"pass {_name(fn)} must give None, a module or a PassResult, got {type(result)}"
        )

    if not inspect.isfunction(fn):
        wrapped.__name__ = str(type(fn))
    return wrapped


def this_before_that_pass_constraint(this: Callable, that: Callable) -> Callable:
    """A constraint: `this` runs before `that`."""

    def fits(a: Callable, b: Callable) -> bool:
        return not (a == that and b == this)

    return fits


class PassManager:
    """Runs passes, functions of a module that give a PassResult.

    constraints: functions of two passes that say whether the first may run before the second; the
    passes are put into an order that they allow. steps: how often all passes run, until none
    changes the module. run_checks_after_each_pass: with the checks that `add_checks` adds;
    suppress_check_failures: those that fail are logged.
    """

    def __init__(
        self,
        passes: list[Callable] | None = None,
        constraints: list[Callable] | None = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        self.passes = passes or []
        self.constraints = constraints or []
        self.steps = steps or 1
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self._validated = False

    def add_pass(self, _pass: Callable) -> None:
        """Adds a pass after the others."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Callable) -> None:
        """Adds a constraint."""
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self) -> None:
        """RuntimeError where the order of the passes is not allowed."""
        if self._validated:
            return
        for constraint in self.constraints:
            for number, this in enumerate(self.passes):
                for after, that in enumerate(self.passes[number + 1 :], number + 1):
                    if not constraint(this, that):
                        raise RuntimeError(
                            f"pass schedule constraint violated. Expected {that} before {this} but "
                            f"found {this} at index {number} and {that} at index {after} in pass "
                            "list."
                        )
        self._validated = True

    def solve_constraints(self) -> None:
        """Puts the passes into an order that is allowed. RuntimeError where there is none."""
        after: dict[int, list[int]] = {number: [] for number in range(len(self.passes))}
        waits = dict.fromkeys(after, 0)
        for a in after:
            for b in after:
                if a != b and not all(c(self.passes[b], self.passes[a]) for c in self.constraints):
                    after[a].append(b)
                    waits[b] += 1
        ready = deque(number for number, count in waits.items() if count == 0)
        order = []
        while ready:
            number = ready.popleft()
            order.append(number)
            for later in after[number]:
                waits[later] -= 1
                if waits[later] == 0:
                    ready.append(later)
        if len(order) != len(self.passes):
            stuck = [_name(self.passes[number]) for number in after if number not in order]
            raise RuntimeError(f"Circular dependency detected within the following passes: {stuck}")
        self.passes = [self.passes[number] for number in order]
        self._validated = True

    def add_checks(self, check: Callable) -> None:
        """Adds a function of a module that raises where it is not as it should be."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.check = check

    def check(self, module: Module) -> None:
        """What `add_checks` replaces."""

    def __call__(self, module: Module) -> PassResult:
        if not self._validated:
            self.solve_constraints()
        self._check(module, None)
        changed = False
        for _ in range(self.steps):
            changed_now = False
            for number, fn in enumerate(self.passes):
                result = self._run(fn, module, self.passes[:number])
                module = result.graph_module
                changed_now = changed_now or result.modified
                if isinstance(module, GraphModule):
                    module.recompile()
                if self.run_checks_after_each_pass:
                    self._check(module, fn)
            changed = changed or changed_now
            if not changed_now:
                break
        return PassResult(module, changed)

    def _check(self, module: Module, fn: Callable | None) -> None:
        try:
            self.check(module)
        except Exception:
            if not self.suppress_check_failures:
                raise
            _log.exception("a check failed after the pass %s", fn and _name(fn))

    def _run(self, fn: Callable, module: Module, before: list[Callable]) -> PassResult:
        try:
            result = fn(module)
            if not isinstance(result, PassResult) and not hasattr(result, "graph_module"):
                raise TypeError(
                    f"The result of the pass {_name(fn)} should be type PassResult. Please wrap it "
                    "with pass_result_wrapper()"
                )
            return result
        except Exception as error:
            names = [_name(one) for one in before]
            raise Exception(
                f"An error occurred when running the '{_name(fn)}' pass after the following "
                f"passes: {names}"
            ) from error
