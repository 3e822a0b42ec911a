"""Versions that compare with strings and tuples, as torch.__version__ does."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from rushlight.version import __version__ as internal_version

_FORM = re.compile(
    r"v?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[-_.]?(?P<pre>a|b|c|rc|alpha|beta|preview|pre)[-_.]?(?P<pre_number>\d*))?"
    r"(?:-(?P<post_short>\d+)|[-_.]?(?P<post>post|rev|r)[-_.]?(?P<post_number>\d*))?"
    r"(?:[-_.]?(?P<dev>dev)[-_.]?(?P<dev_number>\d*))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?",
    re.IGNORECASE,
)
_STAGES = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "rc": 2, "pre": 2, "preview": 2}


def _key(version: str) -> tuple | None:
    """Where a version stands among others by PEP 440, or None where it is no version."""
    found = _FORM.fullmatch(version.strip())
    if found is None:
        return None
    release = [int(part) for part in found["release"].split(".")]
    while release[-1:] == [0]:
        release.pop()
    after = found["post"] is not None or found["post_short"] is not None
    stage = _STAGES.get((found["pre"] or "").lower(), -1 if found["dev"] and not after else 3)
    before = int(found["pre_number"] or 0)
    post = int(found["post_short"] or found["post_number"] or 0) if after else -1
    dev = int(found["dev_number"] or 0) if found["dev"] else float("inf")
    local = [
        (1, int(part), "") if part.isdigit() else (0, 0, part)
        for part in re.split(r"[-_.]", (found["local"] or "").lower())
        if part
    ]
    return tuple(release), stage, before, post, dev, tuple(local)


def _text(other: Any) -> str | None:
    """A string or a tuple of numbers as a version, None where it is neither."""
    if isinstance(other, str):
        return other
    if isinstance(other, Iterable):
        text = ".".join(map(str, other))
        return text if _key(text) is not None else None
    return None


class TorchVersion(str):
    """A version as a string. Compared with strings and tuples it orders by PEP 440.

    A string that is no version is compared as a string.
    """

    def _pair(self, other: Any) -> tuple[Any, Any] | None:
        text = _text(other)
        if text is None:
            return None
        mine, others = _key(self), _key(text)
        if mine is None or others is None:
            return str(self), str(text)
        return mine, others

    def __eq__(self, other: object) -> bool:
        pair = self._pair(other)
        return NotImplemented if pair is None else pair[0] == pair[1]

    def __lt__(self, other: Any) -> bool:
        pair = self._pair(other)
        return NotImplemented if pair is None else pair[0] < pair[1]

    def __gt__(self, other: Any) -> bool:
        pair = self._pair(other)
        return NotImplemented if pair is None else pair[0] > pair[1]

    def __le__(self, other: Any) -> bool:
        pair = self._pair(other)
        return NotImplemented if pair is None else pair[0] <= pair[1]

    def __ge__(self, other: Any) -> bool:
        pair = self._pair(other)
        return NotImplemented if pair is None else pair[0] >= pair[1]

    __hash__ = str.__hash__


__version__ = TorchVersion(internal_version)
