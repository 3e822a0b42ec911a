"""Identity, life and subclasses of Tensor objects."""

import copy
import gc
import sys
import weakref

import pytest
import rushlight as torch
from rushlight import Tensor


class Named(Tensor):
    pass


def test_a_tensor_keeps_one_object_while_alive():
    x = torch.zeros(3)
    y = torch.zeros(3)
    torch.add(x, 1, out=y)
    assert torch.add(x, 1, out=y) is y
    assert x.contiguous() is x


def test_attributes_belong_to_the_object():
    x = torch.zeros(2)
    x.note = "kept"
    assert x.note == "kept"
    assert x.__dict__ == {"note": "kept"}
    del x.note
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'note'"):
        _ = x.note


def test_a_subclass_object_outlives_its_last_reference_while_the_graph_holds_it():
    leaf = Tensor._make_subclass(Named, torch.ones(2), True)
    leaf.note = "kept"
    product = torch.mul(leaf, 2).sum()
    watch = weakref.ref(leaf)
    del leaf
    gc.collect()
    product.backward()
    alive = watch()
    assert alive is not None and alive.note == "kept" and type(alive) is Named
    assert alive.grad.tolist() == [2.0, 2.0]


def test_a_plain_object_dies_with_its_last_reference():
    x = torch.zeros(2)
    watch = weakref.ref(x)
    del x
    assert watch() is None


def test_cycles_through_attributes_are_collected():
    x = torch.zeros(2)
    x.me = x
    watch = weakref.ref(x)
    del x
    gc.collect()
    assert watch() is None


def test_finalizers_and_slots_of_subclasses_run():
    seen = []

    class Watched(Tensor):
        __slots__ = ("extra",)

        def __del__(self):
            seen.append(type(self).__name__)

    x = torch.zeros(2).as_subclass(Watched)
    x.extra = object()
    held = sys.getrefcount(x.extra)
    extra = x.extra
    del x
    assert seen == ["Watched"]
    assert sys.getrefcount(extra) <= held


def test_make_subclass_shares_memory_outside_the_graph():
    data = torch.zeros(2, requires_grad=True)
    x = Tensor._make_subclass(Named, data)
    assert type(x) is Named and not x.requires_grad and x.data_ptr() == data.data_ptr()
    with pytest.raises(TypeError, match="subclass of Tensor"):
        Tensor._make_subclass(int, data)


def test_as_subclass_keeps_the_graph():
    leaf = torch.ones(2, requires_grad=True)
    x = leaf.as_subclass(Named)
    assert type(x) is Named and x.requires_grad and not x.is_leaf


def test_many_objects_come_and_go():
    for _ in range(3):
        many = [torch.zeros(1) for _ in range(1000)]
        assert len({id(x) for x in many}) == 1000
        del many


def test_class_call_makes_default_float_tensors():
    assert torch.Tensor(2, 3).shape == (2, 3)
    assert torch.Tensor([1, 2]).tolist() == [1.0, 2.0]
    assert torch.Tensor().shape == (0,)


def test_deepcopy_makes_a_leaf_of_its_own():
    x = torch.ones(2, requires_grad=True)
    x.note = [1]
    y = copy.deepcopy(x)
    assert y is not x and y.requires_grad and y.data_ptr() != x.data_ptr()
    assert y.note == [1] and y.note is not x.note
    with pytest.raises(RuntimeError, match="created explicitly by the user"):
        copy.deepcopy(x * 2)


def test_hash_is_identity():
    x, y = torch.zeros(1), torch.zeros(1)
    assert hash(x) == id(x)
    assert len({x, y, x}) == 2
    assert x in {x: 1}


def test_class_members_can_be_added():
    Tensor.doubled = lambda self: self + self
    try:
        assert torch.ones(1).doubled().item() == 2.0
    finally:
        del Tensor.doubled


def test_attributes_refuse_values_of_other_types():
    x = torch.ones(2)
    with pytest.raises(TypeError, match="must be bool, not str"):
        x.requires_grad_("a")
    with pytest.raises(RuntimeError, match="requires_grad must be a bool"):
        x.requires_grad = 3
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got int"):
        x.data = 3
    with pytest.raises(AttributeError, match="not writable"):
        x.shape = (1, 2)


def test_a_tensor_that_the_collector_took_is_reused_once():
    class Holder:
        pass

    gc.collect()
    for _ in range(8):
        tensor = torch.ones(2)
        tensor.holder = None  # known to the collector before the holder, so cleared before it
        tensor.holder = holder = Holder()
        holder.tensor = tensor
        del tensor, holder
        for _ in range(3):  # what the first one frees must not be there for the next
            gc.collect()
    fresh = [torch.ones(i) for i in range(32)]
    assert len({id(tensor) for tensor in fresh}) == 32
    assert [tensor.shape for tensor in fresh] == [(i,) for i in range(32)]


def test_a_class_of_the_metaclass_need_not_be_a_tensor():
    class Other(metaclass=type(Tensor)):
        pass

    watch = weakref.ref(Other())
    assert watch() is None
    made = [Other() for _ in range(100)]
    made[0].other = made
    del made
    gc.collect()
