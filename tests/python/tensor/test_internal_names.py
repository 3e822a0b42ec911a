"""Names behind the public ones that programs use all the same."""

import pytest
import rushlight as torch
from rushlight import nn


def test_the_package_has_itself():
    assert torch.torch is torch
    assert torch.functional.stft is torch.stft


def test_tags_of_operators():
    aten, Tag = torch.ops.aten, torch.Tag
    assert Tag.pointwise in aten.add.Tensor.tags and Tag.pointwise in aten.relu_.default.tags
    assert Tag.pointwise not in aten.mm.default.tags
    assert Tag.inplace in aten.add_.Tensor.tags and Tag.inplace not in aten.add.Tensor.tags
    assert Tag.inplace_view in aten.t_.default.tags
    assert Tag.nondeterministic_seeded in aten.rand.default.tags
    assert Tag.nondeterministic_seeded in aten.dropout.default.tags


def test_schemas_of_operators():
    schema = torch.ops.aten.add_.Tensor._schema
    assert (
        schema
        == "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)"
    )
    assert (schema.name, schema.overload_name, schema.is_mutable) == ("aten::add_", "Tensor", True)
    own, other, alpha = schema.arguments
    assert own.alias_info.is_write and own.alias_info.before_set == {"a"}
    assert (other.name, other.type, other.alias_info) == ("other", "Tensor", None)
    assert (alpha.kwarg_only, alpha.default_value, alpha.type) == (True, 1, "number")
    assert alpha.has_default_value() and not other.has_default_value()
    assert schema.returns[0].alias_info.is_write
    out = torch.ops.aten.add.out._schema
    assert [a.name for a in out.arguments if a.is_out] == ["out"]
    assert torch.ops.aten.cat.default._schema.arguments[0].type == "List[Tensor]"
    assert torch.ops.aten.t.default.is_view and not torch.ops.aten.mm.default.is_view


def test_out_forms_are_overloads():
    x, out = torch.ones(2), torch.empty(2)
    assert torch.ops.aten.add.out(x, x, out=out) is out and out.tolist() == [2, 2]
    assert str(torch.ops.aten.add.out) == "aten.add.out"


def test_operators_that_give_numbers():
    aten, x = torch.ops.aten, torch.arange(6.0).view(2, 3)
    assert (aten.sym_size.int(x, 1), aten.sym_stride.int(x, 0), aten.sym_numel(x)) == (3, 3, 6)
    assert aten.item(x[1, 2]) == 5 and aten.is_nonzero(x[0, 1]) is True
    assert aten._is_all_true(x > -1).item() and not aten._is_any_true(x > 9).item()
    aten._assert_async.msg(torch.tensor(True), "fine")
    with pytest.raises(RuntimeError, match="mine"):
        aten._assert_async.msg(torch.tensor(False), "mine")


def test_higher_order_operators_are_subclassed():
    from rushlight._ops import HigherOrderOperator

    class Twice(HigherOrderOperator):
        def __call__(self, f, x):
            return f(f(x))

    twice = Twice("twice")
    assert twice(torch.neg, torch.ones(1)).item() == 1
    assert (twice.__name__, twice.namespace, str(twice)) == ("twice", "higher_order", "twice")
    with pytest.raises(RuntimeError, match="Direct instantiation"):
        HigherOrderOperator("none")


def test_what_the_extension_is_asked():
    x = torch.ones(4)
    assert torch._C._is_alias_of(x, x[1:]) and not torch._C._is_alias_of(x, x + 1)
    assert torch._C._get_default_device() == "cpu"
    assert torch._C._nn._parse_to("meta", torch.float64) == (
        torch.device("meta"), torch.float64, False, None,
    )  # fmt: skip


def test_indexing_in_vmap_needs_no_context():
    from rushlight._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

    x, places = torch.arange(12.0).view(3, 4), torch.tensor([0, 2])
    with TransformGetItemToIndex():
        made = torch.vmap(lambda i: x[i, i])(places)
    assert made.tolist() == [0, 10]


