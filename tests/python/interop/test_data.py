"""Tensors of Python data, of arrays and of buffers, and back."""

import array
import gc

import pytest
import rushlight as torch


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (1, torch.int64, ()),
        (1.5, torch.float32, ()),
        (True, torch.bool, ()),
        (1j, torch.complex64, ()),
        ([], torch.float32, (0,)),
        ([[]], torch.float32, (1, 0)),
        ([1, 2.0], torch.float32, (2,)),
        ([True, 2], torch.int64, (2,)),
        ([(1, 2), [3, 4]], torch.int64, (2, 2)),
        (range(3), torch.int64, (3,)),
        (array.array("i", [1, 2]), torch.int64, (2,)),
        ([torch.tensor(1.0), torch.tensor(2)], torch.float32, (2,)),
    ],
)
def test_dtype_and_shape_follow_the_data(data, dtype, shape):
    made = torch.tensor(data)
    assert made.dtype is dtype
    assert made.shape == shape


@pytest.mark.parametrize(
    ("data", "dtype", "kind", "text"),
    [
        ("abc", None, TypeError, "invalid data type 'str'"),
        (["a"], None, ValueError, "too many dimensions 'str'"),
        (None, None, RuntimeError, "Could not infer dtype of NoneType"),
        ({1: 2}, None, RuntimeError, "Could not infer dtype of dict"),
        ([[1, 2], [3]], None, ValueError, "expected sequence of length 2 at dim 1 \\(got 1\\)"),
        ([[1, 2], 3], None, TypeError, "not a sequence"),
        (2**63, None, ValueError, "Overflow when unpacking long long"),
        (300, torch.uint8, RuntimeError, "value cannot be converted to type uint8"),
        ([1e10], torch.int32, RuntimeError, "value cannot be converted to type int32"),
        ([1j], torch.float32, TypeError, "must be real number, not complex"),
    ],
)
def test_what_is_no_data_is_refused(data, dtype, kind, text):
    with pytest.raises(kind, match=text):
        torch.tensor(data, dtype=dtype)


def test_integers_cannot_require_gradients():
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype"):
        torch.tensor([1], requires_grad=True)


def test_arrays_are_shared_both_ways():
    numpy = pytest.importorskip("numpy")
    source = numpy.arange(6.0).reshape(2, 3)
    shared = torch.from_numpy(source)
    shared[0, 0] = 9
    assert source[0, 0] == 9
    back = shared.t().numpy()
    back[2, 1] = 7
    assert source[1, 2] == 7
    assert back.strides == source.T.strides
    del source, shared
    gc.collect()
    assert back[2, 1] == 7


def test_every_numpy_dtype_goes_both_ways():
    numpy = pytest.importorskip("numpy")
    names = "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 float32 float64"
    for name in [*names.split(), "complex64", "complex128"]:
        values = numpy.array([0, 1, 2], dtype=name)
        tensor = torch.from_numpy(values)
        assert str(tensor.dtype) == f"torch.{name}"
        assert tensor.numpy().dtype == values.dtype
        assert (tensor.numpy() == values).all()


def test_arrays_that_tensors_cannot_show_are_refused():
    numpy = pytest.importorskip("numpy")
    with pytest.raises(ValueError, match="stride in the given numpy array is negative"):
        torch.from_numpy(numpy.arange(3)[::-1])
    with pytest.raises(ValueError, match="byte order different from the native"):
        torch.from_numpy(numpy.array([1], dtype=">i4"))
    with pytest.raises(TypeError, match="can't convert np.ndarray of type numpy.str_"):
        torch.tensor(numpy.array(["a"]))
    with pytest.raises(TypeError, match=r"expected np.ndarray \(got list\)"):
        torch.from_numpy([1])


def test_tensors_that_arrays_cannot_show_are_refused():
    pytest.importorskip("numpy")
    with pytest.raises(RuntimeError, match="Use tensor.detach\\(\\).numpy\\(\\) instead"):
        torch.zeros(2, requires_grad=True).numpy()
    with pytest.raises(TypeError, match="Got unsupported ScalarType BFloat16"):
        torch.zeros(2, dtype=torch.bfloat16).numpy()


def test_numpy_functions_take_tensors():
    numpy = pytest.importorskip("numpy")
    assert numpy.asarray(torch.ones(2)).tolist() == [1.0, 1.0]
    assert numpy.sin(torch.zeros(2)).tolist() == [0.0, 0.0]


def test_buffers_are_shared():
    data = bytearray(b"\x01\x00\x02\x00")
    tensor = torch.frombuffer(data, dtype=torch.int16)
    assert tensor.tolist() == [1, 2]
    data[0] = 5
    assert tensor.tolist() == [5, 2]
    with pytest.raises(ValueError, match="must be a multiple of element size"):
        torch.frombuffer(data, dtype=torch.int64)


def test_dlpack_shares_memory():
    source = torch.arange(6.0).reshape(2, 3).t()
    view = torch.from_dlpack(source)
    view[0, 0] = 8
    assert source[0, 0] == 8
    assert view.stride() == source.stride()
    capsule = torch.utils.dlpack.to_dlpack(source)
    assert torch.from_dlpack(capsule).tolist() == source.tolist()
    with pytest.raises(RuntimeError, match="consumed only once"):
        torch.from_dlpack(capsule)
    with pytest.raises(BufferError, match="require gradient"):
        torch.ones(2, requires_grad=True).__dlpack__()


