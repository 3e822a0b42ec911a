"""Functions in the place of operators: they give what these give, in simpler ones."""

import pytest
import rushlight as torch
from rushlight._decomp import (
    core_aten_decompositions,
    decomposition_table,
    get_decompositions,
    register_decomposition,
    remove_decompositions,
)
from rushlight.fx.experimental.proxy_tensor import make_fx

aten = torch.ops.aten
# Arguments beside the first tensor, where defaults are not enough.
_MORE = {
    "threshold": (0.5, 2.0), "_softmax": (1,), "_log_softmax": (-1,), "lerp.Scalar": (0.3,),
    "clamp_min": (0.1,), "clamp_max": (0.1,), "logsumexp": ([1],), "logit": (0.1,),
    "_softmax_backward_data": (1, torch.float32), "threshold_backward": (0.2,),
}  # fmt: skip


def sample(operator):
    torch.manual_seed(1)
    name = str(operator).removeprefix("aten.").removesuffix(".default")
    if name == "addmm":
        return torch.randn(3), torch.randn(2, 4), torch.randn(4, 3)
    if name == "baddbmm":
        return torch.randn(2, 3, 3), torch.randn(2, 3, 4), torch.randn(2, 4, 3)
    if name == "addmm.dtype":
        factors = torch.randn(2, 4).bfloat16(), torch.randn(4, 3).bfloat16()
        return torch.randn(3), *factors, torch.float32
    if name == "baddbmm.dtype":
        factors = torch.randn(2, 3, 4).bfloat16(), torch.randn(2, 4, 3).bfloat16()
        return torch.randn(2, 3, 3), *factors, torch.float32
    if name == "rsub.Scalar":
        return torch.randn(3, 4), 2.5, 3
    if name == "masked_fill.Scalar":
        return torch.randn(3, 4), torch.rand(3, 4) > 0.5, 7.0
    count = sum(a.type == "Tensor" for a in operator._schema.arguments)
    tensors = [torch.randn(3, 4) for _ in range(count)]
    if name == "xlogy.Tensor":
        tensors[1] = tensors[1].abs()
    return (*tensors, *_MORE.get(name, ()))


@pytest.mark.parametrize("operator", decomposition_table, ids=str)
def test_they_do_what_the_operator_does(operator):
    args = sample(operator)
    torch.testing.assert_close(decomposition_table[operator](*args), operator(*args))
    made = make_fx(lambda *given: operator(*given), get_decompositions([operator]))(*args)
    called = [node.target for node in made.graph.nodes if node.op == "call_function"]
    assert operator not in called and called
    torch.testing.assert_close(made(*args), operator(*args))


def test_options():
    x = torch.randn(50) * 4
    for approximate in ("none", "tanh"):
        wanted = aten.gelu.default(x, approximate=approximate)
        made = decomposition_table[aten.gelu.default](x, approximate=approximate)
        torch.testing.assert_close(made, wanted)
    made = decomposition_table[aten.softplus.default](x * 10, 2, 5)
    torch.testing.assert_close(made, aten.softplus.default(x * 10, 2, 5))
    x = torch.tensor([[float("-inf")] * 2, [1.0, 2.0]])
    made = decomposition_table[aten.logsumexp.default](x, [1], True)
    torch.testing.assert_close(made, aten.logsumexp.default(x, [1], True))


def test_tables():
    table = get_decompositions([aten.silu, aten.lerp, aten.mm])
    assert list(table) == [aten.silu.default, aten.lerp.Scalar, aten.lerp.Tensor]
    remove_decompositions(table, [aten.lerp])
    assert list(table) == [aten.silu.default]
    core = core_aten_decompositions()
    assert aten.silu.default in core and aten.gelu.default not in core
    own = {}

    @register_decomposition([aten.mm.default, aten.bmm], own)
    def product(a, b):
        return a

    assert own == dict.fromkeys([aten.mm.default, aten.bmm.default, aten.bmm.dtype], product)
    with pytest.raises(RuntimeError, match="duplicate registrations for aten.mm.default"):
        register_decomposition(aten.mm.default, own)(product)
