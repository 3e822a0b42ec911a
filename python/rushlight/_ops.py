"""rushlight.ops: operators of the table by name and overload, under their schemas' names."""

from __future__ import annotations

import enum
import functools
import importlib
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from rushlight import _C, _overload_names

if TYPE_CHECKING:
    from rushlight._library.function_schema import FunctionSchema


class Tag(enum.Enum):
    """What is known of an operator (`op.tags`): what the table tells, the rest are never set."""

    core = 0
    cudagraph_unsafe = 1
    data_dependent_output = 2
    dynamic_output_shape = 3
    flexible_layout = 4
    generated = 5
    inplace = 6
    inplace_view = 7
    maybe_aliasing_or_mutating = 8
    needs_contiguous_strides = 9
    needs_exact_strides = 10
    needs_fixed_stride_order = 11
    nondeterministic_bitwise = 12
    nondeterministic_seeded = 13
    out = 14
    out_variant = 15
    pointwise = 16
    pt2_compliant_tag = 17
    reduction = 18
    view_copy = 19


@functools.cache
def _kinds() -> dict[tuple[str, str], str]:
    """The kinds of bodies of the table's operators, by name and overload."""
    return {(row["name"], row["overload"]): row["kind"] for row in _C._operator_table()}


@functools.cache
def _aliases() -> dict[str, str]:
    """Other names of operators, with theirs: "multiply" is "mul"."""
    return dict(_C._operator_aliases())


class OpOverload:
    """One overload of an operator: callable with the schema's argument names."""

    def __init__(self, packet: OpOverloadPacket, overload: str, call: Callable, schema: str):
        self._packet = packet
        self._overload = overload
        self._call = call
        self._text = schema
        self.__name__ = f"{packet.__name__}.{overload}"
        self.__module__ = packet.__module__

    def __call__(self, /, *args: object, **kwargs: object) -> object:
        if _C._has_torch_function((*args, *kwargs.values())):
            relevant = (*args, *kwargs.values())
            return _C._handle_torch_function(self, relevant, args, kwargs)
        return self._call(*args, **kwargs)

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        """The operator with all its overloads."""
        return self._packet

    @functools.cached_property
    def _schema(self) -> FunctionSchema:
        from rushlight._library.function_schema import FunctionSchema

        return FunctionSchema(f"{self._packet._namespace}::{self._form_text()}")

    def _form_text(self) -> str:
        """The schema of this form, which the table has for the functional one alone."""
        name, overload = self._packet.__name__, self._overload
        if self._text.startswith((f"{name}(", f"{name}.")) and overload in self._packet.overloads():
            return self._text
        arguments, _, results = self._text.partition("(")[2].rpartition(" -> ")
        arguments = arguments.removesuffix(")")
        head = name if overload == "default" else f"{name}.{overload}"
        if not self._packet.overloads():  # a derived gradient, which has the forward's text
            return f"{head}(Tensor grad, {arguments}) -> Tensor"
        if name.endswith("_"):
            written = re.sub(r"^Tensor(\([a-z]\))?(?= )", "Tensor(a!)", arguments)
            return f"{head}({written}) -> Tensor(a!)"
        count = results.count("Tensor")
        outs = ["out"] if count == 1 else [f"out{i}" for i in range(count)]
        kinds = [f"Tensor({chr(ord('a') + i)}!)" for i in range(count)]
        star = "" if "*" in arguments else "*, "
        added = ", ".join(f"{kind} {out}" for kind, out in zip(kinds, outs))
        made = kinds[0] if count == 1 else f"({', '.join(kinds)})"
        return f"{head}({arguments}, {star}{added}) -> {made}"

    @property
    def _opname(self) -> str:
        return self._packet.__name__

    @property
    def _overloadname(self) -> str:
        return self._overload

    @property
    def _overloadpacket(self) -> OpOverloadPacket:
        return self._packet

    @functools.cached_property
    def tags(self) -> list[Tag]:
        """What is known of it."""
        name = self._packet.__name__
        written = name.endswith("_") and not self._text.startswith((f"{name}(", f"{name}."))
        overload = (
            "" if self._overload == "default" else self._packet._plain_overload(self._overload)
        )
        special = _overload_names.forms(name).get(self._overload.removesuffix("_out"))
        overload = overload if special is None else special.general
        kind = _kinds().get((name[:-1] if written else name, overload), "")
        found = [Tag.pt2_compliant_tag]
        if kind == "elementwise":
            found.append(Tag.pointwise)
        if kind == "reduction":
            found.append(Tag.reduction)
        if written:
            found.append(Tag.inplace)
        if written and kind == "view":
            found.append(Tag.inplace_view)
        if "Generator?" in self._text or "dropout" in name:
            found.append(Tag.nondeterministic_seeded)
        return sorted(found, key=lambda tag: tag.value)

    @property
    def is_view(self) -> bool:
        """Whether the result shares memory with an argument, which is not written."""
        infos = [argument.alias_info for argument in self._schema.arguments]
        return any(info and not info.is_write for info in infos)

    @property
    def namespace(self) -> str:
        """The library that defines it: aten."""
        return self._packet._namespace

    def name(self) -> str:
        """As in aten::add.Tensor."""
        end = "" if self._overload == "default" else f".{self._overload}"
        return f"{self._packet._namespace}::{self._packet.__name__}{end}"

    def __str__(self) -> str:
        return f"{self._packet}.{self._overload}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self._packet._qualified}', overload='{self._overload}')>"

    def __hash__(self) -> int:
        return hash(self.name())

    def __copy__(self) -> OpOverload:
        return self

    def __deepcopy__(self, memo: dict) -> OpOverload:
        return self