def test_members_by_name():
    from rushlight.nn.utils._named_member_accessor import NamedMemberAccessor, swap_tensor

    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    accessor = NamedMemberAccessor(model)
    weight, other = model[0].weight, torch.zeros(2, 2)
    assert accessor.swap_tensor("0.weight", other) is weight
    assert accessor.get_tensor("0.weight") is other
    accessor.set_tensor("0.weight", weight)
    assert model[0].weight is weight and "weight" in model[0]._parameters
    before, missing = accessor.swap_tensors_dict({"1.running_mean": torch.ones(2)})
    assert model[1].running_mean.tolist() == [1, 1] and not missing
    with pytest.raises(RuntimeError, match=r"Missing key\(s\): '0.none'"):
        accessor.swap_tensors_dict({"0.weight": other, "0.none": other})
    assert model[0].weight is weight
    assert accessor.check_keys(["0.weight", "x"])[1] == ["x"]
    with pytest.raises(AttributeError, match="Linear has no attribute `none`"):
        swap_tensor(model[0], "none", other)
    with pytest.raises(TypeError, match="is not an instance of torch.nn.Module"):
        swap_tensor(3, "none", other)


def test_passes_over_graphs():
    from rushlight import fx
    from rushlight.fx.passes.infra.pass_base import PassBase, PassResult

    class Checked(PassBase):
        seen = []

        def requires(self, graph_module):
            self.seen.append("before")

        def call(self, graph_module):
            return PassResult(graph_module, False)

        def ensures(self, graph_module):
            self.seen.append("after")

    module = fx.symbolic_trace(nn.ReLU())
    assert Checked()(module) == (module, False) and Checked.seen == ["before", "after"]


def test_sizes_are_numbers():
    from rushlight.fx.experimental.symbolic_shapes import free_symbols, guard_or_false, sym_eq

    assert guard_or_false(3 > 2) is True and not free_symbols(3)
    assert sym_eq([1, (2, 3)], [1, (2, 3)]) and not sym_eq([1], [1, 2])


