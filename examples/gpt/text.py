"""The King James Bible as numbers: one a character, split into training and validation."""

from __future__ import annotations

import pathlib
import subprocess

import rushlight as torch

PASSAGES = "gen1:1-rev22:21"
HELD_OUT = 0.1  # the last part of the text, for validation


class Text:
    """A text at character level.

    Attributes: `alphabet` (str, sorted), `train` and `held_out` (int64, one dimension).
    """

    def __init__(self, characters: str) -> None:
        self.alphabet = "".join(sorted(set(characters)))
        numbers = {character: number for number, character in enumerate(self.alphabet)}
        tokens = torch.tensor([numbers[character] for character in characters])
        split = len(characters) - int(len(characters) * HELD_OUT)
        self.train = tokens[:split]
        self.held_out = tokens[split:]

    def decode(self, tokens: list[int]) -> str:
        return "".join(self.alphabet[token] for token in tokens)


def read(path: str | None) -> Text:
    """The text of a file, or without one the Bible that Debian's package bible-kjv prints."""
    if path is not None:
        return Text(pathlib.Path(path).read_text(encoding="utf-8"))
    try:
        shown = subprocess.run(["bible", "-f", PASSAGES], capture_output=True, check=True)
    except FileNotFoundError:
        raise SystemExit("no program 'bible': apt install bible-kjv, or give --text FILE") from None
    return Text(shown.stdout.decode("ascii"))


def batch(tokens: torch.Tensor, starts: torch.Tensor, context: int) -> tuple:
    """Windows that begin at `starts` (B,) and the same moved on by one: two (B, context) int64."""
    windows = starts.unsqueeze(1) + torch.arange(context + 1)
    taken = tokens[windows]
    return taken[:, :-1], taken[:, 1:]