class OpOverloadPacket:
    """An operator; its overloads are attributes, and calling it takes the first that fits."""

    def __init__(self, namespace: str, name: str) -> None:
        self._namespace = namespace
        self.__name__ = name
        self.__module__ = f"rushlight.ops.{namespace}"
        self._qualified = f"{namespace}.{name}"
        self._call: Callable | None = None

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        return [*_C._overload_names(self.__name__), *_overload_names.forms(self.__name__)]

    def __getattr__(self, overload: str) -> OpOverload:
        found = None
        if not overload.startswith("__"):
            found = _C._operator_overload(self.__name__, self._plain_overload(overload))
        form = _overload_names.forms(self.__name__).get(overload.removesuffix("_out"))
        if found is not None:
            made = OpOverload(self, overload, *found)
        elif form is not None:
            made = self._special(overload, form)
        else:
            general = self._more_general(overload)
            if general is None:
                raise AttributeError(
                    f"The underlying op of '{self._qualified}' has no overload name '{overload}'"
                )
            made = getattr(self, general)
        setattr(self, overload, made)
        return made

    def _special(self, overload: str, form: _overload_names.Form) -> OpOverload:
        """An overload for which one of the table's stands."""
        call, text = _C._operator_overload(self.__name__, form.general)
        if form.dims == 0:
            call = functools.partial(call, **{form.number: None})
        head, arguments = text.split("(", 1)
        name = head.partition(".")[0]
        named = name if overload == "default" else f"{name}.{overload}"
        text = _overload_names.schema_of(f"{named}({arguments}", form)
        return OpOverload(self, overload, call, text)

    def _more_general(self, overload: str) -> str | None:
        """The overload that also does what PyTorch has one of this name for, if any.

        One of two tensors takes numbers in their place, one of dimensions takes a single one.
        """
        if overload == "dim":
            wanted = ["dims"]
        elif "scalar" in overload.lower():
            wanted = [overload.replace("Scalar", "Tensor"), "Tensor", "Tensor_Tensor", "self"]
            wanted.append("default")
        else:
            return None
        for name in [name for name in wanted if name in self.overloads()]:
            arguments = getattr(self, name)._schema.arguments
            if name == "dims" or sum(str(given.type) == "Tensor" for given in arguments) > 1:
                return name
        return None

    def _plain_overload(self, overload: str) -> str:
        """The overload whose out= form has this name: "out" of the first, "X_out" of others."""
        names = _C._overload_names(self.__name__)
        if overload in names or not names:
            return overload
        return names[0] if overload == "out" else overload.removesuffix("_out")

    def _out_overload(self, overload: str) -> str:
        if _overload_names.has_own_out(self.__name__, overload):
            return f"{overload}_out"
        return "out" if overload == self.overloads()[0] else f"{overload}_out"

    def __call__(self, /, *args: object, **kwargs: object) -> object:
        if self._call is None:
            self._call = _C._operator_overload(self.__name__, "*")[0]
        return self._call(*args, **kwargs)

    def __str__(self) -> str:
        return self._qualified

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self._qualified}')>"


