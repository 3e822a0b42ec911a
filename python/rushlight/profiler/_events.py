"""Lists of events, their totals, and the table and trace that show them."""

from __future__ import annotations

import gzip
import json
import os
from typing import Any

from rushlight.profiler._function_event import FunctionEvent, Record, time_text

_STACK_METRICS = [
    "self_cpu_time_total",
    "self_cuda_time_total",
    "self_xpu_time_total",
    "self_privateuse1_time_total",
]


def _category(event: FunctionEvent) -> str:
    if event.is_kernel:
        return "kernel"
    return "cpu_op" if event.name.startswith("aten::") else "user_annotation"


def _time_text(microseconds: float, unit: str | None = None) -> str:
    scales = {"s": 1e6, "ms": 1e3, "us": 1}
    if unit is None:
        return time_text(microseconds)
    if unit not in scales:
        raise ValueError(f"table: time_unit must be 's', 'ms', 'us' or None, got {unit!r}")
    return f"{microseconds / scales[unit]:.3f}{unit}"


def _bytes_text(count: int) -> str:
    for unit, scale in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(count) >= scale:
            return f"{count / scale:.2f} {unit}"
    return f"{count} B"


class FunctionEventAvg:
    """The total of the events of one name (and shapes, and lines of the program)."""

    def __init__(self, key: str, shapes: list[list[int]], stack: list[str] | None = None) -> None:
        self.key = key
        self.input_shapes = shapes
        self.stack = stack or []
        self.count = 0
        self.cpu_time_total = 0.0
        self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = 0
        self.self_cpu_memory_usage = 0

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total / self.count if self.count else 0.0

    def add(self, event: FunctionEvent) -> None:
        self.count += 1
        # A call inside one of the same name is counted once.
        parent = event.cpu_parent
        while parent is not None and parent.key != event.key:
            parent = parent.cpu_parent
        if parent is None:
            self.cpu_time_total += event.cpu_time_total
            self.cpu_memory_usage += event.cpu_memory_usage
        self.self_cpu_time_total += event.self_cpu_time_total
        self.self_cpu_memory_usage += event.self_cpu_memory_usage

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={_time_text(self.self_cpu_time_total)}"
            f" cpu_time={_time_text(self.cpu_time)}>"
        )


