"""Recomputation instead of memory: functions that run again in the backward pass."""

from __future__ import annotations

import contextlib
import warnings

import rushlight as torch
from rushlight import Tensor
from rushlight._public import publish
from rushlight.utils._selective_checkpoint import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

__all__ = [
    "SAC_IGNORED_OPS",
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]

_early_stop: bool | None = None
_debug: bool | None = None


class DefaultDeviceType:
    """The device type whose random state checkpoints would keep beside the CPU's, by name."""

    _default_device_type = "cpu"

    @staticmethod
    def set_device_type(device: str = "cpu") -> None:
        """Sets it."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """Gives it."""
        return DefaultDeviceType._default_device_type


class CheckpointError(RuntimeError):
    """The second run did not do the same as the first one."""


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool):
    """Says, in a `with` block, whether a second run stops once it has recomputed all that is
    needed.
    """
    global _early_stop
    previous, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = previous


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None):
    """Accepted in a `with` block; errors here always list every tensor that differs."""
    global _debug
    previous, _debug = _debug, enabled
    try:
        yield
    finally:
        _debug = previous


def noop_context_fn():
    """Two contexts that do nothing, for the first and for the second run."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def detach_variable(inputs: tuple) -> tuple:
    """The tensors of a tuple, cut from their graphs and as leaves; other values stay."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: "
            f"{type(inputs).__name__}"
        )
    detached = []
    for value in inputs:
        if isinstance(value, Tensor):
            leaf = value.detach()
            leaf.requires_grad = value.requires_grad
            value = leaf
        detached.append(value)
    return tuple(detached)


def check_backward_validity(inputs) -> None:
    """Warns where no input needs a gradient, so that none will be computed."""
    if not any(value.requires_grad for value in inputs if isinstance(value, Tensor)):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2
        )


def get_device_states(*args) -> tuple[list, list]:
    """The accelerators that tensors in the arguments are on, and their generators' states."""
    from rushlight.utils._pytree import tree_leaves

    found = {
        leaf.device.index: leaf.device.type
        for leaf in tree_leaves(args)
        if isinstance(leaf, Tensor) and leaf.device.type not in ("cpu", "meta")
    }
    modules = [torch.get_device_module(kind) for kind in found.values()]
    states = [module.get_rng_state(i) for module, i in zip(modules, found, strict=True)]
    return list(found), states


def set_device_states(devices, states, *, device_type: str | None = None) -> None:
    """Sets the states of accelerators' generators, as get_device_states gave them."""
    for device, state in zip(devices, states, strict=True):
        module = torch.get_device_module(device_type)
        module.set_rng_state(state, device)


class _Surroundings:
    """Autocast and, where wanted, the state of the random numbers, to run twice in the same."""

    def __init__(self, keep_random: bool) -> None:
        self.random = torch.get_rng_state() if keep_random else None
        self.autocast = {
            "enabled": torch.is_autocast_enabled("cpu"),
            "dtype": torch.get_autocast_dtype("cpu"),
            "cache_enabled": torch.is_autocast_cache_enabled(),
        }

    @contextlib.contextmanager
    def restored(self):
        """What was kept, in a `with` block, and what is now again afterwards."""
        present = None if self.random is None else torch.get_rng_state()
        if present is not None:
            torch.set_rng_state(self.random)
        try:
            with torch.autocast("cpu", **self.autocast):
                yield
        finally:
            if present is not None:
                torch.set_rng_state(present)


class CheckpointFunction(torch.autograd.Function):
    """The older form: a node that runs its function again, with gradients, in backward."""

    @staticmethod
    def forward(ctx, run_function, preserve_rng_state, *args):
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.surroundings = _Surroundings(preserve_rng_state)
        ctx.places = [i for i, value in enumerate(args) if isinstance(value, Tensor)]
        ctx.inputs = [None if isinstance(value, Tensor) else value for value in args]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        with torch.no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx, *grads):
        if not torch.autograd._is_checkpoint_valid():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() "
                "or "
                "passing an `inputs` parameter to .backward(). To resolve this error, you can "
                "either "
                "set use_reentrant=False, or call .backward() without passing the `inputs` "
                "argument."
            )
        inputs = list(ctx.inputs)
        for place, tensor in zip(ctx.places, ctx.saved_tensors):
            inputs[place] = tensor
        leaves = detach_variable(tuple(inputs))
        with ctx.surroundings.restored(), torch.enable_grad():
            outputs = ctx.run_function(*leaves)
        if isinstance(outputs, Tensor):
            outputs = (outputs,)
        pairs = [
            (output, grad)
            for output, grad in zip(outputs, grads)
            if isinstance(output, Tensor) and output.requires_grad
        ]
        if not pairs:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        torch.autograd.backward(*map(list, zip(*pairs)))
        found = (leaf.grad if isinstance(leaf, Tensor) else None for leaf in leaves)
        return (None, None, *found)