# The kernels of attention that PyTorch has, and programs name to keep results of: here it is one.
_ATTENTION = re.compile(
    r"_scaled_dot_product_(flash|efficient|cudnn|fused|flash_attention_for_cpu)"
    r"(_attention|_attention_overrideable)?"
)


class _Namespace:
    """The operators of a library."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> OpOverloadPacket:
        found = None if name.startswith("__") else self._find(name)
        if found is None:
            raise AttributeError(
                f"'_OpNamespace' '{self._name}' object has no attribute '{name}': it is no operator"
            )
        return found

    def _find(self, name: str) -> OpOverloadPacket | None:
        if self._name == "aten" and _ATTENTION.fullmatch(name):
            return self._attention
        # Gradients derived from an operator's expression are found by their full names alone.
        if self._name == "aten" and ("_gradient" in name or _C._overload_names(name)):
            packet = OpOverloadPacket(self._name, name)
            setattr(self, name, packet)
            return packet
        written = "_" if name.endswith("_") else ""
        other_name = _aliases().get(name.removesuffix("_")) if self._name == "aten" else None
        if other_name is not None:
            return getattr(self, other_name + written, None)
        from rushlight._library import python_ops

        if name.startswith("_foreach_"):
            importlib.import_module("rushlight._library.foreach_ops")
        registry = python_ops.registry  # may change: not kept
        return registry.packet(self._name, name)

    def __dir__(self) -> list[str]:
        from rushlight._library import registry

        return registry.operator_names(self._name)

    def __repr__(self) -> str:
        return f"<module 'rushlight.ops.{self._name}'>"


def overload_of(
    name: str, overload: str, form: str, numbers: list[str], dims: int = 2
) -> OpOverload:
    """The operator that a call of the table's is of: in-place forms are add_, out= forms .out.

    numbers: the names of arguments that are numbers. dims: see _overload_names.Form.
    """
    from rushlight import ops

    packet = getattr(ops.aten, f"{name}_" if form == "inplace" else name)
    overload = _overload_names.name_of_call(packet.__name__, overload, numbers, dims)
    return getattr(packet, packet._out_overload(overload) if form == "out" else overload)


def read_number(tensor: object) -> object:
    """tensor.item() where a mode or a class may have its own."""
    from rushlight import ops

    return ops.aten._local_scalar_dense.default(tensor)


class HigherOrderOperator:
    """An operator of functions. A subclass says what a call does: `__call__`."""

    def __init__(self, name: str, *, cacheable: bool = False) -> None:
        if type(self) is HigherOrderOperator:
            raise RuntimeError(
                "Direct instantiation of HigherOrderOperator is not allowed. Please subclass it."
            )
        self.__name__ = self._name = name
        self.namespace = "higher_order"

    def name(self) -> str:
        """Its name."""
        return self._name

    def __call__(self, /, *args: object, **kwargs: object) -> object:
        raise NotImplementedError(f"{type(self).__name__} does not say what a call of it does")

    def __str__(self) -> str:
        return self._name

    __repr__ = __str__


class _HigherOrder:
    """The operators of functions, torch.ops.higher_order, by name."""

    _name = "higher_order"

    def __getattr__(self, name: str) -> HigherOrderOperator:
        if name == "cond":
            from rushlight._higher_order_ops._traced_cond import cond_op

            return cond_op
        raise AttributeError(
            f"'_HigherOrderNamespace' '{self._name}' object has no attribute '{name}'"
        )
