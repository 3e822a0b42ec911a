"""The direction numbers of Sobol sequences, from the primitive polynomials of Joe and Kuo's table.

directions.bin has a record for each dimension from the second on, bit after bit, lowest first: of a
polynomial of degree s the s - 1 inner coefficients, then the odd initial numbers m_2 to m_s, which
are below 2^i, as m // 2 in i - 1 bits. Dimensions are in the order of their degrees.
"""

from __future__ import annotations

from pathlib import Path

import rushlight as torch
from rushlight import Tensor

MAX_DIMENSION = 21201
BITS = 30
# How many primitive polynomials there are of degree 1, 2, ...: the table has them all.
_COUNTS = (1, 1, 2, 2, 6, 6, 18, 16, 48, 60, 176, 144, 630, 756, 1800, 2048, 7710, 7776)


def _records(bits: Tensor, count: int, degree: int) -> tuple[Tensor, Tensor]:
    """The inner coefficients, the highest power last, and the initial numbers of some records."""
    rows = bits.view(count, -1)
    coefficients, rest = rows[:, : degree - 1], rows[:, degree - 1 :]
    numbers = [torch.ones(count, dtype=torch.int64)]
    for width in range(1, degree):
        powers = 2 ** torch.arange(width)
        numbers.append((rest[:, :width] * powers).sum(1) * 2 + 1)
        rest = rest[:, width:]
    return coefficients, torch.stack(numbers, 1)


def _extended(coefficients: Tensor, numbers: Tensor, degree: int) -> Tensor:
    """All BITS numbers of each dimension, by the recurrence of its polynomial."""
    columns = list(numbers.unbind(1))
    for j in range(len(columns), BITS):
        made = columns[j - degree] ^ (columns[j - degree] << degree)
        for k in range(1, degree):
            # The coefficient of x^(degree - k).
            made = made ^ ((columns[j - k] << k) * coefficients[:, degree - k - 1])
        columns.append(made)
    return torch.stack(columns[:BITS], 1)


def direction_numbers(dimension: int) -> Tensor:
    """The direction numbers (dimension, BITS), the first bit of a point being bit BITS - 1."""
    data = (Path(__file__).parent / "directions.bin").read_bytes()
    found = [torch.ones(1, BITS, dtype=torch.int64)]
    left, place = dimension - 1, 0
    for degree, most in enumerate(_COUNTS, 1):
        count = min(left, most)
        if count == 0:
            break
        width = degree - 1 + degree * (degree - 1) // 2
        bits = _bits(data, place, count * width)
        found.append(_extended(*_records(bits, count, degree), degree))
        place += count * width
        left -= count
    scale = 2 ** torch.arange(BITS - 1, -1, -1)
    return torch.cat(found) * scale


def _bits(data: bytes, start: int, count: int) -> Tensor:
    first, last = start // 8, (start + count + 7) // 8
    part = torch.tensor(list(data[first:last]), dtype=torch.int64)
    spread = (part[:, None] >> torch.arange(8)) & 1
    return spread.view(-1)[start - 8 * first :][:count]
