"""The lists and dicts in nodes' arguments."""

from rushlight.fx.node import immutable_dict, immutable_list

__all__ = ["immutable_dict", "immutable_list"]
