"""Numbers repeated for every dimension, and names for saved states."""

from __future__ import annotations

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int, name: str = "parse"):
    def parse(x) -> tuple:
        if isinstance(x, str) or not hasattr(x, "__iter__"):
            return (x,) * n
        return tuple(x)

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(values: tuple, n: int) -> tuple:
    """Last first, each `n` times: the order in which `pad` wants borders."""
    return tuple(value for value in reversed(values) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict: dict, prefix: str) -> None:
    """Takes `prefix` off the keys that start with it, in place; others stay as they are."""
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is None:
        return
    for key in list(metadata):
        # The entry of the wrapper itself is "", that of the wrapped module the prefix without its
        # dot.
        if len(key) == 0:
            continue
        if key == prefix.replace(".", ""):
            metadata[""] = metadata.pop(key)
        elif key.startswith(prefix):
            metadata[key[len(prefix) :]] = metadata.pop(key)
