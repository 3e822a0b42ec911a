"""What compile raises, under the names that programs catch."""

from __future__ import annotations

import enum


class TorchDynamoException(RuntimeError):
    """Anything that goes wrong in compile itself."""


class InternalTorchDynamoError(TorchDynamoException):
    """A fault of the compiler."""


class ResetRequired(TorchDynamoException):
    """Kept for programs that catch it: no setting here needs a reset to take effect."""


class ShortenTraceback(TorchDynamoException):
    """An error whose interesting frames are the user's."""

    def __init__(self, *args: object, first_useful_frame: object = None, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.first_useful_frame = first_useful_frame


class InvalidBackend(TorchDynamoException):
    """There is no back end of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Invalid backend: {name!r}, see `torch._dynamo.list_backends()` for available "
            "backends."
        )
        self.name = name

    def __reduce__(self) -> tuple:
        return type(self), (self.name,)


class BackendCompilerFailed(ShortenTraceback):
    """A back end raised, or gave what it must not."""

    def __init__(
        self, backend_fn: object, inner_exception: Exception, first_useful_frame: object = None
    ) -> None:
        self.backend_name = getattr(backend_fn, "__name__", "?")
        self.inner_exception = inner_exception
        super().__init__(
            f"backend={self.backend_name!r} raised:\n"
            f"{type(inner_exception).__name__}: {inner_exception}",
            first_useful_frame=first_useful_frame,
        )


class Unsupported(TorchDynamoException):
    """fullgraph=True, and the graph ends before the function does."""

    def __init__(
        self,
        msg: str,
        gb_type: str = "",
        skip_frame: bool = False,
        *,
        case_name: str | None = None,
        real_stack: object = None,
    ) -> None:
        super().__init__(msg)
        self.msg = msg
        self.gb_type = gb_type
        self.skip_frame = skip_frame
        self.case_name = case_name
        self.real_stack = real_stack


class RecompileError(TorchDynamoException):
    """A graph would have to be compiled, and the stance forbids it."""


class TorchRuntimeError(TorchDynamoException):
    """An operator failed while a graph was made."""


class UncapturedHigherOrderOpError(TorchDynamoException):
    """Kept for programs that catch it: higher-order operators run as Python here."""


class CondOpArgsMismatchError(TorchDynamoException):
    """The branches of cond give results of different kinds."""


class SkipFrame(TorchDynamoException):
    """Kept for programs that catch it: frames are never skipped here."""


class PackageError(TorchDynamoException):
    """A compiled function that was saved cannot be loaded."""


class FailOnRecompileLimitHit(Exception):
    """fullgraph=True, and more graphs were met than recompile_limit allows."""


class UserErrorType(enum.Enum):
    """What a UserError is about."""

    DYNAMIC_CONTROL_FLOW = enum.auto()
    ANTI_PATTERN = enum.auto()
    STANDARD_LIBRARY = enum.auto()
    CONSTRAINT_VIOLATION = enum.auto()
    DYNAMIC_DIM = enum.auto()
    INVALID_INPUT = enum.auto()
    INVALID_OUTPUT = enum.auto()
    UNSUPPORTED_ALIASED_MUTATED_DYNAMIC_INPUTS = enum.auto()


class UserError(Unsupported):
    """The program asks for what a graph cannot be."""

    def __init__(self, error_type: UserErrorType, msg: str, case_name: str | None = None) -> None:
        super().__init__(msg, case_name=case_name)
        self.error_type = error_type
        self.message = msg