def test_dlpack_goes_to_numpy_and_back():
    numpy = pytest.importorskip("numpy")
    tensor = torch.arange(4)
    shown = numpy.from_dlpack(tensor)
    tensor[0] = 9
    assert shown[0] == 9
    assert torch.from_dlpack(numpy.arange(3)).tolist() == [0, 1, 2]


def test_asarray_shares_where_it_can():
    tensor = torch.ones(2)
    assert torch.asarray(tensor) is tensor
    assert torch.asarray([1, 2]).tolist() == [1, 2]
    assert torch.asarray(bytearray(b"\x01"), dtype=torch.uint8).tolist() == [1]
    with pytest.raises(ValueError, match="can't alias"):
        torch.asarray(tensor, dtype=torch.int64, copy=False)


def test_storages_show_the_bytes():
    tensor = torch.arange(3, dtype=torch.int32)
    storage = tensor.untyped_storage()
    assert storage.nbytes() == 12
    assert storage.data_ptr() == tensor.data_ptr()
    assert storage[4] == 1
    assert tensor[1:].untyped_storage() == storage
    again = torch.zeros(0, dtype=torch.int32).set_(storage, 1, (2,), (1,))
    assert again.tolist() == [1, 2]
    storage.resize_(20)
    assert storage.nbytes() == 20
    assert tensor.tolist() == [0, 1, 2]


def test_an_emptied_storage_cannot_be_read_or_written_until_it_grows_again():
    tensor = torch.arange(2000.0)
    row = tensor[:10]
    storage = tensor.untyped_storage()
    storage.resize_(0)
    assert storage.nbytes() == 0 and storage.data_ptr() == 0 and tensor.data_ptr() == 0
    assert tensor.shape == (2000,) and tensor.view(40, 50).shape == (40, 50)
    for use in (
        lambda: tensor + 1,
        lambda: tensor.sum(),
        lambda: row.fill_(1),
        lambda: row.clone(),
        lambda: row[0].item(),
        lambda: repr(row),
        lambda: torch.ones(10).copy_(row),
        lambda: torch.mm(tensor.view(40, 50), torch.ones(50, 2)),
        lambda: torch.softmax(tensor, 0),
        lambda: tensor.numpy(),
        lambda: torch.compile(lambda x: x * 2 + 1)(tensor),
    ):
        with pytest.raises(RuntimeError, match="out of bounds for storage of size 0"):
            use()
    storage.resize_(8000)
    tensor.copy_(torch.arange(2000.0))
    assert row.tolist() == list(range(10))


def test_a_storage_made_smaller_keeps_memory_for_the_tensors_over_it():
    tensor = torch.arange(5000.0)
    storage = tensor.untyped_storage()
    storage.resize_(40)
    assert storage.nbytes() == 40
    others = [torch.zeros(10) for _ in range(100)]
    tensor.fill_(7)  # past the 40 bytes: nobody else's memory
    assert all(not other.any() for other in others)
    storage.resize_(0)
    storage.resize_(80)
    tensor.fill_(3)
    assert tensor.sum() == 15000
    with pytest.raises(RuntimeError, match="cannot be shared while tensors may reach"):
        tensor.share_memory_()
    storage.resize_(20000)
    assert tensor.share_memory_()[4999] == 3


def test_a_storage_without_tensors_gives_memory_back():
    before = torch.cpu.memory_allocated()
    storage = torch.UntypedStorage(1 << 22)
    storage.resize_(1 << 16)
    assert torch.cpu.memory_allocated() - before < 1 << 18
    tensor = torch.zeros(1 << 20)
    held = torch.cpu.memory_allocated()
    tensor.untyped_storage().resize_(0)
    assert held - torch.cpu.memory_allocated() >= 1 << 22


def test_the_device_of_a_context_is_used():
    with torch.device("meta"):
        assert torch.tensor([1.0]).is_meta
        assert torch.as_tensor([1]).is_meta
    assert not torch.tensor([1.0]).is_meta


def test_the_class_makes_tensors_of_sizes_and_data():
    assert torch.Tensor(2, 3).shape == (2, 3)
    assert torch.Tensor(size=(2, 3)).shape == (2, 3)
    assert torch.Tensor([1, 2]).dtype is torch.float32
    assert torch.Tensor(data=[1]).tolist() == [1.0]
    with pytest.raises(TypeError, match="data must be a sequence"):
        torch.Tensor(2.5)


def test_memory_that_an_array_shares_is_not_moved():
    numpy = pytest.importorskip("numpy")
    x = torch.ones(3)
    shared = x.numpy()
    with pytest.raises(RuntimeError, match="resize storage that is not resizable"):
        x.resize_(5000)
    assert shared.tolist() == [1, 1, 1]
    y = torch.ones(3)
    shared = numpy.from_dlpack(y)
    with pytest.raises(RuntimeError, match="resize storage that is not resizable"):
        y.resize_(5000)
    assert shared.tolist() == [1, 1, 1]


def test_arrays_of_what_requires_grad():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Can't call numpy.. on Tensor that requires grad"):
        x.numpy()
    with torch.no_grad():
        assert x.numpy().tolist() == [1.0, 1.0]


def test_asarray_keeps_what_requires_grad():
    x = torch.ones(2, requires_grad=True)
    made = x * 2
    with pytest.warns(UserWarning, match="unspecified requires_grad now defaults to obj.requires"):
        assert torch.asarray(made) is made
    assert not torch.asarray(made, requires_grad=False).requires_grad
    assert torch.asarray(made, requires_grad=True).grad_fn is not None
    assert not torch.asarray(torch.ones(2)).requires_grad
