"""Distributed training is not part of this build: its names are there, and say so when called."""

import importlib

import pytest
import rushlight as torch
import rushlight.distributed as dist
from rushlight.nn.parallel import DistributedDataParallel

HOMES = [
    "_composable.fsdp",
    "_tensor",
    "_tensor.experimental",
    "device_mesh",
    "distributed_c10d",
    "fsdp",
    "nn",
    "rpc",
    "tensor",
    "tensor.experimental",
    "tensor.parallel",
]


@pytest.mark.parametrize("home", HOMES)
def test_modules_have_what_they_list(home):
    module = importlib.import_module(f"rushlight.distributed.{home}")
    assert module.__all__
    for name in module.__all__:
        assert callable(getattr(module, name)) or name in ("default_pg_timeout",)


@pytest.mark.parametrize("name", ["all_reduce", "broadcast", "new_group", "barrier", "get_rank"])
def test_functions_need_a_group(name):
    with pytest.raises(ValueError, match=rf"process group has not been initialized.*\({name}:"):
        getattr(dist, name)(torch.ones(1))


def test_modules_need_a_group():
    model = torch.nn.Linear(1, 1)
    with pytest.raises(ValueError, match="DistributedDataParallel"):
        DistributedDataParallel(model, device_ids=None)
    assert not isinstance(model, DistributedDataParallel)
    with pytest.raises(ValueError, match="FullyShardedDataParallel"):
        dist.fsdp.FullyShardedDataParallel(model)


def test_questions_have_answers():
    assert not dist.is_available() and not dist.is_initialized() and not dist.rpc.is_available()
    assert dist.group.WORLD is None and dist.Backend("NCCL") == dist.Backend.NCCL
    assert not isinstance(torch.ones(1), dist.tensor.DTensor)
    assert dist.device_mesh.DeviceMesh is dist.DeviceMesh
    with pytest.raises(ValueError, match="string-ish: 3"):
        dist.Backend(3)
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        dist.no_such_name
