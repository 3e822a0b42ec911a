"""rushlight.ops: operators of the table by name and overload, under their schemas' names."""

from __future__ import annotations

from collections.abc import Callable

from rushlight import _C


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

    @property
    def _schema(self) -> str:
        return f"{self._packet._namespace}::{self._text}"

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
        return _C._overload_names(self.__name__)

    def __getattr__(self, overload: str) -> OpOverload:
        found = None
        if not overload.startswith("__"):
            found = _C._operator_overload(self.__name__, overload)
        if found is None:
            raise AttributeError(
                f"The underlying op of '{self._qualified}' has no overload name '{overload}'"
            )
        made = OpOverload(self, overload, *found)
        setattr(self, overload, made)
        return made

    def __call__(self, /, *args: object, **kwargs: object) -> object:
        if self._call is None:
            self._call = _C._operator_overload(self.__name__, "*")[0]
        return self._call(*args, **kwargs)

    def __str__(self) -> str:
        return self._qualified

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self._qualified}')>"


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
        # Gradients derived from an operator's expression are found by their full names alone.
        if self._name == "aten" and ("_gradient" in name or _C._overload_names(name)):
            packet = OpOverloadPacket(self._name, name)
            setattr(self, name, packet)
            return packet
        from rushlight._library import registry  # may change: not kept

        return registry.packet(self._name, name)

    def __dir__(self) -> list[str]:
        from rushlight._library import registry

        return registry.operator_names(self._name)

    def __repr__(self) -> str:
        return f"<module 'rushlight.ops.{self._name}'>"
