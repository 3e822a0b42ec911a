"""The graph of recorded operators: nodes, edges, and hooks on what it saves."""

from __future__ import annotations

import abc
import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from rushlight import _C
from rushlight._C import Tensor
from rushlight.utils.hooks import RemovableHandle

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "region_activation_memory_budget",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


class Node(abc.ABC):
    """A step of the graph: what a recorded operator, a custom function or a leaf left there."""

    @abc.abstractmethod
    def name(self) -> str:
        """Its name, like MulBackward0."""

    @property
    @abc.abstractmethod
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """Where its gradients go: pairs of a node and which of the node's inputs."""

    @abc.abstractmethod
    def metadata(self) -> dict:
        """A dict for notes."""

    @abc.abstractmethod
    def register_hook(self, fn: Callable) -> RemovableHandle:
        """Calls fn(grad_inputs, grad_outputs) after the node ran; it may give new grad_inputs."""

    @abc.abstractmethod
    def register_prehook(self, fn: Callable) -> RemovableHandle:
        """Calls fn(grad_outputs) before the node runs; it may give new grad_outputs."""

    @classmethod
    def __subclasshook__(cls, subclass: type) -> bool:
        if cls is Node and issubclass(subclass, (_C._Node, _C._FunctionBase)):
            return True
        return NotImplemented


class GradientEdge(NamedTuple):
    """Where a tensor's gradient enters the graph: input `output_nr` of `node`."""

    node: Node
    output_nr: int
    # Keeps the graph of a custom function alive.
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge of a tensor, which stands for it in `backward` and `grad`."""
    return GradientEdge(*_C._gradient_edge(tensor))


def increment_version(tensor: Tensor | Sequence[Tensor]) -> None:
    """Says that a tensor was written in a way that the library did not see."""
    for item in (tensor,) if isinstance(tensor, Tensor) else tensor:
        _C._increment_version(item)


class saved_tensors_hooks:
    """Context in which pack_hook(tensor) is kept instead of each tensor saved for backward, and
    unpack_hook of that is used in its place.
    """

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        _C._push_saved_tensors_default_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *_: object) -> None:
        _C._pop_saved_tensors_default_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Context in which saved tensors are kept in the CPU's memory and moved back when needed."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Tensor) -> tuple:
            return tensor.device, tensor.cpu()

        def unpack(packed: tuple) -> Tensor:
            device, tensor = packed
            return tensor.to(device)

        super().__init__(pack, unpack)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Context in which saved-tensor hooks are an error with this message."""
    before = _C._saved_tensors_hooks_disable(error_message)
    try:
        yield
    finally:
        _C._saved_tensors_hooks_disable(before)


class _MultiHandle(RemovableHandle):
    handles: tuple[RemovableHandle, ...]

    def __init__(self, handles: tuple[RemovableHandle, ...]) -> None:
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __getstate__(self) -> tuple:
        return self.handles

    def __setstate__(self, state: tuple) -> None:
        self.handles = state


def _edge(tensor: Tensor | GradientEdge) -> GradientEdge:
    return tensor if isinstance(tensor, GradientEdge) else get_gradient_edge(tensor)


def register_multi_grad_hook(
    tensors: Sequence[Tensor] | Sequence[GradientEdge],
    fn: Callable,
    *,
    mode: Literal["all", "any"] = "all",
) -> RemovableHandle:
    """Calls fn when gradients of several tensors are there.

    "all": fn(grads), once a backward call, with None for tensors that it does not reach.
    "any": fn(grad) with the first gradient.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    if mode == "any":
        return _register_any(tensors, fn)
    lock = threading.Lock()
    counts: dict[int, int] = {}
    expected: dict[int, int] = {}
    gradients: dict[int, list] = {}
    edges = [_edge(tensor) for tensor in tensors]

    def on_gradient(position: int) -> Callable:
        def hook(gradient: Tensor) -> None:
            task = _C._task_id()
            with lock:
                if task not in gradients:
                    gradients[task] = [None] * len(edges)
                    counts[task] = 0
                    expected[task] = sum(_C._will_run(edge.node) for edge in edges)
                gradients[task][position] = gradient
                counts[task] += 1
                complete = counts[task] == expected[task]
                given = gradients.pop(task) if complete else None
                if complete:
                    del counts[task], expected[task]
            if given is not None:
                fn(given)

        return hook

    return _MultiHandle(
        tuple(_register_on_edge(edge, on_gradient(position)) for position, edge in enumerate(edges))
    )


def _register_any(tensors: Sequence, fn: Callable) -> RemovableHandle:
    lock = threading.Lock()
    last_task: list[int | None] = [None]

    def hook(gradient: Tensor) -> None:
        task = _C._task_id()
        with lock:
            ran, last_task[0] = last_task[0] == task, task
        if not ran:
            fn(gradient)

    return _MultiHandle(tuple(_register_on_edge(_edge(t), hook) for t in tensors))


def _register_on_edge(edge: GradientEdge, hook: Callable) -> RemovableHandle:
    hooks = _C._tensor_hooks(edge)
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def allow_mutation_on_saved_tensors() -> contextlib.AbstractContextManager:
    """Context in which tensors that backward needs may be written in place: they are copied first.

    Backward has to run inside it too. It yields the record of saved tensors, whose clear() frees
    them early.
    """
    from rushlight.autograd import _saved_mutation

    return _saved_mutation.allow_mutation_on_saved_tensors()


@contextlib.contextmanager
def region_activation_memory_budget(budget: float) -> Iterator[None]:
    """While entered in a compiled function, how much of what is saved for backward is kept.

    1 keeps all but what costs no time to compute again, 0 only what cannot be computed again
    cheaply; overrides `torch._functorch.config.activation_memory_budget`. The region's operators
    make graphs of their own. TypeError, ValueError: no number in [0, 1]. RuntimeError: outside
    compiled functions.
    """
    name = "torch.autograd.graph.region_activation_memory_budget"
    if isinstance(budget, bool) or not isinstance(budget, (int, float)):
        raise TypeError(f"{name}: expects a float, got {type(budget).__name__}")
    if not 0 <= budget <= 1:
        raise ValueError(f"{name}: must be in [0, 1], got {budget}")
    before = _C._capture_enter_budget(float(budget))
    try:
        yield
    finally:
        _C._capture_leave_budget(before)
