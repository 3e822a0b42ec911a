"""backward and grad as Python sees them."""

import gc
import threading
import weakref

import pytest
import rushlight as torch


def leaf(*values):
    return torch.tensor(values, dtype=torch.float32, requires_grad=True)


def test_backward_accumulates():
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    (x * x).sum().backward()
    assert x.grad.tolist() == [4.0, 8.0]


def test_grad_of_a_result_needs_retain_grad():
    x = leaf(3.0)
    y = x * 2
    with pytest.warns(UserWarning, match="not a leaf Tensor"):
        assert y.grad is None
    y.retain_grad()
    assert y.retains_grad
    (y * y).sum().backward()
    assert y.grad.tolist() == [12.0]


def test_grad_gives_a_tuple():
    x = leaf(1.0, 2.0)
    y = x * x
    (gradient,) = torch.autograd.grad(y.sum(), x)
    assert gradient.tolist() == [2.0, 4.0]
    assert x.grad is None


def test_grad_of_a_dict_of_inputs():
    x, z = leaf(2.0), leaf(5.0)
    found = torch.autograd.grad((x * z).sum(), {"x": x, "z": z})
    assert {name: g.tolist() for name, g in found.items()} == {"x": [5.0], "z": [2.0]}


def test_unused_inputs():
    x, z = leaf(2.0), leaf(5.0)
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        torch.autograd.grad((x * x).sum(), z)
    assert torch.autograd.grad((x * x).sum(), z, allow_unused=True) == (None,)
    (zeros,) = torch.autograd.grad((x * x).sum(), z, materialize_grads=True)
    assert zeros.tolist() == [0.0]
    with pytest.raises(ValueError, match="Expected allow_unused to be True"):
        torch.autograd.grad(x.sum(), z, allow_unused=False, materialize_grads=True)


def test_backward_into_inputs():
    x, z = leaf(2.0), leaf(5.0)
    (x * z).sum().backward(inputs=[z])
    assert x.grad is None
    assert z.grad.tolist() == [2.0]
    with pytest.raises(RuntimeError, match=r"`inputs` argument to `backward\(\)` cannot be empty"):
        (x * z).sum().backward(inputs=[])


def test_double_backward():
    x = leaf(3.0)
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    assert first.requires_grad
    (second,) = torch.autograd.grad(first.sum(), x)
    assert second.tolist() == pytest.approx([18.0])


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda: leaf(1.0, 2.0).backward(), "grad can be implicitly created only for scalar"),
        (lambda: torch.ones(1).backward(), "element 0 of tensors does not require grad and does"),
        (lambda: leaf(1.0, 2.0).backward(torch.ones(3)), "Mismatch in shape: grad_output"),
        (lambda: torch.autograd.grad(leaf(1.0), torch.ones(1)), "does not require grad"),
        (lambda: torch.autograd.grad(leaf(1.0), []), "cannot be empty"),
        (lambda: torch.ones(1).retain_grad(), "can't retain_grad on Tensor that has requires_grad"),
        (lambda: torch.ones(2, dtype=torch.int64).requires_grad_(), "only Tensors of floating"),
        (lambda: leaf(1.0).mul_(2), "a leaf Variable that requires grad is being used in an in-"),
        (lambda: leaf(1.0, 2.0)[:1].mul_(2), "a view of a leaf Variable that requires grad"),
    ],
)
def test_mistakes(function, text):
    with pytest.raises(RuntimeError, match=text):
        function()


def test_batched_gradients():
    x, unused = leaf(1.0, 2.0), leaf(1.0)
    rows = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    found = torch.autograd.grad(x * x, [x, unused], rows, is_grads_batched=True, allow_unused=True)
    assert found[0].tolist() == [[2.0, 0.0], [0.0, 4.0], [2.0, 4.0]]
    assert found[1] is None
    with pytest.raises(ValueError, match="is_grads_batched=True expects grad_outputs"):
        torch.autograd.grad((x * x).sum(), x, is_grads_batched=True)


