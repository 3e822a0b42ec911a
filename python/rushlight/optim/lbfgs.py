"""L-BFGS (Liu & Nocedal, 1989)."""

from __future__ import annotations

import rushlight as torch
from rushlight import Tensor

from ._line_search import strong_wolfe
from .optimizer import Optimizer, _to_scalar, _without_grad

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """Quasi-Newton steps from the last `history_size` changes of gradient.

    One call of `step` does up to `max_iter` iterations and evaluates the closure many times. One
    group only. `line_search_fn` is None or "strong_wolfe".
    """

    def __init__(
        self,
        params,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 <= lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]
        self._numel_cache: int | None = None

    def _numel(self) -> int:
        if self._numel_cache is None:
            self._numel_cache = sum(
                2 * p.numel() if torch.is_complex(p) else p.numel() for p in self._params
            )
        return self._numel_cache

    def _gather_flat_grad(self) -> Tensor:
        parts = []
        for parameter in self._params:
            if parameter.grad is None:
                part = parameter.new_zeros(parameter.numel())
            elif parameter.grad.is_sparse:
                part = parameter.grad.to_dense().view(-1)
            else:
                part = parameter.grad.reshape(-1)
            parts.append(torch.view_as_real(part).view(-1) if torch.is_complex(part) else part)
        return torch.cat(parts, 0)

    def _add_grad(self, step_size, update: Tensor) -> None:
        start = 0
        for parameter in self._params:
            if torch.is_complex(parameter):
                parameter = torch.view_as_real(parameter)
            count = parameter.numel()
            parameter.add_(update[start : start + count].view_as(parameter), alpha=step_size)
            start += count

    def _clone_param(self) -> list[Tensor]:
        return [p.clone(memory_format=torch.contiguous_format) for p in self._params]

    def _set_param(self, params_data: list[Tensor]) -> None:
        for parameter, data in zip(self._params, params_data):
            parameter.copy_(data)

    def _directional_evaluate(self, closure, x: list[Tensor], t, d: Tensor):
        self._add_grad(t, d)
        loss = float(closure())
        gradient = self._gather_flat_grad()
        self._set_param(x)
        return loss, gradient

    @_without_grad
    def step(self, closure):
        """Runs up to `max_iter` iterations; `closure` computes the loss and the gradients."""

        def evaluate():
            with torch.enable_grad():
                return closure()

        group = self.param_groups[0]
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = evaluate()
        loss = float(first_loss)
        evaluations = 1
        state["func_evals"] += 1
        gradient = self._gather_flat_grad()
        if gradient.abs().max() <= group["tolerance_grad"]:
            return first_loss
        memory = _Memory.load(state)
        iterations = 0
        while iterations < group["max_iter"]:
            iterations += 1
            state["n_iter"] += 1
            memory.next_direction(gradient, group["history_size"], state["n_iter"])
            memory.previous_loss = loss
            lr = _to_scalar(group["lr"])
            if state["n_iter"] == 1:
                memory.t = min(1.0, 1.0 / gradient.abs().sum()) * lr
            else:
                memory.t = lr
            slope = gradient.dot(memory.d)
            if slope > -group["tolerance_change"]:
                break
            used = 0
            if group["line_search_fn"] is not None:
                if group["line_search_fn"] != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                start = self._clone_param()

                def along(t, d, start=start):
                    return self._directional_evaluate(evaluate, start, t, d)

                loss, gradient, memory.t, used = strong_wolfe(
                    along, memory.t, memory.d, loss, gradient, slope
                )
                self._add_grad(memory.t, memory.d)
                done = gradient.abs().max() <= group["tolerance_grad"]
            else:
                self._add_grad(memory.t, memory.d)
                done = False
                if iterations != group["max_iter"]:
                    loss = float(evaluate())
                    gradient = self._gather_flat_grad()
                    done = gradient.abs().max() <= group["tolerance_grad"]
                    used = 1
            evaluations += used
            state["func_evals"] += used
            if (
                iterations == group["max_iter"]
                or evaluations >= group["max_eval"]
                or done
                or memory.d.mul(memory.t).abs().max() <= group["tolerance_change"]
                or abs(loss - memory.previous_loss) < group["tolerance_change"]
            ):
                break
        memory.save(state)
        return first_loss


class _Memory:
    """What passes from one iteration to the next: direction, step and the history of changes."""

    NAMES = ("d", "t", "old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss")

    def __init__(self) -> None:
        self.d: Tensor | None = None
        self.t: float | Tensor | None = None
        self.old_dirs: list[Tensor] = []  # changes of the gradient
        self.old_stps: list[Tensor] = []  # changes of the parameters
        self.ro: list[Tensor] = []  # one over their products
        self.H_diag: float | Tensor = 1
        self.prev_flat_grad: Tensor | None = None
        self.previous_loss: float | None = None
        self.al: list | None = None

    @staticmethod
    def load(state: dict) -> _Memory:
        memory = _Memory()
        if "d" in state:
            for name in _Memory.NAMES[:-1]:
                setattr(memory, name, state[name])
            memory.previous_loss = state["prev_loss"]
            memory.al = state.get("al")
        return memory

    def save(self, state: dict) -> None:
        if self.al is not None:
            state["al"] = self.al
        for name in self.NAMES[:-1]:
            state[name] = getattr(self, name)
        state["prev_loss"] = self.previous_loss

    def next_direction(self, gradient: Tensor, history_size: int, iteration: int) -> None:
        """The next direction of descent, by the two-loop recursion."""
        if iteration == 1:
            self.d = gradient.neg()
            self.old_dirs, self.old_stps, self.ro, self.H_diag = [], [], [], 1
        else:
            change = gradient.sub(self.prev_flat_grad)
            moved = self.d.mul(self.t)
            product = change.dot(moved)
            if product > 1e-10:
                if len(self.old_dirs) == history_size:
                    self.old_dirs.pop(0)
                    self.old_stps.pop(0)
                    self.ro.pop(0)
                self.old_dirs.append(change)
                self.old_stps.append(moved)
                self.ro.append(1.0 / product)
                self.H_diag = product / change.dot(change)
            count = len(self.old_dirs)
            if self.al is None:
                self.al = [None] * history_size
            q = gradient.neg()
            for i in range(count - 1, -1, -1):
                self.al[i] = self.old_stps[i].dot(q) * self.ro[i]
                q.add_(self.old_dirs[i], alpha=-self.al[i])
            self.d = direction = torch.mul(q, self.H_diag)
            for i in range(count):
                back = self.old_dirs[i].dot(direction) * self.ro[i]
                direction.add_(self.old_stps[i], alpha=self.al[i] - back)
        if self.prev_flat_grad is None:
            self.prev_flat_grad = gradient.clone(memory_format=torch.contiguous_format)
        else:
            self.prev_flat_grad.copy_(gradient)
