"""Calls of a module with other tensors in the places of its own."""

from __future__ import annotations

from rushlight._C import Tensor

__all__ = ["functional_call"]


def functional_call(
    module,
    parameters_and_buffers: dict,
    args=None,
    kwargs: dict | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
):
    """Superseded by `func.functional_call`."""
    import warnings

    warnings.warn(
        "This API is deprecated as of PyTorch 2.0 and will be removed in a future version of "
        "PyTorch. "
        "Please use torch.func.functional_call instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def _functional_call(
    module,
    parameters_and_buffers: dict,
    args=None,
    kwargs: dict | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
):
    """Calls `module` with the given tensors, by dotted path, in the places of its own.

    With `tie_weights`, a tensor known under several paths is replaced under all of them. With
    `strict`, every tensor of the module must be given.
    """
    own = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    replacements = dict(parameters_and_buffers)
    if tie_weights:
        _tie(own, replacements)
    if strict:
        _check_strict(module, own, replacements)
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    saved = []
    try:
        for path, tensor in replacements.items():
            saved.append(_swap(module, path, tensor))
        return module(*args, **(kwargs or {}))
    finally:
        for table, name, tensor in reversed(saved):
            if tensor is _ABSENT:
                table.pop(name, None)
            else:
                table[name] = tensor


def _tie(own: dict, replacements: dict) -> None:
    paths: dict[int, list[str]] = {}
    for path, tensor in own.items():
        paths.setdefault(id(tensor), []).append(path)
    for path in list(replacements):
        for other in paths.get(id(own.get(path)), []):
            if other not in replacements:
                replacements[other] = replacements[path]
            elif replacements[other] is not replacements[path]:
                raise ValueError(
                    f"functional_call got multiple values for keys {sorted([path, other])}, which "
                    "are tied. Consider using tie_weights=False"
                )


_ABSENT = object()


def _check_strict(module, own: dict, replacements: dict) -> None:
    missing = own.keys() - replacements.keys()
    unexpected = replacements.keys() - own.keys()
    parts = []
    if unexpected:
        parts.append("Unexpected key(s): " + ", ".join(map(repr, sorted(unexpected))) + ".")
    if missing:
        parts.append("Missing key(s): " + ", ".join(map(repr, sorted(missing))) + ".")
    if parts:
        raise RuntimeError(
            f"Error(s) in reparametrizing for {module._get_name()}:\n\t" + "\n\t".join(parts)
        )


def _swap(module, path: str, tensor) -> tuple[dict, str, object]:
    """Puts one tensor in; gives where it was, its name and what was there."""
    owner_path, _, name = path.rpartition(".")
    owner = module.get_submodule(owner_path)
    if tensor is not None and not isinstance(tensor, Tensor):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    for table in (owner._parameters, owner._buffers):
        if name in table:
            previous = table[name]
            table[name] = tensor
            return table, name, previous
    table = owner.__dict__  # a name that the module has not: its forward may ask for it
    previous = table.get(name, _ABSENT)
    table[name] = tensor
    return table, name, previous
