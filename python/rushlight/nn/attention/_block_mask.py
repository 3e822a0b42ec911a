"""BlockMask: which blocks of attention scores take part, as lists of blocks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import rushlight as torch
from rushlight import Tensor

_DEFAULT_SPARSE_BLOCK_SIZE = 128
_LARGE_SPARSE_BLOCK_SIZE = 1 << 30


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask that hides nothing."""
    return batch.new_ones(size=(), dtype=torch.bool)


def _sliced_mask_mod_error(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor):
    raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")


def _ordered(dense: Tensor) -> tuple[Tensor, Tensor]:
    """Of each row of a 0/1 matrix: how many ones, and the columns with those first."""
    dense = dense.to(torch.int32)
    count = dense.sum(dim=-1, dtype=torch.int32)
    order = torch.argsort(dense, dim=-1, descending=True, stable=True)
    return count, order.to(torch.int32).contiguous()


def _dense(count: Tensor, indices: Tensor, columns: int) -> Tensor:
    """The 0/1 matrix, int32, of lists of columns."""
    listed = torch.arange(indices.shape[-1], dtype=torch.int32) < count.unsqueeze(-1)
    at = torch.where(listed, indices, columns).long()
    full = torch.zeros(*count.shape, columns + 1, dtype=torch.int32)
    return full.scatter_(-1, at, 1)[..., :columns].contiguous()


def _ceil_div(a: int, b: int) -> int:
    return (a + b - 1) // b


def _pair(block_size: int | tuple[int, int]) -> tuple[int, int]:
    if isinstance(block_size, int):
        return block_size, block_size
    if len(block_size) != 2:
        raise ValueError(f"BLOCK_SIZE must be an int or a pair, got {block_size}")
    return tuple(block_size)


def write_order(dense: Tensor, q_indices: Tensor, descending: bool) -> Tensor:
    """For each block of keys and each listed block of queries: in which turn it adds to dQ.

    `dense` is (..., q blocks, kv blocks), the lists (..., kv blocks, q blocks). -1: not at all.
    """
    ranked = dense.flip(-1).cumsum(-1).flip(-1) if descending else dense.cumsum(-1)
    turn = torch.where(dense > 0, ranked - 1, -1).to(torch.int32)
    return turn.transpose(-2, -1).gather(-1, q_indices.long()).contiguous()