def checkpoint(
    function,
    *args,
    use_reentrant: bool | None = None,
    context_fn=noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs,
):
    """function(*args, **kwargs) without keeping what its backward needs: it runs again there.

    Random numbers are the same in both runs unless `preserve_rng_state=False`. `use_reentrant`
    chooses the older form, which needs an input with a gradient and no keyword arguments.
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. "
            "Starting "
            "in PyTorch 2.9, calling checkpoint without use_reentrant will raise an exception. "
            "use_reentrant=False is recommended, but if you need to preserve the current default "
            "behavior, you can pass use_reentrant=True. Refer to docs for more details on the "
            "differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs and use_reentrant:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if use_reentrant:
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError(
                "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
            )
        return CheckpointFunction.apply(function, preserve, *args)
    if determinism_check not in ("default", "none"):
        raise ValueError(
            f"determinism_check should be one of ['default', 'none'], but got {determinism_check}"
        )
    run = _Run(function, args, kwargs, preserve, context_fn, determinism_check, early_stop)
    return run.first()


class _Stop(Exception):
    """Ends a second run early."""


class _Run:
    """One checkpointed call: what it saved stands as numbers, which a second run fills."""

    def __init__(
        self, function, args, kwargs, preserve, context_fn, determinism_check, early_stop
    ) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.surroundings = _Surroundings(preserve)
        self.forward_context, self.recompute_context = context_fn()
        self.check = determinism_check == "default"
        self.early_stop = early_stop if _early_stop is None else _early_stop
        self.described: list[dict] = []  # what the first run saved
        self.recomputed: dict[int, Tensor] = {}

    def first(self):
        hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack)
        with hooks, self.forward_context:
            return self.function(*self.args, **self.kwargs)

    def _pack(self, tensor: Tensor) -> int:
        self.described.append(_describe(tensor))
        return len(self.described) - 1

    def _unpack(self, number: int) -> Tensor:
        if number not in self.recomputed:
            self._again()
        return self.recomputed.pop(number)

    def _again(self) -> None:
        """Runs the function again and keeps the tensors it saves, by number."""
        found: list[Tensor] = []

        def keep(tensor: Tensor):
            found.append(tensor.detach())
            if self.early_stop and len(found) == len(self.described):
                raise _Stop
            return tensor

        hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
        with self.surroundings.restored(), hooks, self.recompute_context, torch.enable_grad():
            try:
                self.function(*self.args, **self.kwargs)
            except _Stop:
                pass
        self._check_found(found)
        self.recomputed = dict(enumerate(found))

    def _check_found(self, found: list[Tensor]) -> None:
        if len(found) != len(self.described):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the "
                "original "
                "forward and recomputation.\n"
                f"Number of tensors saved during forward: {len(self.described)}\n"
                f"Number of tensors saved during recomputation: {len(found)}."
            )
        if not self.check:
            return
        lines = [
            f"tensor at position {number}:\nsaved metadata: {before}\nrecomputed metadata: {after}"
            for number, (before, after) in enumerate(zip(self.described, map(_describe, found)))
            if before != after
        ]
        if lines:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have "
                "different "
                "metadata than during the forward pass.\n" + "\n".join(lines)
            )


def _describe(tensor: Tensor) -> dict:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


def checkpoint_sequential(
    functions, segments: int, input: Tensor, use_reentrant: bool | None = None, **kwargs
) -> Tensor:
    """Runs modules one after the other; all but the last of `segments` stretches are
    checkpointed.
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be "
            "passed "
            "explicitly.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if isinstance(functions, torch.nn.Sequential):
        functions = list(functions.children())

    def stretch(start: int, end: int):
        def forward(input: Tensor) -> Tensor:
            for function in functions[start:end]:
                input = function(input)
            return input

        return forward

    size = len(functions) // segments
    end = 0
    for start in range(0, size * (segments - 1), size):
        end = start + size
        input = checkpoint(
            stretch(start, end),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve,
        )
    return stretch(end, len(functions))(input)


publish(__name__, CheckpointPolicy, SelectiveCheckpointContext)
