"""dtype, device, Size, Generator and the other small types."""

import copy
import pickle

import pytest
import rushlight as torch


def test_dtypes_are_single_objects_with_pytorchs_names():
    assert repr(torch.float32) == "torch.float32"
    assert (
        torch.float is torch.float32 and torch.long is torch.int64 and torch.half is torch.float16
    )
    for dtype in (torch.float32, torch.bool, torch.bfloat16, torch.complex64):
        assert pickle.loads(pickle.dumps(dtype)) is dtype
        assert copy.deepcopy(dtype) is dtype
    assert torch.float16.is_floating_point and torch.float16.itemsize == 2
    assert torch.complex64.is_complex and not torch.uint8.is_signed
    assert torch.complex128.to_real() is torch.float64
    assert torch.float32.to_complex() is torch.complex64
    with pytest.raises(TypeError):
        torch.dtype()


def test_devices():
    assert str(torch.device("cpu")) == "cpu"
    assert repr(torch.device("cpu", 0)) == "device(type='cpu', index=0)"
    assert torch.device("cpu:1").index == 1
    assert torch.device(type="cpu") == torch.device("cpu")
    assert torch.device("cpu") != torch.device("meta")
    assert torch.device("cpu") != "cpu"
    assert len({torch.device("cpu"), torch.device("cpu")}) == 1
    assert pickle.loads(pickle.dumps(torch.device("cpu:0"))) == torch.device("cpu:0")
    with pytest.raises(RuntimeError, match="foo"):
        torch.device("foo")
    with pytest.raises(TypeError, match="must be torch.device or str"):
        torch.device(1.5)


def test_size_is_a_tuple():
    size = torch.Size([2, 3])
    assert size == (2, 3) and isinstance(size, tuple)
    assert size.numel() == 6
    assert repr(size) == "torch.Size([2, 3])"
    assert type(size + (1,)) is type((1,) + size) is type(size * 2) is type(size[:1]) is torch.Size
    assert size[0] == 2 and isinstance(size[0], int)
    assert pickle.loads(pickle.dumps(size)) == size
    assert torch.Size([torch.tensor(4)]) == (4,)
    with pytest.raises(TypeError, match=r"item 1 is 'str'"):
        torch.Size([2, "a"])


def test_generators():
    a, b = torch.Generator(), torch.Generator()
    assert a.manual_seed(7) is a and a.initial_seed() == 7
    b.set_state(a.get_state())
    assert torch.rand(3, generator=a).tolist() == torch.rand(3, generator=b).tolist()
    c = a.clone_state()
    assert torch.rand(3, generator=a).tolist() == torch.rand(3, generator=c).tolist()
    d = pickle.loads(pickle.dumps(a))
    assert torch.rand(3, generator=a).tolist() == torch.rand(3, generator=d).tolist()
    assert a.manual_seed(-1).initial_seed() == 2**64 - 1
    with pytest.raises(TypeError, match="ByteTensor"):
        a.set_state(torch.zeros(3))
    with pytest.raises(ValueError, match="Overflow"):
        a.manual_seed(2**64)


def test_default_generator_and_fork():
    assert torch.manual_seed(3) is torch.default_generator
    assert torch.initial_seed() == 3
    state = torch.get_rng_state()
    first = torch.rand(2).tolist()
    torch.set_rng_state(state)
    with torch.random.fork_rng():
        torch.rand(5)
    assert torch.rand(2).tolist() == first


def test_limits():
    assert repr(torch.finfo(torch.float16)).startswith(
        "finfo(resolution=0.001, min=-65504, max=65504"
    )
    assert torch.finfo().dtype == "float32" and torch.finfo(torch.complex64).bits == 32
    assert torch.finfo(torch.bfloat16).smallest_normal == 1.1754943508222875e-38
    assert repr(torch.iinfo(torch.int8)) == "iinfo(min=-128, max=127, dtype=int8)"
    assert torch.iinfo(torch.uint64).max == 2**64 - 1
    with pytest.raises(TypeError, match="requires a floating point input type"):
        torch.finfo(torch.int8)
    with pytest.raises(TypeError, match="torch.bool is not supported"):
        torch.iinfo(torch.bool)


def test_settings():
    assert torch.get_default_dtype() is torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.zeros(1).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    with pytest.raises(TypeError, match="only floating-point types"):
        torch.set_default_dtype(torch.int32)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    assert torch.get_num_threads() == 1
    torch.set_num_threads(threads)
    with pytest.raises(RuntimeError, match="positive integer"):
        torch.set_num_threads(0)
    torch.use_deterministic_algorithms(True)
    assert torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(False)


def test_promotion_questions():
    assert torch.promote_types(torch.int8, torch.uint8) is torch.int16
    assert torch.result_type(1, torch.ones(1)) is torch.float32
    assert torch.result_type(torch.ones(1, dtype=torch.int8), 1.5) is torch.float32
    assert torch.can_cast(torch.int32, torch.float32)
    assert not torch.can_cast(torch.float32, torch.int32)
    with pytest.raises(
        TypeError, match=r"promote_types\(\): argument 'type1'.* must be torch.dtype"
    ):
        torch.promote_types(1, 2)


def test_names_of_types():
    x = torch.ones(1)
    assert x.type() == torch.typename(x) == "torch.FloatTensor"
    assert x.type("torch.IntTensor").dtype is torch.int32
    assert x.type(torch.LongTensor).dtype is torch.int64
    assert isinstance(x, torch.FloatTensor) and not isinstance(x, torch.LongTensor)
    assert torch.LongTensor([1, 2]).tolist() == [1, 2]
    assert torch.typename(3) == "int"


def test_memory_controls():
    before = torch.cpu.memory_allocated()
    x = torch.empty(1 << 20)
    assert torch.cpu.memory_allocated() - before >= 4 << 20
    del x
    assert torch.cpu.memory_allocated() <= before + (1 << 20)
    torch.cpu.set_memory_limit(torch.cpu.memory_allocated() + (1 << 20))
    try:
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(1 << 22)
    finally:
        torch.cpu.set_memory_limit(0)


def test_operator_namespace():
    packet = torch.ops.aten.add
    assert str(packet) == "aten.add" and "Tensor" in packet.overloads()
    assert packet.Tensor(torch.ones(1), torch.ones(1)).item() == 2.0
    assert packet.Tensor(self=torch.ones(1), other=torch.ones(1), alpha=3).item() == 4.0
    assert packet.Tensor._schema.startswith("aten::add.Tensor(Tensor self, Tensor other")
    assert packet.Tensor.name() == "aten::add.Tensor"
    assert packet(torch.ones(1), torch.ones(1)).item() == 2.0
    with pytest.raises(AttributeError, match="no overload name"):
        packet.nothing
    with pytest.raises(AttributeError):
        torch.ops.aten.no_such_operator


def test_accelerators_are_absent():
    assert not torch.cuda.is_available() and torch.cuda.device_count() == 0
    assert not torch.backends.mps.is_available()
    with pytest.raises(AssertionError, match="CUDA"):
        torch.cuda.current_device()
