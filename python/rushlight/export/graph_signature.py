"""What the inputs and outputs of an exported graph stand for."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = [
    "ConstantArgument",
    "CustomObjArgument",
    "ExportBackwardSignature",
    "ExportGraphSignature",
    "InputKind",
    "InputSpec",
    "OutputKind",
    "OutputSpec",
    "SymBoolArgument",
    "SymFloatArgument",
    "SymIntArgument",
    "TensorArgument",
    "TokenArgument",
]


@dataclass
class TensorArgument:
    """A tensor, by the name of its node."""

    name: str


@dataclass
class SymIntArgument:
    """A number that depends on the sizes of inputs, by the name of its node."""

    name: str


@dataclass
class SymFloatArgument:
    """The same of a fraction. Programs of Rushlight have none."""

    name: str


@dataclass
class SymBoolArgument:
    """The same of a condition. Programs of Rushlight have none."""

    name: str


@dataclass
class TokenArgument:
    """What orders effects, by the name of its node. Programs of Rushlight have none."""

    name: str


@dataclass
class CustomObjArgument:
    """An object of a class of C++, by node and class. Programs of Rushlight have none."""

    name: str
    class_fqn: str
    fake_val: Any = None


@dataclass
class ConstantArgument:
    """A value that was the same in the call that was exported; inputs also have a node."""

    name: str
    value: Any


class InputKind(enum.Enum):
    """What an input is."""

    USER_INPUT = enum.auto()
    PARAMETER = enum.auto()
    BUFFER = enum.auto()
    CONSTANT_TENSOR = enum.auto()
    CUSTOM_OBJ = enum.auto()
    TOKEN = enum.auto()


class OutputKind(enum.Enum):
    """What an output is."""

    USER_OUTPUT = enum.auto()
    LOSS_OUTPUT = enum.auto()
    BUFFER_MUTATION = enum.auto()
    PARAMETER_MUTATION = enum.auto()
    GRADIENT_TO_PARAMETER = enum.auto()
    GRADIENT_TO_USER_INPUT = enum.auto()
    USER_INPUT_MUTATION = enum.auto()
    TOKEN = enum.auto()


@dataclass
class InputSpec:
    """An input: its node, and of state the name that the module has for it."""

    kind: InputKind
    arg: Any
    target: str | None
    persistent: bool | None = None

    def __str__(self) -> str:
        target = "" if self.target is None else f" target='{self.target}'"
        persistent = "" if self.persistent is None else f" persistent={self.persistent}"
        return f"{self.arg.name}: {self.kind.name}{target}{persistent}"


@dataclass
class OutputSpec:
    """An output: its node, or the value that it always has."""

    kind: OutputKind
    arg: Any
    target: str | None

    def __str__(self) -> str:
        target = "" if self.target is None else f" target='{self.target}'"
        return f"{self.arg.name}: {self.kind.name}{target}"


def _shown(arg: Any) -> Any:
    return arg.value if isinstance(arg, ConstantArgument) else arg.name


@dataclass
class ExportBackwardSignature:
    """The gradients among the outputs of a graph that has its own backward, by node."""

    gradients_to_parameters: dict[str, str]
    gradients_to_user_inputs: dict[str, str]
    loss_output: str


@dataclass
class ExportGraphSignature:
    """The inputs and outputs of a graph in order, and the state among them by name.

    Writes into buffers stay in the graph as in-place operators: there are no mutated outputs.
    """

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    def _targets(self, kind: InputKind) -> dict[str, str]:
        return {spec.arg.name: spec.target for spec in self.input_specs if spec.kind is kind}

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return tuple(self.inputs_to_parameters.values())

    @property
    def buffers(self) -> tuple[str, ...]:
        """The names of the buffers."""
        return tuple(self.inputs_to_buffers.values())

    @property
    def non_persistent_buffers(self) -> set[str]:
        """The names of the buffers that a state_dict leaves out."""
        return {spec.target for spec in self.input_specs if spec.persistent is False}

    @property
    def lifted_tensor_constants(self) -> tuple[str, ...]:
        """The names of tensors that are neither parameters nor buffers."""
        return tuple(self.inputs_to_lifted_tensor_constants.values())

    @property
    def user_inputs(self) -> tuple[Any, ...]:
        """The nodes of the arguments, and the values of those that are no tensors."""
        user = InputKind.USER_INPUT
        return tuple(_shown(spec.arg) for spec in self.input_specs if spec.kind is user)

    @property
    def user_outputs(self) -> tuple[Any, ...]:
        """The nodes of the results, and the values of those that are no tensors."""
        user = OutputKind.USER_OUTPUT
        return tuple(_shown(spec.arg) for spec in self.output_specs if spec.kind is user)

    @property
    def inputs_to_parameters(self) -> dict[str, str]:
        """The names of parameters by node."""
        return self._targets(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> dict[str, str]:
        """The names of buffers by node."""
        return self._targets(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self) -> dict[str, str]:
        """The names of constants by node."""
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def buffers_to_mutate(self) -> dict[str, str]:
        """The names of buffers by the output that is written back: none, see above."""
        return {}

    @property
    def user_inputs_to_mutate(self) -> dict[str, str]:
        """As buffers_to_mutate, of arguments."""
        return {}

    @property
    def parameters_to_mutate(self) -> dict[str, str]:
        """As buffers_to_mutate, of parameters."""
        return {}

    @property
    def lifted_custom_objs(self) -> tuple[str, ...]:
        """The names of objects that are neither tensors nor plain values: none are exported."""
        return ()

    @property
    def inputs_to_lifted_custom_objs(self) -> dict[str, str]:
        """The same by node."""
        return {}

    @property
    def backward_signature(self) -> ExportBackwardSignature | None:
        """The gradients among the outputs: None, graphs have no backward of their own."""
        return None

    @property
    def assertion_dep_token(self) -> dict[int, str] | None:
        """None: assertions are kept for what they do."""
        return None

    @property
    def input_tokens(self) -> tuple[str, ...]:
        """What orders effects, among the inputs: the order of the nodes does here."""
        return ()

    @property
    def output_tokens(self) -> tuple[str, ...]:
        """The same among the outputs."""
        return ()

    def replace_all_uses(self, old: str, new: str) -> None:
        """Has another node, by name, in the place of one."""
        for which, name in (("old", old), ("new", new)):
            if not isinstance(name, str):
                raise AssertionError(f"expected {which} to be str, got {type(name)}")
        for spec in (*self.output_specs, *self.input_specs):
            if getattr(spec.arg, "name", None) == old:
                spec.arg.name = new

    def get_replace_hook(self, replace_inputs: bool = False) -> Callable[[Any, str, Any], None]:
        """A function (old node, name of the new one, user) that follows replacements in a graph.

        replace_inputs: of inputs too; else of outputs alone.
        """

        def hook(old: Any, new: str, user: Any) -> None:
            if user.op == "output":
                self._rename(self.output_specs, old.name, new)
            elif replace_inputs and old.op == "placeholder":
                self._rename(self.input_specs, old.name, new)

        return hook

    @staticmethod
    def _rename(specs: list, old: str, new: str) -> None:
        for spec in specs:
            if spec.arg.name == old:
                spec.arg.name = new

    def __str__(self) -> str:
        lines = ["", "# inputs", *map(str, self.input_specs)]
        lines += ["", "# outputs", *map(str, self.output_specs), ""]
        return "\n".join(lines)
