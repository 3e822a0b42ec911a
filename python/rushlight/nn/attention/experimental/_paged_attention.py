"""PagedAttention: keys and values of many sequences in one cache, page by page."""

from __future__ import annotations

from collections.abc import Callable

import rushlight as torch
from rushlight import Tensor

from .._block_mask import BlockMask, _dense, _ordered, noop_mask
from ..flex_attention import _identity, _mask_mod_signature, _score_mod_signature

__all__ = ["PagedAttention"]


def _check_shape(what: str, tensor: Tensor, expected: tuple) -> None:
    """Sizes that are None may be anything."""
    fits = tensor.dim() == len(expected) and all(
        want is None or size == want for size, want in zip(tensor.shape, expected)
    )
    if not fits:
        shown = ", ".join("*" if want is None else str(want) for want in expected)
        raise RuntimeError(f"Expect {what} of shape ({shown}), but got {tuple(tensor.shape)}.")


class PagedAttention:
    """Which pages of a cache (1, H, n_pages * page_size, D) hold which part of which sequence.

    Sequences take pages as they grow (`reserve`) and give them back (`erase`). A mask and functions
    of scores that speak of a sequence's own positions become ones over the cache, so that
    flex_attention runs on the cache as it lies.
    """

    def __init__(
        self, n_pages: int, page_size: int, max_batch_size: int, device: str = "cpu"
    ) -> None:
        if n_pages <= 0 or page_size <= 0 or max_batch_size <= 0:
            raise ValueError(
                "PagedAttention needs positive numbers, got "
                f"n_pages={n_pages}, page_size={page_size}, max_batch_size={max_batch_size}"
            )
        self.n_pages = n_pages
        self.page_size = page_size
        # The page of each part of a sequence, and the part that each page holds; -1: none.
        self.page_table = torch.full((max_batch_size, n_pages), -1, device=device)
        self.physical_to_logical = torch.full((max_batch_size, n_pages), -1, device=device)
        # How many tokens the pages of each sequence can hold.
        self.capacity = torch.zeros(max_batch_size, dtype=torch.int64, device=device)
        self.empty_pages = list(range(n_pages - 1, -1, -1))

    def _sequence(self, batch_idx: Tensor, name: str) -> int:
        if batch_idx.numel() != 1:
            raise ValueError(f"{name}: batch_idx must name one sequence, got {batch_idx.tolist()}")
        number = int(batch_idx.item())
        if not 0 <= number < self.capacity.numel():
            raise IndexError(
                f"{name}: sequence {number} is out of range, there are {self.capacity.numel()}"
            )
        return number

    def reserve(self, batch_idx: Tensor, seq_len: Tensor) -> None:
        """Sees to it that sequence `batch_idx` (1) has pages for `seq_len` (1) tokens.

        RuntimeError where there are not enough empty pages; then nothing changes.
        """
        number = self._sequence(batch_idx, "reserve")
        held = int(self.capacity[number].item())
        missing = int(seq_len.item()) - held
        if missing <= 0:
            return
        wanted = -(-missing // self.page_size)
        if wanted > len(self.empty_pages):
            raise RuntimeError(
                f"requested {wanted} pages but there are only {len(self.empty_pages)} empty pages"
            )
        first = held // self.page_size
        pages = torch.tensor(self.empty_pages[-wanted:], device=self.page_table.device)
        del self.empty_pages[-wanted:]
        parts = torch.arange(first, first + wanted, device=self.page_table.device)
        self.page_table[number, first : first + wanted] = pages
        self.physical_to_logical[number, pages] = parts
        self.capacity[number] += wanted * self.page_size

    def erase(self, batch_idx: Tensor) -> None:
        """Gives back the pages of sequence `batch_idx` (1)."""
        number = self._sequence(batch_idx, "erase")
        pages = self.page_table[number]
        self.empty_pages += pages[pages >= 0].tolist()
        self.capacity[number] = 0
        self.physical_to_logical[number] = -1
        self.page_table[number] = -1

    def assign(
        self,
        batch_idx: Tensor,
        input_pos: Tensor,
        k_val: Tensor,
        v_val: Tensor,
        k_cache: Tensor,
        v_cache: Tensor,
    ) -> None:
        """Writes keys and values (B, H, S, D) of sequences (B) at positions (B, S) to the caches.

        The caches are (1, H, n_pages * page_size, D), changed in place. RuntimeError where a
        position has no page: reserve it first.
        """
        if k_val.requires_grad or v_val.requires_grad:
            raise RuntimeError("assign: k_val and v_val must not require gradients")
        _check_shape("k_val and v_val", k_val, (None, None, None, None))
        batch, heads, length, size = k_val.shape
        _check_shape("v_val", v_val, (batch, heads, length, None))
        _check_shape("batch_idx", batch_idx, (batch,))
        _check_shape("input_pos", input_pos, (batch, length))
        tokens = self.n_pages * self.page_size
        _check_shape("k_cache", k_cache, (1, heads, tokens, size))
        _check_shape("v_cache", v_cache, (1, heads, tokens, v_val.size(3)))
        part = input_pos // self.page_size
        pages = self.page_table[batch_idx].gather(1, part.long())
        if bool((pages < 0).any()):
            raise RuntimeError("assign: a position has no page: reserve its length first")
        at = (pages * self.page_size + input_pos % self.page_size).view(-1)
        k_cache[0, :, at, :] = k_val.transpose(0, 1).reshape(heads, -1, size)
        v_cache[0, :, at, :] = v_val.transpose(0, 1).reshape(heads, -1, v_val.size(3))

    def convert_logical_block_mask(
        self,
        block_mask: BlockMask,
        batch_idx: Tensor | None = None,
        kv_len: Tensor | None = None,
    ) -> BlockMask:
        """The mask over the cache of one over sequences' own positions.

        `batch_idx` (B): the sequence of each batch of the mask; None: the first B. `kv_len` (B):
        keys from there on do not take part.
        """
        batch = block_mask.kv_num_blocks.shape[0]
        if block_mask.BLOCK_SIZE[1] != self.page_size:
            raise RuntimeError(
                "Expect block_mask has the same column block size as page_size but got size="
                f"{block_mask.BLOCK_SIZE[1]} and size={self.page_size}"
            )
        table = self.page_table[:batch] if batch_idx is None else self.page_table[batch_idx]
        if table.shape[0] != batch:
            raise RuntimeError(
                f"block_mask has {batch} batches, but {table.shape[0]} sequences are given"
            )

        def moved(count: Tensor, indices: Tensor) -> Tensor:
            columns = indices.shape[-1]
            pages = table[:, None, None, :].expand(*indices.shape[:3], table.shape[1])
            listed = torch.arange(columns, device=indices.device) < count.unsqueeze(-1)
            at = torch.where(listed, indices, 0).long()
            physical = pages.gather(3, at)
            if bool(((physical < 0) & listed).any()):
                raise RuntimeError(
                    "block_mask names keys that have no page: reserve their sequence's length first"
                )
            made = torch.zeros(*indices.shape[:3], self.n_pages, dtype=torch.int32)
            made[..., :columns] = torch.where(listed, physical, 0).to(torch.int32)
            return made

        if block_mask.kv_indices.shape[-1] > self.n_pages:
            raise RuntimeError(
                f"block_mask has {block_mask.kv_indices.shape[-1]} columns of blocks, more than "
                f"the {self.n_pages} pages"
            )
        count = block_mask.kv_num_blocks
        lists = [count, moved(count, block_mask.kv_indices)]
        if block_mask.full_kv_num_blocks is not None:
            count = block_mask.full_kv_num_blocks
            lists += [count, moved(count, block_mask.full_kv_indices)]
        if kv_len is not None and len(lists) == 4:
            # The mask hides the rest of a sequence's last block: no block needs no mask.
            both = _dense(*lists[:2], self.n_pages) | _dense(*lists[2:], self.n_pages)
            lists = list(_ordered(both))
        return BlockMask.from_kv_blocks(
            *lists,
            BLOCK_SIZE=block_mask.BLOCK_SIZE,
            mask_mod=self._over_cache(block_mask.mask_mod, batch_idx, kv_len),
            seq_lengths=(block_mask.seq_lengths[0], self.n_pages * self.page_size),
            compute_q_blocks=False,
        )

    def _place(self, batch_idx: Tensor | None, kv_len: Tensor | None) -> Callable:
        """From a batch and a place in the cache: whether it holds a key of it, and which."""
        table, size = self.physical_to_logical, self.page_size

        def place(b: Tensor, kv_idx: Tensor) -> tuple[Tensor, Tensor]:
            sequence = b if batch_idx is None else batch_idx[b]
            part = table[sequence, kv_idx // size]
            position = part.clamp(min=0) * size + kv_idx % size
            live = part >= 0
            if kv_len is not None:
                live = live & (position < kv_len[b])
            return live, position

        return place

    def _over_cache(
        self, mask_mod: Callable | None, batch_idx: Tensor | None, kv_len: Tensor | None
    ) -> _mask_mod_signature:
        inner = noop_mask if mask_mod is None else mask_mod
        place = self._place(batch_idx, kv_len)

        def mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
            live, position = place(b, kv_idx)
            return live & inner(b, h, q_idx, position)

        return mask

    def get_mask_mod(
        self, mask_mod: _mask_mod_signature | None, kv_len: Tensor | None = None
    ) -> _mask_mod_signature:
        """The mask over the cache of one over sequences' own positions."""
        return self._over_cache(mask_mod, None, kv_len)

    def get_score_mod(
        self, score_mod: _score_mod_signature | None, kv_len: Tensor | None = None
    ) -> _score_mod_signature:
        """The function of scores over the cache of one over sequences' own positions."""
        inner = _identity if score_mod is None else score_mod
        place = self._place(None, kv_len)

        def score(value: Tensor, b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
            live, position = place(b, kv_idx)
            return torch.where(live, inner(value, b, h, q_idx, position), float("-inf"))

        return score
