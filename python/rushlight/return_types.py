"""The named tuples that operators with several results give, and those of out= (max_out)."""

from rushlight import _C

all_return_types = [t for name, t in sorted(vars(_C._return_types).items()) if name[0] != "_"]
globals().update({t.__name__: t for t in all_return_types})


def pytree_register_structseq(cls: type) -> None:
    """Makes objects of a named tuple's class, such as one of this module, nodes of pytrees."""
    from rushlight.utils import _pytree

    def flatten_with_keys(values: tuple) -> tuple[list, None]:
        names = cls.__match_args__
        return [(_pytree.GetAttrKey(n), v) for n, v in zip(names, values, strict=True)], None

    _pytree.register_pytree_node(
        cls,
        lambda values: (list(values), None),
        lambda values, _: cls(values),
        flatten_with_keys_fn=flatten_with_keys,
    )
