"""How tensors print."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager

from rushlight import _C
from rushlight._C import Tensor

_NO_LIMIT = 2**62


@dataclasses.dataclass
class __PrinterOptions:
    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PRINT_OPTS = __PrinterOptions()

_PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Sets how tensors print.

    Args:
        precision: digits after the point.
        threshold: tensors with more elements are summarised.
        edgeitems: elements shown at each end of a summarised dimension.
        linewidth: characters a line.
        profile: "default", "short" or "full"; the other arguments change single values of it.
        sci_mode: True or False forces scientific notation on or off; None leaves it to the values.
    """
    values = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    chosen = {**_PROFILES.get(profile or "", {})}
    chosen.update({name: value for name, value in values.items() if value is not None})
    for name, value in chosen.items():
        setattr(PRINT_OPTS, name, value)
    PRINT_OPTS.sci_mode = sci_mode
    _apply()


def _apply() -> None:
    options = PRINT_OPTS
    threshold = _NO_LIMIT if options.threshold == math.inf else int(options.threshold)
    _C._set_print_options(
        options.precision, threshold, options.edgeitems, options.linewidth, options.sci_mode
    )


def get_printoptions() -> dict[str, object]:
    """The options in force."""
    return dataclasses.asdict(PRINT_OPTS)


@contextmanager
def printoptions(**kwargs: object) -> Iterator[None]:
    """Within the block, tensors print with these options."""
    saved = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        set_printoptions(**saved)


_SUFFIX = re.compile(r"(,\s+\w+=.*)?\)\Z", re.DOTALL)


def _tensor_str(self: Tensor, indent: int) -> str:
    """The elements as a tensor prints them; lines after the first begin with `indent` spaces."""
    text = _C._tensor_text(self.detach(), "x" * (indent - 1))
    text = _SUFFIX.sub("", text[max(indent, 1) :])
    return text if indent else text.replace("\n ", "\n")


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """A text and what comes after a comma each, wrapped into lines, and the closing bracket."""
    used = len(tensor_str) - tensor_str.rfind("\n") + 1
    for suffix in suffixes:
        if force_newline or used + len(suffix) + 2 > PRINT_OPTS.linewidth:
            tensor_str += ",\n" + " " * indent + suffix
            used = indent + len(suffix)
            force_newline = False
        else:
            tensor_str += f", {suffix}"
            used += len(suffix) + 2
    return tensor_str + ")"
