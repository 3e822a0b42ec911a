"""What the inputs and outputs of an exported graph stand for."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "ConstantArgument",
    "ExportGraphSignature",
    "InputKind",
    "InputSpec",
    "OutputKind",
    "OutputSpec",
    "SymIntArgument",
    "TensorArgument",
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
class ExportGraphSignature:
    """The inputs and outputs of a graph in order, and the state among them by name.

    Writes into buffers stay in the graph as in-place operators: there are no mutated outputs.
    """

    input_specs: list[InputSpec] = field(default_factory=list)
    output_specs: list[OutputSpec] = field(default_factory=list)

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

    def __str__(self) -> str:
        lines = ["", "# inputs", *map(str, self.input_specs)]
        lines += ["", "# outputs", *map(str, self.output_specs), ""]
        return "\n".join(lines)
