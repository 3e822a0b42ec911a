"""Samples to batches."""

from __future__ import annotations

import copy
import re

import rushlight as torch
from rushlight import Tensor

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]

np_str_obj_array_pattern = re.compile(r"[SaUO]")  # dtypes of arrays that make no tensors
_ERROR = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def _is_numpy(value: object) -> bool:
    return type(value).__module__ == "numpy"


def _is_mapping(value: object) -> bool:
    from collections.abc import Mapping

    return isinstance(value, Mapping)


def _is_sequence(value: object) -> bool:
    from collections.abc import Sequence

    return isinstance(value, Sequence)


def _rebuilt(sample, values, mutable: bool):
    """`values` in a container like `sample`, or in a plain one where that cannot be built."""
    try:
        if mutable:
            filled = copy.copy(sample)
            if isinstance(values, dict):
                filled.update(values)
            else:
                for index, value in enumerate(values):
                    filled[index] = value
            return filled
        return type(sample)(values)
    except TypeError:
        return values


def _is_mutable(value: object) -> bool:
    from collections.abc import MutableMapping, MutableSequence

    return isinstance(value, MutableMapping | MutableSequence)


def default_convert(data):
    """NumPy values become tensors, inside containers too; all else stays."""
    if isinstance(data, Tensor):
        return data
    if _is_numpy(data):
        kind = getattr(getattr(data, "dtype", None), "kind", "")
        if kind in "SUO" and type(data).__name__ == "ndarray":
            return data
        return torch.as_tensor(data)
    if _is_mapping(data):
        values = {key: default_convert(data[key]) for key in data}
        return _rebuilt(data, values, _is_mutable(data))
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(value) for value in data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if _is_sequence(data) and not isinstance(data, str | bytes):
        values = [default_convert(value) for value in data]
        return _rebuilt(data, values, _is_mutable(data))
    return data


def collate_tensor_fn(batch, *, collate_fn_map=None) -> Tensor:
    """Tensors, stacked."""
    return torch.stack(batch, 0)


def collate_numpy_array_fn(batch, *, collate_fn_map=None) -> Tensor:
    """NumPy arrays as one tensor."""
    if batch[0].dtype.kind in "SUO":
        raise TypeError(_ERROR.format(batch[0].dtype))
    return collate([torch.as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch, *, collate_fn_map=None) -> Tensor:
    """NumPy numbers as a vector."""
    return torch.as_tensor(batch)


def collate_float_fn(batch, *, collate_fn_map=None) -> Tensor:
    """Floats as a float64 vector."""
    return torch.tensor(batch, dtype=torch.float64)


def collate_int_fn(batch, *, collate_fn_map=None) -> Tensor:
    """Integers as a vector."""
    return torch.tensor(batch)


def collate_str_fn(batch, *, collate_fn_map=None):
    """Strings as they are."""
    return batch


default_collate_fn_map: dict = {
    Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def collate(batch, *, collate_fn_map: dict | None = None):
    """A batch of equal samples: functions of the map at the leaves, containers rebuilt around them.

    The map goes from types, or tuples of types, to functions of the batch.
    """
    sample = batch[0]
    kind = type(sample)
    if collate_fn_map is not None:
        if kind in collate_fn_map:
            return collate_fn_map[kind](batch, collate_fn_map=collate_fn_map)
        for known, function in collate_fn_map.items():
            if isinstance(sample, known):
                return function(batch, collate_fn_map=collate_fn_map)
    if _is_mapping(sample):
        values = {
            key: collate([each[key] for each in batch], collate_fn_map=collate_fn_map)
            for key in sample
        }
        return _rebuilt(sample, values, _is_mutable(sample))
    if isinstance(sample, tuple) and hasattr(sample, "_fields"):
        return kind(*(collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch)))
    if _is_sequence(sample) and not isinstance(sample, str | bytes):
        size = len(sample)
        if not all(len(each) == size for each in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch)]
        if isinstance(sample, tuple):
            return columns
        return _rebuilt(sample, columns, _is_mutable(sample))
    raise TypeError(_ERROR.format(kind))


def _map_with_numpy() -> dict:
    """The default map; with NumPy's types, once something has imported NumPy."""
    import sys

    numpy = sys.modules.get("numpy")
    if numpy is not None and numpy.ndarray not in default_collate_fn_map:
        scalars = (numpy.bool_, numpy.number, numpy.object_)
        default_collate_fn_map[numpy.ndarray] = collate_numpy_array_fn
        default_collate_fn_map[scalars] = collate_numpy_scalar_fn
    return default_collate_fn_map


def default_collate(batch):
    """Stacks tensors and arrays, makes vectors of numbers, and rebuilds containers around them."""
    return collate(batch, collate_fn_map=_map_with_numpy())
