"""Datasets, samplers and data loaders."""

from ._iterators import _DatasetKind as _DatasetKind
from .dataloader import DataLoader, default_collate, default_convert, get_worker_info
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .distributed import DistributedSampler
from .sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
]

_LAZY = {
    "datapipes.datapipe": ("DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe"),
    "datapipes._decorator": (
        "argument_validation",
        "functional_datapipe",
        "guaranteed_datapipes_determinism",
        "non_deterministic",
        "runtime_validation",
        "runtime_validation_disabled",
    ),
}
_HOME = {name: module for module, names in _LAZY.items() for name in names}
__all__ += _HOME


def __getattr__(name: str) -> object:
    """Loads pipes, and what belongs to them, at first use."""
    import importlib

    if name in _HOME:
        importlib.import_module(f"{__name__}.datapipes")  # gives pipes their short names
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    if name in ("datapipes", "graph", "graph_settings"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
