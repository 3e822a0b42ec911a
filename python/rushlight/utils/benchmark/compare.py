"""Tables of measurements."""

from __future__ import annotations

import enum
import itertools
import math

from .common import Measurement, select_unit, trim_sigfig, unit_to_english


class Colorize(enum.Enum):
    """What a table's colours compare: nothing, the columns of a block, or the cells of a row."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """Results side by side: a table a label, a column a description, a row a sub-label."""

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim = False
        self._colorize = Colorize.NONE
        self._highlight = False

    def extend_results(self, results: list[Measurement]) -> None:
        """Adds measurements."""
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(
                    f"Expected an instance of `Measurement`, got {type(result)} instead."
                )
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Shows no more figures than the spread of the times leaves."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Paints fast cells green and slow ones red."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Says by how much the times of a cell are spread, where it is much."""
        self._highlight = True

    def print(self) -> None:
        """Prints the tables."""
        print(str(self))

    def __str__(self) -> str:
        merged = Measurement.merge(self._results)
        tables: dict[str, list[Measurement]] = {}
        for m in merged:
            tables.setdefault(m.task_spec.label or m.task_spec.stmt, []).append(m)
        return "\n".join(self._table(title, found) for title, found in tables.items())

    def _table(self, title: str, found: list[Measurement]) -> str:
        unit, scale = select_unit(min(m.median for m in found))
        columns = list(dict.fromkeys(m.task_spec.description for m in found))
        rows: dict[tuple, dict[str | None, Measurement]] = {}
        for m in sorted(found, key=lambda m: m.task_spec.num_threads):
            name = m.as_row_name if m.task_spec.env is None else f"({m.env}) {m.as_row_name}"
            rows.setdefault((m.task_spec.num_threads, name), {})[m.task_spec.description] = m
        texts = {
            key: [self._cell(cells.get(column), scale) for column in columns]
            for key, cells in rows.items()
        }
        heads = [column or "" for column in columns]
        widths = [
            max(len(head), *(len(cells[i]) for cells in texts.values()))
            for i, head in enumerate(heads)
        ]
        margin = 6 + max(len(name) for _, name in rows)

        def line(first: str, cells: list[str]) -> str:
            return "  |  ".join([first.ljust(margin), *cells])

        head = line("", [h.center(w) for h, w in zip(heads, widths)])
        lines = [f"[{f' {title} '.center(len(head) - 2, '-')}]", head]
        for threads, group in itertools.groupby(rows, key=lambda key: key[0]):
            start = f"{threads} threads: "
            lines.append(start + "-" * (len(head) - len(start)))
            for key in group:
                cells = [text.rjust(width) for text, width in zip(texts[key], widths)]
                painted = [
                    self._paint(cell, rows[key].get(column), rows, key, column)
                    for cell, column in zip(cells, columns)
                ]
                lines.append(line(f"      {key[1]}", painted))
        return "\n".join(lines) + f"\n\nTimes are in {unit_to_english(unit)}s ({unit}).\n"

    def _cell(self, m: Measurement | None, scale: float) -> str:
        if m is None:
            return ""
        value = m.median / scale
        digits = 1
        if self._trim:
            value = trim_sigfig(value, m.significant_figures)
            digits = max(0, m.significant_figures - 1 - math.floor(math.log10(value)))
            digits = min(digits, 1)
        text = f"{value:.{digits}f}"
        if self._highlight and m.has_warnings:
            text = f"(! {m.iqr / m.median * 100:.0f}%) {text}"
        return text

    def _paint(
        self, cell: str, m: Measurement | None, rows: dict, key: tuple, column: str | None
    ) -> str:
        if m is None or self._colorize is Colorize.NONE:
            return cell
        if self._colorize is Colorize.ROWWISE:
            group = list(rows[key].values())
        else:
            group = [cells[column] for cells in rows.values() if column in cells]
        best = min(other.median for other in group)
        ratio = m.median / best
        for limit, style in ((1.0, "\033[92m\033[1m"), (1.2, "\033[92m"), (2.0, "")):
            if ratio <= limit:
                return f"{style}{cell}\033[0m\033[0m" if style else cell
        style = "\033[31m\033[1m" if ratio >= 10 else "\033[2m\033[91m"
        return f"{style}{cell}\033[0m\033[0m"
