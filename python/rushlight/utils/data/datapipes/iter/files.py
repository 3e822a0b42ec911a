"""Pipes of files: their paths, streams of them, and what streams hold."""

from __future__ import annotations

import fnmatch
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import IO

from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe

__all__ = ["FileListerIterDataPipe", "FileOpenerIterDataPipe", "StreamReaderIterDataPipe"]


def _matches(name: str, masks: str | list[str]) -> bool:
    patterns = [masks] if isinstance(masks, str) else masks
    return not masks or any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def _warn(error: OSError) -> None:
    warnings.warn(str(error), stacklevel=2)
    raise error


def _files(root: str, recursive: bool, sort: bool) -> Iterator[tuple[str, str]]:
    """(folder, name) of the files of a folder, then of those below it."""
    for folder, folders, names in os.walk(root, onerror=_warn):
        if sort:
            folders.sort()
            names.sort()
        yield from ((folder, name) for name in names)
        if not recursive:
            return


class _Counted(IterDataPipe):
    """A pipe whose length is what it was told; -1: it has none."""

    length: int

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length


@functional_datapipe("list_files")
class FileListerIterDataPipe(_Counted):
    """The paths of the files of folders, given by path or by a pipe of paths.

    masks: shell patterns of the names that count, none: all. The files of a folder come sorted by
    name, before those of the folders in it, unless non_deterministic.
    """

    def __init__(
        self,
        root: str | Sequence[str] | IterDataPipe = ".",
        masks: str | list[str] = "",
        *,
        recursive: bool = False,
        abspath: bool = False,
        non_deterministic: bool = False,
        length: int = -1,
    ) -> None:
        super().__init__()
        self.datapipe = [root] if isinstance(root, str) else root
        self.masks = masks
        self.recursive = recursive
        self.abspath = abspath
        self.non_deterministic = non_deterministic
        self.length = length

    def __iter__(self) -> Iterator[str]:
        for root in self.datapipe:
            for folder, name in _files(root, self.recursive, not self.non_deterministic):
                if _matches(name, self.masks):
                    yield os.path.join(os.path.abspath(folder) if self.abspath else folder, name)


@functional_datapipe("open_files")
class FileOpenerIterDataPipe(_Counted):
    """(path, open file) of each path; mode: `r`, `b`, `t`, `rb` or `rt`."""

    def __init__(
        self,
        datapipe: Iterable[str],
        mode: str = "r",
        encoding: str | None = None,
        length: int = -1,
    ) -> None:
        super().__init__()
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}")
        if "b" in mode and encoding is not None:
            raise ValueError("binary mode doesn't take an encoding argument")
        self.datapipe = datapipe
        self.mode = mode if mode.startswith("r") else f"r{mode}"
        self.encoding = encoding
        self.length = length

    def __iter__(self) -> Iterator[tuple[str, IO]]:
        for path in self.datapipe:
            if not isinstance(path, str):
                raise TypeError(f"Expected string type for pathname, but got {type(path)}")
            yield path, open(path, self.mode, encoding=self.encoding)


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe):
    """(label, content) of each (label, stream): all of it, or pieces of `chunk` units."""

    def __init__(self, datapipe: Iterable[tuple[str, IO]], chunk: int | None = None) -> None:
        super().__init__()
        self.datapipe = datapipe
        self.chunk = chunk

    def __iter__(self) -> Iterator[tuple[str, bytes | str]]:
        for label, stream in self.datapipe:
            while content := stream.read(-1 if self.chunk is None else self.chunk):
                yield label, content
            stream.close()
