"""Batches of sequences of different lengths, padded or packed."""

from __future__ import annotations

from collections import namedtuple

import rushlight as torch
from rushlight import Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]

PackedSequence_ = namedtuple(
    "PackedSequence_",
    ["data", "batch_sizes", "sorted_indices", "unsorted_indices"],
    defaults=[None, None, None],
)


class PackedSequence(PackedSequence_):
    """The steps of all sequences, the first of each, then the second of each, and so on.

    `data` (sum of lengths, ...), `batch_sizes` how many sequences have a step t, on the CPU, and
    the order that sorts
    the sequences by falling length with its inverse, both None if they came sorted.
    """

    def __new__(
        cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None
    ) -> PackedSequence:
        if batch_sizes is None:  # called as PackedSequence((data, batch_sizes))
            if not isinstance(data, list | tuple) or len(data) != 2:
                raise AssertionError("expected data to be a (data, batch_sizes) pair")
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is not None and batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be "
                "created "
                "manually. They should be instantiated by functions like pack_sequence and "
                "pack_padded_sequences in nn.utils.rnn. "
                "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def pin_memory(self) -> PackedSequence:
        """The sequence with its data in pinned memory."""
        indices = (self.sorted_indices, self.unsorted_indices)
        pinned = (None if index is None else index.pin_memory() for index in indices)
        return type(self)(self.data.pin_memory(), self.batch_sizes, *pinned)

    def to(self, *args, **kwargs) -> PackedSequence:
        """The sequence with its data moved or cast; itself if nothing changes."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        indices = (self.sorted_indices, self.unsorted_indices)
        moved = (None if index is None else index.to(data.device) for index in indices)
        return type(self)(data, self.batch_sizes, *moved)

    def cpu(self, *args, **kwargs) -> PackedSequence:
        """The sequence on the CPU."""
        return self.to("cpu", *args, **kwargs)

    def cuda(self, *args, **kwargs) -> PackedSequence:
        """The sequence on a CUDA device."""
        return self.to("cuda", *args, **kwargs)

    def double(self) -> PackedSequence:
        """The sequence as float64."""
        return self.to(dtype=torch.double)

    def float(self) -> PackedSequence:
        """The sequence as float32."""
        return self.to(dtype=torch.float)

    def half(self) -> PackedSequence:
        """The sequence as float16."""
        return self.to(dtype=torch.half)

    def long(self) -> PackedSequence:
        """The sequence as int64."""
        return self.to(dtype=torch.long)

    def int(self) -> PackedSequence:
        """The sequence as int32."""
        return self.to(dtype=torch.int)

    def short(self) -> PackedSequence:
        """The sequence as int16."""
        return self.to(dtype=torch.short)

    def char(self) -> PackedSequence:
        """The sequence as int8."""
        return self.to(dtype=torch.int8)

    def byte(self) -> PackedSequence:
        """The sequence as uint8."""
        return self.to(dtype=torch.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a CUDA device."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Whether the data is in pinned memory."""
        return self.data.is_pinned()


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The order that undoes an order."""
    if permutation is None:
        return None
    inverse = torch.empty_like(permutation, memory_format=torch.contiguous_format)
    steps = torch.arange(0, permutation.numel(), device=permutation.device)
    return inverse.scatter_(0, permutation, steps)


def pack_padded_sequence(
    input: Tensor, lengths, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs (T, B, ...), or (B, T, ...) with `batch_first`, whose sequences have the given lengths.

    With `enforce_sorted`, they must come by falling length.
    """
    lengths = torch.as_tensor(lengths, dtype=torch.int64, device="cpu")
    if enforce_sorted:
        order = None
    else:
        lengths, order = torch.sort(lengths, descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    data, sizes = torch._pack_padded_sequence(input, lengths, batch_first)
    return PackedSequence(data, sizes, order, None)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The padded sequences (T, B, ...), or (B, T, ...) with `batch_first`, and their lengths."""
    steps = sequence.batch_sizes.size(0)
    if total_length is not None and total_length < steps:
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in "
            "input, but "
            f"got total_length={total_length} and max sequence length being {steps}"
        )
    padded, lengths = torch._pad_packed_sequence(
        sequence.data, sequence.batch_sizes, batch_first, padding_value, total_length or -1
    )
    order = sequence.unsorted_indices
    if order is not None:
        return padded.index_select(0 if batch_first else 1, order), lengths[order.cpu()]
    return padded, lengths


def pad_sequence(
    sequences,
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences (L, ...) stacked as (T, B, ...), or (B, T, ...) with `batch_first`, with
    padding.
    """
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    elif not hasattr(sequences, "__iter__"):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    sequences = list(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    if not isinstance(batch_first, bool):
        raise TypeError(
            "pad_sequence(): argument 'batch_first' (position 2) must be bool, not "
            f"{type(batch_first).__name__}"
        )
    for number, sequence in enumerate(sequences):
        if not isinstance(sequence, Tensor):
            raise TypeError(
                f"pad_sequence(): expected Tensor as element {number} in argument 'sequences', but "
                f"got {type(sequence).__name__}"
            )
    first = sequences[0]
    longest = max(sequence.size(0) for sequence in sequences)
    shape = (len(sequences), longest) if batch_first else (longest, len(sequences))
    padded = first.new_full((*shape, *first.shape[1:]), padding_value)
    for index, sequence in enumerate(sequences):
        length = sequence.size(0)
        start = 0 if padding_side == "right" else longest - length
        place = padded[index] if batch_first else padded[:, index]
        place[start : start + length].copy_(sequence)
    return padded


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list:
    """The sequences without their padding."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [
        row[: int(length)].clone(memory_format=torch.contiguous_format)
        for row, length in zip(padded_sequences, lengths)
    ]


def pack_sequence(sequences, enforce_sorted: bool = True) -> PackedSequence:
    """Packs a list of sequences (L, ...)."""
    lengths = torch.as_tensor([sequence.size(0) for sequence in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences that were packed."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