class EventList(list):
    """Events, or totals of events."""

    @classmethod
    def of_records(cls, records: list[Record]) -> EventList:
        """The core's records, each with what it called."""
        events = cls(FunctionEvent.of_record(id, record) for id, record in enumerate(records))
        open_events: list[FunctionEvent] = []
        for event in events:
            del open_events[event.depth :]
            if open_events:
                event.set_cpu_parent(open_events[-1])
                open_events[-1].append_cpu_child(event)
            open_events.append(event)
        return events

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """EventList(*args, **kwargs)

        As list() takes them, with keywords of PyTorch's that make no difference here.
        """
        super().__init__(*args)

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """Totals by name; by shapes, by the first lines of the program and by overloads, where
        asked for.
        """
        totals: dict[Any, FunctionEventAvg] = {}
        for event in self:
            shapes = event.input_shapes if group_by_input_shapes else []
            stack = (event.stack or [])[:group_by_stack_n]
            overload = event.overload_name if group_by_overload_name else None
            key = (event.key, str(shapes), overload, *stack)
            totals.setdefault(key, FunctionEventAvg(event.key, shapes, stack)).add(event)
        return EventList(totals.values())

    @property
    def self_cpu_time_total(self) -> float:
        return sum(event.self_cpu_time_total for event in self)

    def total_average(self) -> FunctionEventAvg:
        """One total over all."""
        total = FunctionEventAvg("Total", [])
        for event in self:
            total.count += event.count
            total.cpu_time_total += event.cpu_time_total
            total.self_cpu_time_total += event.self_cpu_time_total
            total.cpu_memory_usage += event.cpu_memory_usage
            total.self_cpu_memory_usage += event.self_cpu_memory_usage
        return total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The rows as text. `time_unit`: "s", "ms" or "us" for all times; None: what suits each.
        ValueError for a column that is not there, or another unit.
        """
        rows = [e for e in self if not top_level_events_only or getattr(e, "cpu_parent", 0) is None]
        if sort_by is not None:
            column = sort_by.replace("device_", "cpu_").replace("cuda_", "cpu_")
            if not hasattr(FunctionEventAvg("", []), column):
                raise ValueError(f"table: cannot sort by {sort_by!r}: there is no such column")
            rows.sort(key=lambda event: getattr(event, column), reverse=True)
        rows = rows if row_limit < 0 else rows[:row_limit]
        whole = self.self_cpu_time_total
        shapes = any(event.input_shapes for event in rows)
        memory = any(event.cpu_memory_usage for event in rows)
        stacks = isinstance(next(iter(rows), None), FunctionEventAvg) and any(
            event.stack for event in rows
        )
        titles = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
        titles += ["CPU Mem", "Self CPU Mem"] if memory else []
        titles += ["# of Calls"] + (["Input Shapes"] if shapes else [])
        titles += ["Source Location"] if stacks else []
        lines = [titles]
        for event in rows:
            name = event.key
            if len(name) > max_name_column_width:
                name = name[: max_name_column_width - 3] + "..."
            line = [
                name,
                f"{100 * event.self_cpu_time_total / whole if whole else 0:.2f}%",
                _time_text(event.self_cpu_time_total, time_unit),
                f"{100 * event.cpu_time_total / whole if whole else 0:.2f}%",
                _time_text(event.cpu_time_total, time_unit),
                _time_text(event.cpu_time_total / event.count if event.count else 0, time_unit),
            ]
            if memory:
                line += [
                    _bytes_text(event.cpu_memory_usage),
                    _bytes_text(event.self_cpu_memory_usage),
                ]
            line.append(str(event.count))
            if shapes:
                line.append(str(event.input_shapes)[:max_shapes_column_width])
            if stacks:
                line.append(", ".join(event.stack)[-max_src_column_width:])
            lines.append(line)
        return _laid_out(lines, header, f"Self CPU time total: {_time_text(whole)}")

    def __str__(self) -> str:
        return self.table()

    def supported_export_stacks_metrics(self) -> list[str]:
        """What export_stacks can write the time of."""
        return list(_STACK_METRICS)

    def export_stacks(self, path: str, metric: str) -> None:
        """Writes a line for each stack: its frames, the outermost first, and its microseconds.

        ValueError for a metric that is not supported.
        """
        if metric not in _STACK_METRICS:
            raise ValueError(f"metric should be one of: {_STACK_METRICS}, got {metric!r}")
        totals: dict[str, float] = {}
        for event in self:
            if event.stack:
                stack = ";".join(frame.replace(" ", "_") for frame in reversed(event.stack))
                totals[stack] = totals.get(stack, 0) + getattr(event, metric, 0)
        with open(path, "w") as file:
            file.writelines(f"{stack} {int(time)}\n" for stack, time in totals.items())

    def export_chrome_trace(self, path: str, metadata: dict[str, Any] | None = None) -> None:
        """Writes the events for chrome://tracing; gzip where the name ends in .gz."""
        events = []
        for event in self:
            item = {
                "ph": "X",
                "cat": _category(event),
                "name": event.name,
                "pid": os.getpid(),
                "tid": os.getpid(),
                "ts": event.time_range.start,
                "dur": event.cpu_time_total,
            }
            details: dict[str, Any] = {}
            if event.input_shapes:
                details["Input Dims"] = event.input_shapes
            if event.is_kernel:
                operators = event.name.removeprefix("fused: ").split("+")
                details["Operators"] = [f"aten::{name}" for name in operators]
            if event.stack:
                details["Source"] = event.stack
            if details:
                item["args"] = details
            events.append(item)
        trace = {"schemaVersion": 1, **(metadata or {}), "traceEvents": events}
        opener = gzip.open if str(path).endswith(".gz") else open
        with opener(path, "wt") as file:
            json.dump(trace, file)


def _laid_out(lines: list[list[str]], header: str | None, footer: str) -> str:
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    rule = "  ".join("-" * width for width in widths)
    made = [rule]
    if header is not None:
        made += [header, rule]
    for at, line in enumerate(lines):
        made.append("  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)))
        if at == 0:
            made.append(rule)
    return "\n".join([*made, rule, footer, ""])
