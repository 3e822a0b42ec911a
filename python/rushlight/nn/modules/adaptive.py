"""A softmax over many classes that spends less on rare ones."""

from __future__ import annotations

from collections import namedtuple

import rushlight as torch
from rushlight import Tensor

from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """The adaptive softmax (Grave et al., 2016).

    Classes are sorted by frequency and cut into clusters at `cutoffs`; the head holds the first
    cluster and one
    entry for each other cluster, whose projections shrink by `div_value` each.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs,
        div_value: float = 4.0,
        head_bias: bool = False,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if len(cutoffs) == 0:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            cutoffs != sorted(cutoffs)
            or min(cutoffs) <= 0
            or max(cutoffs) > n_classes - 1
            or len(set(cutoffs)) != len(cutoffs)
            or any(int(cutoff) != cutoff for cutoff in cutoffs)
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an "
                "increasing order, "
                "where each value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        kwargs = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **kwargs)
        self.tail = ModuleList()
        for index in range(self.n_clusters):
            hidden = int(in_features // (div_value ** (index + 1)))
            size = self.cutoffs[index + 1] - self.cutoffs[index]
            self.tail.append(
                Sequential(
                    Linear(in_features, hidden, bias=False, **kwargs),
                    Linear(hidden, size, bias=False, **kwargs),
                )
            )

    def reset_parameters(self) -> None:
        """Fresh values for all weights."""
        self.head.reset_parameters()
        for to_hidden, to_classes in self.tail:
            to_hidden.reset_parameters()
            to_classes.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """The log-probabilities of the targets (N) for inputs (N, in_features), and their mean
        loss.
        """
        batched = target_.dim() > 0
        if batched:
            if input_.shape[0] != target_.shape[0]:
                raise RuntimeError(
                    "Input and target should have the same size in the batch dimension."
                )
            if target_.dim() != 1:
                raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        used = 0
        count = target.size(0)
        output = input.new_empty(count)
        gather = target.new_empty(count)
        bounds = [0, *self.cutoffs]
        for index in range(len(bounds) - 1):
            low, high = bounds[index], bounds[index + 1]
            rows = ((target >= low) & (target < high)).nonzero().squeeze()
            if rows.numel() == 0:
                continue
            if index == 0:
                gather.index_copy_(0, rows, target[rows].reshape(-1))
            else:
                relative = target[rows] - low
                subset = input.index_select(0, rows.reshape(-1))
                column = self.shortlist_size + index - 1
                gather.index_fill_(0, rows, column)
                log_probs = F.log_softmax(self.tail[index - 1](subset), dim=1)
                local = log_probs.gather(1, relative.reshape(-1, 1))
                output.index_copy_(0, rows.reshape(-1), local.squeeze(1))
            used += rows.numel()
        if used != count:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )
        head = F.log_softmax(self.head(input), dim=1)
        # The rows of the first cluster hold nothing yet; in place, as the tails' gradients pass
        # through.
        in_head = target < self.shortlist_size
        output = torch.where(in_head, torch.zeros_like(output), output)
        output = output + head.gather(1, gather.unsqueeze(1)).squeeze()
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _get_full_log_prob(self, input: Tensor, head_output: Tensor) -> Tensor:
        """The log-probabilities of all classes from those of the head."""
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for index in range(self.n_clusters):
            cluster = F.log_softmax(self.tail[index](input), dim=1)
            parts.append(cluster + head[:, self.shortlist_size + index].unsqueeze(1))
        return torch.cat(parts, dim=1)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities (N, n_classes)."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each input; most need the head alone."""
        head_output = self.head(input)
        output = torch.argmax(head_output, dim=1)
        outside = output >= self.shortlist_size
        if not outside.any():
            return output
        if outside.all():
            return torch.argmax(self._get_full_log_prob(input, head_output), dim=1)
        log_prob = self._get_full_log_prob(input[outside], head_output[outside])
        output[outside] = torch.argmax(log_prob, dim=1)
        return output