class BlockMask:
    """Which blocks of scores take part: `kv_indices` lists the first `kv_num_blocks` of each row.

    Listed blocks are masked by `mask_mod`; those of the `full_` lists need no mask. Lists are
    (B, H, q blocks[, kv blocks]) int32; the `q_` lists are their transposes.
    """

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None,
        q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (_DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE),
        mask_mod: Callable = noop_mask,
        *,
        dq_write_order: Tensor | None = None,
        dq_write_order_full: Tensor | None = None,
        dq_kv_order: Tensor | None = None,
        dq_kv_order_spt: bool | None = None,
    ) -> None:
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if kv_num_blocks is None or kv_indices is None:
            raise AssertionError("kv_num_blocks and kv_indices must be provided")
        for first, second, names in (
            (full_kv_num_blocks, full_kv_indices, "full_kv_num_blocks and full_kv_indices"),
            (q_num_blocks, q_indices, "q_num_blocks and q_indices"),
            (full_q_num_blocks, full_q_indices, "full_q_num_blocks and full_q_indices"),
        ):
            if (first is None) != (second is None):
                raise AssertionError(f"{names} must be both provided or omitted")
        self.seq_lengths = tuple(seq_lengths)
        self.kv_num_blocks = kv_num_blocks
        self.kv_indices = kv_indices
        self.full_kv_num_blocks = full_kv_num_blocks
        self.full_kv_indices = full_kv_indices
        self.q_num_blocks = q_num_blocks
        self.q_indices = q_indices
        self.full_q_num_blocks = full_q_num_blocks
        self.full_q_indices = full_q_indices
        self.BLOCK_SIZE = _pair(BLOCK_SIZE)
        self.mask_mod = mask_mod
        self.dq_write_order = dq_write_order
        self.dq_write_order_full = dq_write_order_full
        self.dq_kv_order = dq_kv_order
        self.dq_kv_order_spt = dq_kv_order_spt
        self._known_states: tuple[tuple, Tensor] | None = None

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod: Callable | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
        *,
        dq_write_order: Tensor | None = None,
        dq_write_order_full: Tensor | None = None,
        dq_kv_order: Tensor | bool | None = None,
    ) -> BlockMask:
        """A mask from the lists of blocks of keys alone; lengths are whole blocks by default."""
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError(
                "full_kv_num_blocks and full_kv_indices must be both provided or omitted"
            )
        columns = kv_indices.shape[-1]
        lists: list[Tensor | None] = [None] * 4
        if compute_q_blocks:
            lists[:2] = _ordered(_dense(kv_num_blocks, kv_indices, columns).transpose(-2, -1))
            if full_kv_num_blocks is not None:
                full = _dense(full_kv_num_blocks, full_kv_indices, columns)
                lists[2:] = _ordered(full.transpose(-2, -1))
        size = _pair(BLOCK_SIZE)
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * size[0], columns * size[1])
        in_order = isinstance(dq_kv_order, bool)
        return cls(
            seq_lengths,
            kv_num_blocks,
            kv_indices,
            full_kv_num_blocks,
            full_kv_indices,
            *lists,
            BLOCK_SIZE=size,
            mask_mod=noop_mask if mask_mod is None else mask_mod,
            dq_write_order=dq_write_order,
            dq_write_order_full=dq_write_order_full,
            dq_kv_order=None if in_order else dq_kv_order,
            dq_kv_order_spt=dq_kv_order if in_order else None,
        )

    # ---- what it says ---------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of batch and heads, then the two lengths."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """The number of scores of the dense mask."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """The percentage of scores that lie in blocks left out, 0 to 100."""
        computed = int(self.kv_num_blocks.sum())
        if self.full_kv_num_blocks is not None:
            computed += int(self.full_kv_num_blocks.sum())
        return 100 * (1 - computed * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to_dense(self) -> Tensor:
        """Which blocks take part, 0 or 1, (B, H, q blocks, kv blocks) int32."""
        columns = self.kv_indices.shape[-1]
        dense = _dense(self.kv_num_blocks, self.kv_indices, columns)
        if self.full_kv_num_blocks is not None:
            dense = dense | _dense(self.full_kv_num_blocks, self.full_kv_indices, columns)
        return dense

    def _states(self) -> Tensor:
        """0, 1 or 2 for each block where none, some or all of it takes part; uint8, 4-D."""
        lists = (
            self.kv_num_blocks,
            self.kv_indices,
            self.full_kv_num_blocks,
            self.full_kv_indices,
        )
        now = tuple((id(x), -1 if x is None else x._version) for x in lists)
        if self._known_states is None or self._known_states[0] != now:
            columns = _ceil_div(self.seq_lengths[1], self.BLOCK_SIZE[1])
            states = torch._C._nn._flex_states(*lists, columns)
            while states.dim() < 4:
                states = states.unsqueeze(0)
            self._known_states = (now, states)
        return self._known_states[1]

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """A drawing of each batch and head, at most `limit`; a cell is one or several blocks."""
        dense = self.to_dense()
        grid = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        drawings = []
        for index in itertools.product(*map(range, dense.shape[:-2])):
            if len(drawings) == limit:
                drawings.append("...")
                drawings.append("To print out more, set BlockMask.to_string(limit=N)")
                drawings.append(
                    "You can also index (BlockMask[batch, head]) to choose a specific batch or head"
                )
                break
            drawings.append(f"{index}\n{_draw(dense[index].tolist(), grid)}\n")
        return "\n".join(drawings)

    def __str__(self) -> str:
        return (
            f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n"
            f"{self.to_string().strip()}\n)"
        )

    def __repr__(self) -> str:
        names = [name for name in _LISTS if not name.startswith("dq")]
        fields = []
        for name in names:
            value = getattr(self, name)
            fields.append(f"    {name}={'None' if value is None else value.shape},\n")
        mod = getattr(self.mask_mod, "__name__", self.mask_mod)
        return (
            f"BlockMask(\n{''.join(fields)}    BLOCK_SIZE={self.BLOCK_SIZE},\n"
            f"    shape={self.shape},\n    sparsity={self.sparsity():.2f}%,\n"
            f"    mask_mod={mod}\n)"
        )

    # ---- others made of it ----------------------------------------------------------------------

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """All that the mask holds, in the order of its constructor."""
        lists = [getattr(self, name) for name in _LISTS]
        if flatten:
            return (*self.seq_lengths, *lists, *self.BLOCK_SIZE, self.mask_mod)
        return (self.seq_lengths, *lists, self.BLOCK_SIZE, self.mask_mod)

    def to(self, device: torch.device | str) -> BlockMask:
        """A new mask whose lists are on `device`."""

        def moved(value: Any) -> Any:
            return value.to(device) if isinstance(value, Tensor) else value

        lists, orders = self._parts()
        return BlockMask(
            self.seq_lengths,
            *map(moved, lists),
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=self.mask_mod,
            **{name: moved(value) for name, value in orders.items()},
        )

    def _parts(self) -> tuple[list, dict[str, Any]]:
        lists = [getattr(self, name) for name in _LISTS if not name.startswith("dq")]
        return lists, {name: getattr(self, name) for name in _LISTS if name.startswith("dq")}

    def __getitem__(self, index: Any) -> BlockMask:
        """Some batches, heads and rows of blocks. Its mask_mod may no longer be called."""
        items = index if isinstance(index, tuple) else (index,)
        kept = tuple(
            slice(i, i + 1 or None) if isinstance(i, int) and not isinstance(i, bool) else i
            for i in items
        )
        full = self.full_kv_num_blocks is not None
        lists, orders = self._parts()
        return BlockMask.from_kv_blocks(
            self.kv_num_blocks[kept],
            self.kv_indices[kept],
            self.full_kv_num_blocks[kept] if full else None,
            self.full_kv_indices[kept] if full else None,
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=_sliced_mask_mod_error,
            seq_lengths=self.seq_lengths,
            compute_q_blocks=self.q_indices is not None,
            dq_kv_order=orders["dq_kv_order_spt"],
        )

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """The same mask of shorter sequences."""
        if new_q_len > self.seq_lengths[0] or new_kv_len > self.seq_lengths[1]:
            raise ValueError(
                f"a block mask of lengths {self.seq_lengths} cannot be adjusted to the larger "
                f"({new_q_len}, {new_kv_len}): create a new one"
            )
        rows = _ceil_div(new_q_len, self.BLOCK_SIZE[0])
        columns = _ceil_div(new_kv_len, self.BLOCK_SIZE[1])

        def shortened(count: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
            dense = _dense(count, indices, indices.shape[-1])
            return _ordered(dense[..., :rows, :columns])

        lists = shortened(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is not None:
            lists += shortened(self.full_kv_num_blocks, self.full_kv_indices)
        return BlockMask.from_kv_blocks(
            *lists,
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=self.mask_mod,
            seq_lengths=(new_q_len, new_kv_len),
            compute_q_blocks=self.q_indices is not None,
        )


_LISTS = (
    "kv_num_blocks",
    "kv_indices",
    "full_kv_num_blocks",
    "full_kv_indices",
    "q_num_blocks",
    "q_indices",
    "full_q_num_blocks",
    "full_q_indices",
    "dq_write_order",
    "dq_write_order_full",
    "dq_kv_order",
    "dq_kv_order_spt",
)


def _draw(rows: list[list[int]], grid: tuple[int, int]) -> str:
    """Full, mixed and empty cells of a 0/1 matrix, at most `grid` cells."""
    height = max(1, _ceil_div(len(rows), grid[0]))
    width = max(1, _ceil_div(len(rows[0]) if rows else 0, grid[1]))
    lines = []
    for top in range(0, len(rows), height):
        line = ""
        for left in range(0, len(rows[0]), width):
            cell = [x for row in rows[top : top + height] for x in row[left : left + width]]
            line += "██" if all(cell) else "░░" if any(cell) else "  "
        lines.append(line)
    return "\n".join(lines)