def test_walking_twice_is_an_error():
    x = leaf(3.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_assigned_grad_is_checked():
    x = leaf(1.0, 2.0)
    with pytest.raises(TypeError, match="assigned grad expected to be a Tensor or None"):
        x.grad = 1
    with pytest.raises(RuntimeError, match=r"attempting to assign a gradient of size '\[3\]'"):
        x.grad = torch.ones(3)
    x.grad = torch.ones(2)
    x.grad = None
    assert x.grad is None
    with pytest.raises(AttributeError):
        x.grad_fn = None


def test_nodes():
    x = leaf(1.0, 2.0)
    y = x * x
    node = y.grad_fn
    assert node is y.grad_fn
    assert node.name() == "MulBackward0"
    assert type(node).__name__ == "MulBackward0"
    assert isinstance(node, torch.autograd.graph.Node)
    (left, index), _ = node.next_functions
    assert (left.name(), index) == ("AccumulateGrad", 0)
    assert left.variable is x
    assert left.next_functions == ()
    assert node._saved_self is x
    assert "MulBackward0" in repr(node)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        _ = node._saved_self
    assert x.grad_fn is None
    assert x.is_leaf
    assert not y.is_leaf


def test_saved_attributes_of_a_reduction():
    node = torch.ones(2, 3, requires_grad=True).sum(1, keepdim=True).grad_fn
    assert node._saved_keepdim is True
    with pytest.raises(AttributeError):
        _ = node._saved_nothing


def test_gradient_edges_stand_for_tensors():
    x = leaf(2.0)
    y = x * 3
    edge = torch.autograd.graph.get_gradient_edge(y)
    z = (y * y).sum()
    assert torch.autograd.grad(z, edge, retain_graph=True)[0].tolist() == [12.0]
    torch.autograd.backward(torch.autograd.graph.get_gradient_edge(z))
    assert x.grad.tolist() == [36.0]
    with pytest.raises(RuntimeError, match="not possible to get the gradient edge"):
        torch.autograd.graph.get_gradient_edge(torch.ones(1))


def test_views():
    base = torch.zeros(3)
    view = base[1:]
    assert view._is_view()
    assert view._base is base
    w = leaf(2.0, 3.0)
    view.mul_(0).add_(w)
    assert base.requires_grad
    assert base.grad_fn.name() == "CopySlices"
    (base * base).sum().backward()
    assert w.grad.tolist() == [4.0, 6.0]


@pytest.mark.parametrize(
    "write",
    [
        lambda y, w: y[0].add_(w),
        lambda y, w: y.view(-1)[2:4].mul_(w),
        lambda y, w: y.as_strided((2,), (3,)).add_(w),
    ],
)
def test_a_view_may_be_read_after_its_base_was_written(write):
    w = leaf(2.0, 3.0)
    y = torch.arange(4.0).view(2, 2) * w
    view = write(y, w)  # its grad_fn looks at the base as it was
    y.mul_(2)
    (y.sum() + view.sum()).backward()
    u = leaf(2.0, 3.0)
    z = torch.arange(4.0).view(2, 2) * u
    written = write(z, u).clone()
    z = z * 2
    (z.sum() + written.sum() * 2).backward()
    assert w.grad.tolist() == u.grad.tolist()


def test_augmented_assignment_of_an_item():
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = x * 1
    y[0] += 1
    y[1:3] *= x[:2]
    (y * y).sum().backward()
    assert x.grad.tolist() == [4 + 2 * 2 * 2, 2 * 2 * 1 + 2 * 6 * 3, 2 * 6 * 2, 8]


def test_item_assignment_is_recorded():
    out = torch.zeros(2, 2)
    w = leaf(5.0)
    out[0, 1] = w[0] * 2
    (out * 3).sum().backward()
    assert w.grad.tolist() == [6.0]


def test_detach():
    x = leaf(1.0, 2.0)
    y = x * 2
    z = y.detach()
    assert not z.requires_grad
    assert z.data_ptr() == y.data_ptr()
    y.detach_()
    assert y.is_leaf
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        (x * 2)[:1].detach_()


def test_data_passes_unseen_by_the_graph():
    x = leaf(1.0, 2.0)
    y = x.exp()
    y.data.mul_(2)
    y.sum().backward()
    y = x.exp()
    y.mul_(2)
    y = x.exp()
    y.detach().mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_graphs_are_freed():
    x = leaf(1.0)
    y = x * 2
    reference = weakref.ref(y)
    z = (y * y).sum()
    del y
    z.backward()
    del z
    gc.collect()
    assert reference() is None


def test_backward_in_many_threads():
    x = leaf(1.0, 2.0, 3.0)

    def work():
        for _ in range(50):
            (x * 2).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.grad.tolist() == [400.0] * 3


def test_deep_graphs():
    x = leaf(1.0)
    y = x
    for _ in range(20000):
        y = y + x
    y.sum().backward()
    assert x.grad.item() == 20001


def test_a_gradient_through_a_view_is_not_copied():
    w = torch.ones(6, 4, requires_grad=True)
    seen = []
    w.register_hook(lambda gradient: seen.append(gradient.data_ptr()))
    (w.reshape(3, 8) * 2).sum().backward()
    assert seen == [w.grad.data_ptr()]
    assert not w.grad.requires_grad and w.grad.is_leaf


def test_dtype_of_a_leafs_grad():
    x = torch.ones(2, dtype=torch.bfloat16, requires_grad=True)
    assert x.grad_dtype == torch.bfloat16
    x.grad_dtype = torch.float32
    x.sum().backward()
    assert x.grad.dtype == torch.float32 and x.grad.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="there is already a gradient with dtype"):
        x.grad_dtype = torch.float64
    x.grad = torch.zeros(2)
    with pytest.raises(RuntimeError, match="tensor with grad_dtype"):
        x.grad = torch.zeros(2, dtype=torch.bfloat16)
    x.grad_dtype = None
    assert x.grad_dtype is None
    x.grad = torch.zeros(2, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="must be a torch.dtype or None, but got str"):
        x.grad_dtype = "float32"
    made = x * 2
    with pytest.raises(RuntimeError, match="grad_dtype can only be accessed on leaf tensors"):
        made.grad_dtype
    with pytest.raises(RuntimeError, match="grad_dtype can only be set on leaf tensors"):
        made.grad_dtype = torch.float32
    with pytest.raises(RuntimeError, match="tensor with grad_dtype 'float32"):
        torch.ones(2).grad = torch.ones(2, dtype=torch.float64)
