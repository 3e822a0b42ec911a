"""Selective checkpointing: which operators' results a checkpointed function keeps.

The first run keeps the results that a policy names; the second run takes them instead of computing
them again.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import rushlight as torch
from rushlight import Tensor
from rushlight.utils._python_dispatch import TorchDispatchMode
from rushlight.utils._pytree import tree_map

# Views without a cost: asking the policy about them would only slow it down.
SAC_IGNORED_OPS = {torch.ops.aten.detach.default}


class CheckpointPolicy(enum.Enum):
    """What becomes of an operator's result. MUST also binds compilers, PREFER lets them choose.

    Offloaded results are kept: they are in the CPU's memory already.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_RECOMPUTED = (CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE)


class SelectiveCheckpointContext:
    """What a policy is told of a call: whether it is in the second run, and its result."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


class _Kept:
    """A result, and its version when it was kept."""

    def __init__(self, value: Any) -> None:
        self.value = value.detach() if isinstance(value, Tensor) else value
        self.version = value._version if isinstance(value, Tensor) else None

    def get(self, allow_mutation: bool) -> Any:
        if self.version is not None and not allow_mutation and self.value._version != self.version:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated"
            )
        return self.value


class _SelectiveMode(TorchDispatchMode):
    """Asks the policy about each operator of a run."""

    is_recompute = False

    def __init__(self, policy: Callable, storage: dict[Any, list]) -> None:
        super().__init__()
        self.policy = policy
        self.storage = storage

    def _is_kept(self, func: Any, args: tuple, kwargs: dict, output: Any = None) -> bool:
        context = SelectiveCheckpointContext(is_recompute=self.is_recompute, op_output=output)
        policy = self.policy(context, func, *args, **kwargs)
        return policy if isinstance(policy, bool) else policy not in _RECOMPUTED


class _CachingMode(_SelectiveMode):
    """The first run: keeps results."""

    def __torch_dispatch__(
        self, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        output = func(*args, **kwargs)
        if func not in SAC_IGNORED_OPS and self._is_kept(func, args, kwargs, output):
            self.storage[func].append(tree_map(_Kept, output))
        return output


class _CachedMode(_SelectiveMode):
    """The second run: takes the results that the first one kept, in its order."""

    is_recompute = True

    def __init__(self, policy: Callable, storage: dict[Any, list], allow_mutation: bool) -> None:
        super().__init__(policy, storage)
        self.allow_mutation = allow_mutation

    def __torch_dispatch__(
        self, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in SAC_IGNORED_OPS or not self._is_kept(func, args, kwargs):
            return func(*args, **kwargs)
        if func not in self.storage:
            raise RuntimeError(f"{func} encountered during backward, but not found in storage")
        if not self.storage[func]:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any "
                "region computed under selective activation checkpoint."
            )
        return tree_map(lambda kept: kept.get(self.allow_mutation), self.storage[func].pop(0))


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Callable | list, allow_cache_entry_mutation: bool = False
) -> tuple[_CachingMode, _CachedMode]:
    """Contexts for checkpoint(context_fn=...): of operators to keep, or of a policy.

    policy_fn_or_list: overloads whose results are kept, such as torch.ops.aten.mm.default; or a
    function of (context, operator, *args, **kwargs) that gives a CheckpointPolicy.
    """
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if type(op).__name__ != "OpOverload":
                shown = f"Expected op in `op_list` to be an OpOverload but got: {op} of type "
                shown += f"{type(op)}."
                if type(op).__name__ in ("OpOverloadPacket", "CustomPacket"):
                    shown += " Please update the OpOverloadPacket to a specific OpOverload."
                    shown += "For example, if you have `torch.ops.aten.mm`, change it to "
                    shown += "`torch.ops.aten.mm.default`."
                raise ValueError(shown)
        kept = set(policy_fn_or_list)

        def policy(context: SelectiveCheckpointContext, op: Any, *_: Any, **__: Any) -> Any:
            return CheckpointPolicy.MUST_SAVE if op in kept else CheckpointPolicy.PREFER_RECOMPUTE

    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage: dict[Any, list] = defaultdict(list)
    return (
        _CachingMode(policy, storage),
        _CachedMode(policy, storage, allow_cache_entry_mutation),
    )
