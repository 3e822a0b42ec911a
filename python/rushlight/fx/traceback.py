"""Where a node of a graph came from."""

from __future__ import annotations


def has_preserved_node_meta() -> bool:
    """Whether new nodes take over the meta of those that they come from: they do not."""
    return False
