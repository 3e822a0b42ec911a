"""Random calls of every operator, reproducible by number; run as a program it writes what came out.

python calls.py FIRST COUNT FILE
"""

from __future__ import annotations

import pickle
import random
import re
import sys
import warnings
from typing import Any

import rushlight as torch

DTYPES = ("float32", "float32", "float64", "bfloat16", "float16", "int64", "int32", "uint8", "bool")
# Results that are not defined by the arguments, or arguments that need more than their type says.
LEFT_OUT_FAMILIES = {"random", "dropout", "multinomial", "fused_optimizer"}
LEFT_OUT_NAMES = re.compile(r"empty|resize|set_|as_strided|_to_copy|_attention|poisson")
ARGUMENT = re.compile(
    r"(\w+)(?:\((\w+!?)\))?(\?)?(?:\[(\d*)\])?(\?)?\s+(\w+)(?:\s*=\s*([^,]+|\[[^\]]*\]))?$"
)
WORDS = {"approximate": ("none", "tanh"), "rounding_mode": ("floor", "trunc"), "reduce": ("sum",)}


def operators() -> list[dict[str, Any]]:
    rows = []
    for row in torch._C._operator_table():
        if row["family"] in LEFT_OUT_FAMILIES or LEFT_OUT_NAMES.search(row["name"]):
            continue
        inside = row["schema"][row["schema"].index("(") + 1 : row["schema"].rindex("->")]
        text = inside[: inside.rindex(")")]
        parts, depth, start = [], 0, 0
        for at, letter in enumerate(text + ","):
            depth += (letter in "[(") - (letter in "])")
            if letter == "," and depth == 0:
                parts.append(text[start:at].strip())
                start = at + 1
        arguments = [ARGUMENT.match(part) for part in parts if part not in ("", "*")]
        kinds = {match[1] for match in arguments if match}
        if None in arguments or kinds & {"Generator", "Device", "Layout", "MemoryFormat"}:
            continue
        # An operator that writes its argument is called through its other form.
        if any(match[2] and match[2].endswith("!") for match in arguments):
            continue
        rows.append({"row": row, "arguments": arguments})
    return rows


class Maker:
    """Arguments for one call."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        rank = self.random.choice((0, 1, 2, 2, 3))
        self.shape = [self.random.choice((1, 2, 3, 5, 17)) for _ in range(rank)]
        if self.random.random() < 0.05 and self.shape:
            self.shape[self.random.randrange(len(self.shape))] = 0
        self.dtype = self.random.choice(DTYPES)

    def tensor(self, name: str) -> torch.Tensor:
        shape = list(self.shape)
        if self.random.random() < 0.3:
            shape = [1 if self.random.random() < 0.4 else size for size in shape]
            shape = shape[self.random.randrange(len(shape) + 1) :] if shape else shape
        dtype = self.random.choice(DTYPES) if self.random.random() < 0.3 else self.dtype
        if name in ("index", "indices", "target") or name.startswith("index"):
            dtype = "int64"
        if name in ("condition", "mask"):
            dtype = "bool"
        stretched = [size * 2 for size in shape] if self.random.random() < 0.2 else shape
        count = 1
        for size in stretched:
            count *= size
        values = [self.random.randint(-3, 9) / self.random.choice((1, 2, 4)) for _ in range(count)]
        if dtype in ("int64", "int32", "uint8", "bool"):
            low = 0 if dtype in ("uint8", "bool") or name.startswith("ind") else -3
            values = [self.random.randint(low, 2) for _ in range(count)]
        elif self.random.random() < 0.1 and count:
            values[self.random.randrange(count)] = self.random.choice((float("nan"), float("inf")))
        made = torch.tensor(values, dtype=getattr(torch, dtype)).reshape(stretched)
        if stretched != shape:
            made = made[tuple(slice(None, None, 2) for _ in shape)]
        if len(shape) >= 2 and self.random.random() < 0.2:
            made = made.transpose(0, 1).contiguous().transpose(0, 1)
        return made

    def argument(self, match: re.Match) -> Any:
        kind, _, optional, size, optional_list, name, default = match.groups()
        if (optional or optional_list) and self.random.random() < 0.5:
            return None
        if kind == "Tensor":
            return [self.tensor(name) for _ in range(2)] if size is not None else self.tensor(name)
        if kind == "bool" and size is None:
            return self.random.random() < 0.5
        if kind in ("int", "SymInt"):
            rank = len(self.shape)
            if size is not None:
                wanted = int(size) if size else self.random.randint(0, 2)
                return [self.random.randint(-rank - 1, rank) for _ in range(wanted)]
            if "dim" in name or "axis" in name:
                return self.random.randint(-rank, max(0, rank - 1))
            return self.random.randint(-1, 3)
        if kind in ("Scalar", "float") and size is None:
            return self.random.choice((0, 1, 2, -1, 0.5, 1.5, 3))
        if kind == "str":
            return self.random.choice(WORDS.get(name, ((default or "none").strip("'\""),)))
        if kind == "ScalarType":
            return getattr(torch, self.random.choice(DTYPES))
        return []


def plain(value: Any) -> Any:
    """Something that can be pickled and compared: dtype, shape and values of tensors."""
    if isinstance(value, torch.Tensor):
        return ("tensor", str(value.dtype), tuple(value.shape), value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def run(number: int, rows: list[dict[str, Any]]) -> tuple[str, Any]:
    maker = Maker(number)
    chosen = maker.random.choice(rows)
    row = chosen["row"]
    packet = getattr(torch.ops.aten, row["name"])
    function = getattr(packet, row["overload"] or "default")
    arguments = {match[6]: maker.argument(match) for match in chosen["arguments"]}
    try:
        return row["name"], plain(function(**arguments))
    except Exception as error:  # what it raises is part of what is compared
        return row["name"], ("raised", type(error).__name__)


def main() -> None:
    first, count, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    warnings.simplefilter("ignore")
    rows = operators()
    with open(path, "wb") as file:
        for number in range(first, first + count):
            pickle.dump(run(number, rows), file)
            file.flush()


if __name__ == "__main__":
    main()
