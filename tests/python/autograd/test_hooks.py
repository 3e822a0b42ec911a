"""Hooks on tensors, nodes and leaves."""

import gc
import weakref

import pytest
import rushlight as torch


def leaf(*values):
    return torch.tensor(values, dtype=torch.float32, requires_grad=True)


def test_tensor_hook_replaces_the_gradient():
    x = leaf(1.0, 2.0)
    y = x * 3
    y.register_hook(lambda grad: grad * 10)
    y.sum().backward()
    assert x.grad.tolist() == [30.0, 30.0]


def test_hooks_run_in_order_and_can_be_removed():
    x = leaf(1.0)
    seen = []
    first = x.register_hook(lambda grad: seen.append("first"))
    with x.register_hook(lambda grad: seen.append("second")):
        (x * 2).sum().backward()
    assert seen == ["first", "second"]
    first.remove()
    (x * 2).sum().backward()
    assert seen == ["first", "second"]
    assert len(x._backward_hooks) == 0


def test_hook_results_are_checked():
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda grad: 1)
    with pytest.raises(TypeError, match="expected Variable, but hook returned 'int'"):
        y.sum().backward()

    def wrong_size(grad):
        return torch.ones(7)

    y = x * 2
    y.register_hook(wrong_size)
    with pytest.raises(RuntimeError, match="hook 'wrong_size' has changed the size of value"):
        y.sum().backward()


def test_hook_needs_a_gradient():
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't"):
        torch.ones(1).register_hook(print)


def test_errors_pass_through_the_engine():
    class Mine(Exception):
        pass

    def fail(grad):
        raise Mine("hello")

    x = leaf(1.0)
    y = x * 2
    y.register_hook(fail)
    with pytest.raises(Mine, match="hello"):
        y.sum().backward()


def test_post_accumulate_hook():
    x = leaf(1.0)
    seen = []

    def step(parameter):
        seen.append(parameter.grad.item())
        parameter.grad = None

    handle = x.register_post_accumulate_grad_hook(step)
    (x * 4).sum().backward()
    assert seen == [4.0]
    assert x.grad is None
    handle.remove()
    (x * 4).sum().backward()
    assert seen == [4.0]
    with pytest.raises(RuntimeError, match="non-leaf"):
        (x * 2).register_post_accumulate_grad_hook(step)


def test_node_hooks():
    x = leaf(1.0)
    y = x * 2
    seen = []

    def after(grad_inputs, grad_outputs):
        seen.append((grad_inputs[0].item(), grad_outputs[0].item()))
        return (grad_inputs[0] * 7, *grad_inputs[1:])

    y.grad_fn.register_prehook(lambda grads: (grads[0] * 5,))
    y.grad_fn.register_hook(after)
    y.sum().backward()
    assert seen == [(10.0, 5.0)]
    assert x.grad.tolist() == [70.0]


def test_multi_grad_hook():
    x, z = leaf(1.0), leaf(2.0)
    seen = []
    torch.autograd.graph.register_multi_grad_hook(
        (x, z), lambda grads: seen.append([g if g is None else g.item() for g in grads])
    )
    (x * z).sum().backward()
    (x * 3).sum().backward()
    assert seen == [[2.0, 1.0], [3.0, None]]
    any_seen = []
    torch.autograd.graph.register_multi_grad_hook(
        (x, z), lambda grad: any_seen.append(grad.item()), mode="any"
    )
    (x * z).sum().backward()
    assert len(any_seen) == 1


def test_callbacks_at_the_end():
    x = leaf(1.0)
    y = x * 2
    order = []

    def hook(grad):
        engine = torch.autograd.Variable._execution_engine
        engine.queue_callback(lambda: order.append(x.grad.item()))

    y.register_hook(hook)
    y.sum().backward()
    assert order == [2.0]


def test_cycles_through_hooks_are_collected():
    class Holder:
        pass

    holder = Holder()
    holder.x = leaf(1.0)
    holder.x.mark = True
    holder.x.register_hook(lambda grad, holder=holder: None)
    reference = weakref.ref(holder)
    del holder
    gc.collect()
    assert reference() is None


def test_what_a_post_accumulate_hook_gives():
    x = leaf(1.0, 2.0)
    handle = x.register_post_accumulate_grad_hook(lambda p: p.sub_(p.grad))
    (x * 4).sum().backward()  # the tensor itself is what in-place methods give
    assert x.tolist() == [-3.0, -2.0]
    handle.remove()
    handle = x.register_post_accumulate_grad_hook(lambda p: 1)
    with pytest.raises(TypeError, match="expected Variable, but hook returned 'int'"):
        x.sum().backward()
    handle.remove()
    x.register_post_accumulate_grad_hook(lambda p: torch.ones(2))
    with pytest.raises(RuntimeError, match="post accumulate grad hooks should return None"):
        x.sum().backward()
