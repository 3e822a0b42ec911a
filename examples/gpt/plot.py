"""Loss curves as a PNG picture, drawn and written without other packages."""

from __future__ import annotations

import pathlib
import struct
import zlib

WIDTH, HEIGHT = 960, 540
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 20, 50
PAPER, INK, GRID = (255, 255, 255), (60, 60, 60), (225, 225, 225)

# Three columns by five rows a digit; each row's bits from the left.
DIGITS = {
    "0": (7, 5, 5, 5, 7), "1": (2, 6, 2, 2, 7), "2": (7, 1, 7, 4, 7), "3": (7, 1, 7, 1, 7),
    "4": (5, 5, 7, 1, 1), "5": (7, 4, 7, 1, 7), "6": (7, 4, 7, 5, 7), "7": (7, 1, 1, 1, 1),
    "8": (7, 5, 7, 5, 7), "9": (7, 5, 7, 1, 7), ".": (0, 0, 0, 0, 2),
}  # fmt: skip

Colour = tuple[int, int, int]
Points = list[tuple[float, float]]


class Picture:
    """Pixels in rows of bytes, red, green and blue; the origin is at the top left."""

    def __init__(self) -> None:
        self.rows = [bytearray(bytes(PAPER) * WIDTH) for _ in range(HEIGHT)]

    def dot(self, x: int, y: int, colour: Colour) -> None:
        if 0 <= x < WIDTH and 0 <= y < HEIGHT:
            self.rows[y][3 * x : 3 * x + 3] = bytes(colour)

    def line(self, x0: float, y0: float, x1: float, y1: float, colour: Colour) -> None:
        steps = max(1, int(max(abs(x1 - x0), abs(y1 - y0))))
        for i in range(steps + 1):
            x = round(x0 + (x1 - x0) * i / steps)
            y = round(y0 + (y1 - y0) * i / steps)
            self.dot(x, y, colour)
            self.dot(x, y + 1, colour)

    def number(self, right: int, top: int, text: str) -> None:
        """Digits that end at `right`, in pixels of two by two."""
        left = right - 8 * len(text)
        for place, character in enumerate(text):
            for row, bits in enumerate(DIGITS[character]):
                for column in range(3):
                    if bits >> (2 - column) & 1:
                        for k in range(4):
                            x = left + 8 * place + 2 * column + k % 2
                            self.dot(x, top + 2 * row + k // 2, INK)

    def png(self) -> bytes:
        def chunk(name: bytes, data: bytes) -> bytes:
            return (
                struct.pack(">I", len(data))
                + name
                + data
                + struct.pack(">I", zlib.crc32(name + data))
            )

        header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
        pixels = b"".join(b"\0" + bytes(row) for row in self.rows)
        return (
            b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", header)
            + chunk(b"IDAT", zlib.compress(pixels))
            + chunk(b"IEND", b"")
        )


def smooth(points: Points, most: int = 400) -> Points:
    """At most about `most` points, each the mean of its neighbours."""
    group = max(1, len(points) // most)
    parts = [points[i : i + group] for i in range(0, len(points), group)]
    return [(part[-1][0], sum(y for _, y in part) / len(part)) for part in parts]


def save(path: pathlib.Path, curves: list[tuple[Points, Colour]]) -> None:
    """Draws curves of (step, loss) over one pair of axes that hold all of their points."""
    picture = Picture()
    points = [point for curve, _ in curves for point in curve]
    last = max((x for x, _ in points), default=1) or 1
    low = min((y for _, y in points), default=0.0)
    high = max((y for _, y in points), default=1.0)
    low, high = low - 0.05, max(high, low + 0.1) + 0.05

    def across(x: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * x / last

    def down(y: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - y) / (high - low)

    for i in range(6):
        y = low + (high - low) * i / 5
        picture.line(LEFT, down(y), WIDTH - RIGHT, down(y), GRID)
        picture.number(LEFT - 8, round(down(y)) - 5, f"{y:.2f}")
        x = last * i / 5
        picture.line(across(x), TOP, across(x), HEIGHT - BOTTOM, GRID)
        picture.number(round(across(x)) + 12, HEIGHT - BOTTOM + 10, f"{x:.0f}")
    for curve, colour in curves:
        for (x0, y0), (x1, y1) in zip(curve, curve[1:], strict=False):
            picture.line(across(x0), down(y0), across(x1), down(y1), colour)
    path.write_bytes(picture.png())