def test_older_names_of_custom_operators():
    import rushlight._custom_ops as custom_ops

    @custom_ops.custom_op("test_older::twice")
    def twice(x: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    @custom_ops.impl("test_older::twice", device_types="cpu")
    def on_cpu(x):
        return x * 2

    assert torch.ops.test_older.twice(torch.ones(2)).tolist() == [2, 2]


def test_one_function_or_another():
    from rushlight._jit_internal import _copy_to_script_wrapper, boolean_dispatch

    both = boolean_dispatch(
        "flag", 1, False, lambda x, flag: "yes", lambda x, flag=0: "no", "m", "f"
    )
    assert (both(1), both(1, True), both(1, flag=True)) == ("no", "yes", "yes")
    assert _copy_to_script_wrapper(both) is both


def test_how_optimizers_choose():
    from rushlight.optim.optimizer import Optimizer, _default_to_fused_or_foreach

    params = [torch.ones(2), torch.ones(2, dtype=torch.float64)]
    assert _default_to_fused_or_foreach(params, False, use_fused=True) == (True, False)
    assert _default_to_fused_or_foreach(params, True, use_fused=True) == (False, False)
    groups = Optimizer._group_tensors_by_device_and_dtype([params])
    assert {dtype for _, dtype in groups} == {torch.float32, torch.float64}


def test_foreach_operators_have_overloads():
    aten = torch.ops.aten
    assert aten._foreach_maximum_.overloads() == ["List", "Scalar", "ScalarList"]
    assert "Tensor" in aten._foreach_add_.overloads() and "Tensor" in aten._foreach_div.overloads()
    tensors = [torch.ones(2), torch.full((1,), 2.0)]
    assert [t.tolist() for t in aten._foreach_mul.Scalar(tensors, 3.0)] == [[3, 3], [6]]
    assert aten._foreach_add_.List(tensors, [torch.ones(2), torch.ones(1)], alpha=2) is None
    assert [t.tolist() for t in tensors] == [[3, 3], [4]]
    ends = [torch.zeros(2), torch.zeros(1)]
    assert [t.tolist() for t in aten._foreach_lerp(tensors, ends, 0.5)] == [[1.5, 1.5], [2]]
    assert [t.item() for t in aten._foreach_norm(tensors, 1)] == [6, 4]


def test_every_foreach_function_is_an_operator():
    names = [name for name in dir(torch._foreach) if name.startswith("_foreach_")]
    assert len(names) > 50
    for name in names:
        assert getattr(torch.ops.aten, name).overloads()


def test_operators_that_libraries_name_for_layouts_and_devices():
    aten, x = torch.ops.aten, torch.ones(2, 2)
    with pytest.raises(RuntimeError, match="Cannot access accelerator device"):
        aten._pin_memory.default(x)
    assert aten._sparse_addmm.default(x, x, x, beta=2, alpha=3).tolist() == [[8, 8], [8, 8]]
    with pytest.raises(RuntimeError, match="to be a sparse CSR tensor, got torch.strided"):
        aten._sparse_mm_reduce_impl(x, x, "sum")


def test_texts_of_elements():
    from rushlight._tensor_str import _add_suffixes, _tensor_str

    x = torch.arange(6.0, dtype=torch.float64, requires_grad=True).view(2, 3)
    assert _tensor_str(x, 0) == "[[0., 1., 2.],\n [3., 4., 5.]]"
    assert _tensor_str(x, 11) == "[[0., 1., 2.],\n" + " " * 12 + "[3., 4., 5.]]"
    assert _tensor_str(torch.empty(0, 3), 3) == "[]" and _tensor_str(torch.tensor(3.0), 3) == "3."
    assert _add_suffixes("X([1, 2]", ["a=1", "b=2"], 2, False) == "X([1, 2], a=1, b=2)"
    assert _add_suffixes("X([1, 2]", ["a=1", "b=2"], 2, True) == "X([1, 2],\n  a=1, b=2)"
    long = _add_suffixes("X([1, 2]" * 9, ["a=11111111111", "b=2"], 2, False)
    assert long == "X([1, 2]" * 9 + ",\n  a=11111111111, b=2)"


def test_many_tensors_in_one():
    tensors = [torch.arange(4.0).view(2, 2).T, torch.ones(3)]
    flat = torch._utils._flatten_dense_tensors(tensors)
    assert flat.tolist() == [0, 2, 1, 3, 1, 1, 1]
    parts = torch._utils._unflatten_dense_tensors(flat, tensors)
    assert torch.equal(parts[0], tensors[0]) and parts[1].shape == (3,)
    assert parts[1].data_ptr() == flat[4:].data_ptr()


def test_rows_of_sorted_indices():
    starts = torch._convert_indices_from_coo_to_csr(torch.tensor([0, 0, 2, 3]), 5)
    assert starts.tolist() == [0, 2, 2, 3, 4, 4]
    short = torch._convert_indices_from_coo_to_csr(torch.tensor([1]), 2, out_int32=True)
    assert short.dtype is torch.int32 and short.tolist() == [0, 0, 1]
    columns = torch.tensor([5, 6, 7])
    pair = torch._convert_indices_from_csr_to_coo(torch.tensor([0, 2, 2, 3]), columns)
    assert pair.tolist() == [[0, 0, 2], [5, 6, 7]]
    turned = torch._convert_indices_from_csr_to_coo(
        torch.tensor([0, 2, 2, 3]), columns, out_int32=True, transpose=True
    )
    assert turned.dtype is torch.int32 and turned.tolist() == [[5, 6, 7], [0, 0, 2]]


def test_types_of_annotations():
    assert repr(torch.TensorType.get()) == torch.TensorType.get().annotation_str == "Tensor"
    assert torch.ScriptModule is torch.jit.ScriptModule


def test_one_overload_for_tensors_and_numbers():
    aten, x = torch.ops.aten, torch.tensor([1.0, -2.0])
    assert aten.mul.Scalar is aten.mul.Tensor and aten.mul_.Scalar is aten.mul_.Tensor
    assert aten.floor_divide.Scalar is aten.floor_divide.default
    assert aten.gt.Scalar is aten.gt.Scalar is not aten.gt.Tensor
    assert aten.div.Scalar_mode is aten.div.Tensor_mode
    assert len({aten.pow.Tensor_Scalar, aten.pow.Tensor_Tensor, aten.pow.Scalar}) == 3
    assert aten.where.ScalarOther is aten.where.self and aten.any.dim is not aten.any.dims
    assert aten.masked_fill.Scalar is not aten.masked_fill.Tensor
    assert aten.gt.Scalar(x, 0).tolist() == [True, False]
    assert aten.pow.Tensor_Scalar(x, 2).tolist() == [1, 4]
    assert aten.any.dim(x > 0, 0).item() is True
    assert aten.mul.overloads() == ["Tensor"]
    for packet, name in ((aten.relu, "Scalar"), (aten.mul, "dim"), (aten.mul, "Other")):
        with pytest.raises(AttributeError, match=f"has no overload name '{name}'"):
            getattr(packet, name)


def test_operators_by_their_other_names():
    aten = torch.ops.aten
    assert aten.multiply.Tensor is aten.mul.Tensor and aten.divide_.Tensor is aten.div_.Tensor
    assert aten.special_expit is aten.sigmoid and aten.arctan2(torch.ones(1), torch.ones(1)) > 0
    for name, own in torch._C._operator_aliases():
        assert getattr(aten, name) is getattr(aten, own)
    with pytest.raises(AttributeError, match="'special_softmax_': it is no operator"):
        aten.special_softmax_
