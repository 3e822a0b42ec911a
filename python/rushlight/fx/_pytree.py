"""Taking structures apart as a description of them says."""

from __future__ import annotations

from typing import Any

from rushlight.utils._pytree import TreeSpec, tree_flatten

__all__ = ["tree_flatten_spec"]

_SEQUENCES = {tuple: (list,), list: (tuple,)}  # what code writes and what callers give


def tree_flatten_spec(pytree: Any, spec: TreeSpec) -> list[Any]:
    """The leaves of a structure; ValueError where it is not that of `spec`."""
    leaves, found = tree_flatten(pytree)
    if found == spec:
        return leaves
    if spec.num_nodes == 1:  # a leaf may be anything
        return [pytree]
    children = spec.children()
    kind = type(pytree)
    if kind not in (spec.type, *_SEQUENCES.get(spec.type, ())) or len(pytree) != len(children):
        raise ValueError(f"expected arguments of the structure {spec}, got {found}")
    if isinstance(pytree, dict):
        if set(pytree) != set(spec.context):
            raise ValueError(f"expected a dict of {list(spec.context)}, got {list(pytree)}")
        items = [pytree[key] for key in spec.context]
    else:
        items = list(pytree)
    return [leaf for item, child in zip(items, children) for leaf in tree_flatten_spec(item, child)]
