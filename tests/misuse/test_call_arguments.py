"""Arguments that no text can show, that change while they are read, or that are no arguments."""

import pytest
import rushlight as torch
from rushlight import Tensor

LONE = "\ud800"  # a surrogate on its own: UTF-8 has no bytes for it


class Shown(int):
    """An integer that shows itself as what UTF-8 cannot hold."""

    def __str__(self) -> str:
        return LONE

    __repr__ = __str__


def shrinking(length: int, at: int = 0) -> list:
    """A list of ones that is emptied when its item `at` is asked for its value."""
    items: list = [1] * length

    class Emptying:
        def __index__(self) -> int:
            items.clear()
            return 1

    items[at] = Emptying()
    return items


def test_keyword_that_is_no_text():
    with pytest.raises(TypeError, match=r"unexpected keyword argument '\\ud800'"):
        torch.ones(3).sin(**{LONE: 1})


def test_keyword_that_is_no_text_among_overloads():
    with pytest.raises(TypeError, match=r"invalid combination of arguments - got \(.*\\ud800=int"):
        torch.ones(3).sum(**{LONE: 1})


def test_precision_that_is_no_text():
    with pytest.raises(RuntimeError, match=r"no precision of matrix products: '\\ud800'"):
        torch._C._set_float32_matmul_precision(LONE)


def test_size_of_numbers_that_show_no_text():
    assert repr(torch.Size([Shown(1), 2])) == "torch.Size([\\ud800, 2])"


def test_named_results_that_show_no_text():
    assert repr(torch.return_types.max((1, Shown(2)))) == (
        "torch.return_types.max(\nvalues=1,\nindices=\\ud800)"
    )


def test_attribute_of_a_node_that_is_no_text():
    node = (torch.ones(2, requires_grad=True) * 2).grad_fn
    with pytest.raises(AttributeError):
        getattr(node, LONE)


@pytest.mark.parametrize("result", ["64", "-1", "9"])
def test_saved_result_that_the_operator_has_not(result):
    node = torch.ones(2, requires_grad=True).exp().grad_fn
    assert node._saved_result.tolist() == pytest.approx([2.7182817, 2.7182817])
    with pytest.raises(AttributeError):
        getattr(node, "_saved_result" + result)


@pytest.mark.parametrize(
    "use",
    [
        torch.ones,
        torch.tensor,
        torch.ones(8).view,
        torch.ones(2, 2).sum,
        lambda items: torch.nn.functional.pad(torch.ones(2), items),
        lambda items: torch.ones(1).expand(items),
    ],
)
@pytest.mark.parametrize("length", [3, 300])
def test_list_that_changes_while_it_is_read(use, length):
    with pytest.raises(RuntimeError, match="a list changed its size while its items were conv"):
        use(shrinking(length))


def test_nested_list_that_changes_while_it_is_read():
    class Emptying:
        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: int) -> int:
            rows.clear()
            return [1, 2][index]

    rows = [[1, 2], Emptying(), *([1, 2] for _ in range(100))]
    with pytest.raises(RuntimeError, match="a list changed its size while its items were conv"):
        torch.tensor(rows, dtype=torch.int64)


def test_outputs_that_change_while_arguments_are_read():
    outputs = [torch.empty(2), torch.empty(2, dtype=torch.int64)]

    class Emptying:
        def __index__(self) -> int:
            outputs.clear()
            return 0

    with pytest.raises(TypeError, match="argument 'out' must have 2 tensors, not 0"):
        torch.max(torch.ones(2, 2), out=outputs, dim=Emptying())


def test_handler_that_drops_those_asked_after_it():
    asked = []

    class First(Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append(cls)
            args[0].clear()
            args[0].extend(torch.ones(1).as_subclass(First) for _ in range(100))
            return NotImplemented

    class Second(Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append(cls)
            return "second"

    tensors = [torch.ones(1).as_subclass(First), torch.ones(1).as_subclass(Second)]
    assert torch.cat(tensors) == "second"
    assert asked == [First, Second]


@pytest.mark.parametrize(
    "call", [torch._C._disabled_torch_function_impl, torch._C._disabled_torch_dispatch_impl]
)
def test_keywords_that_are_no_dict(call):
    with pytest.raises(TypeError, match="keyword arguments must be a dict, not int"):
        call(torch.sin, (), (torch.ones(1),), 5)


def test_arguments_that_hold_themselves():
    from rushlight.utils._python_dispatch import TorchDispatchMode

    class Seeing(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return None

    endless: list = []
    endless.append(endless)
    with Seeing(), pytest.raises(RecursionError, match="looking for tensors in arguments"):
        torch._C._dispatch(torch.ops.aten.sin.default, (endless,), {})


def test_hooks_that_are_no_dict():
    x = torch.ones(1)
    with pytest.raises(TypeError, match="'int' has no len"):
        x._backward_hooks = 3


def test_dlpack_device_that_is_no_pair():
    with pytest.raises(TypeError, match="'dl_device' must be a tuple of two ints, not int"):
        torch.ones(1).__dlpack__(dl_device=1)


def test_storage_is_not_resized_under_a_buffer():
    storage = torch.ones(4).untyped_storage()
    with memoryview(storage) as view:
        with pytest.raises(RuntimeError, match="storage that is not resizable"):
            storage.resize_(10**6)
        assert len(view) == 16
    assert storage.resize_(32).nbytes() == 32


def test_storage_does_not_move_under_a_buffer():
    storage = torch.ones(4).untyped_storage()
    with memoryview(storage):
        with pytest.raises(BufferError, match="cannot move while a buffer is over it"):
            storage.share_memory_()
    assert storage.share_memory_().is_shared()


def test_storage_of_an_array_stays_after_a_buffer():
    tensor = torch.ones(4)
    storage = tensor.untyped_storage()
    with memoryview(storage):
        array = tensor.numpy()
    with pytest.raises(RuntimeError, match="storage that is not resizable"):
        storage.resize_(10**6)
    assert array.sum() == 4
