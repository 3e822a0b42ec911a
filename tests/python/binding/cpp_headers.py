"""Reads the C++ face of the build that is imported: functions, methods, layers, optimizers.

Only declarations are read, by their shape, so that what the tests compare is what a C++ program
sees, not what the generator meant to write.
"""

from __future__ import annotations

import functools
import pathlib
import re
from dataclasses import dataclass

import rushlight

BUILD = pathlib.Path(rushlight.__file__).parents[2]
GENERATED = BUILD / "generated" / "rushlight" / "generated"
SOURCE = pathlib.Path(__file__).resolve().parents[3] / "include" / "rushlight"


@dataclass(frozen=True)
class Parameter:
    type: str
    name: str
    default: str | None


@dataclass(frozen=True)
class Declaration:
    name: str
    parameters: tuple[Parameter, ...]


DECLARATION = re.compile(r"([\w:<>, ]+?[\w>&]) ?&? (\w+)\((.*)\)( const)?;$")


def split_top(text: str) -> list[str]:
    """Splits at commas outside brackets of any kind."""
    parts, depth, current = [], 0, ""
    for letter in text:
        depth += (letter in "([{<") - (letter in ")]}>")
        if letter == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += letter
    return [*parts, current.strip()] if current.strip() else parts


def parameters(text: str) -> tuple[Parameter, ...]:
    found = []
    for part in split_top(text):
        declared, _, default = part.partition(" = ")
        type_, _, name = declared.rpartition(" ")
        found.append(Parameter(type_, name, default or None))
    return tuple(found)


def declarations(paths: list[pathlib.Path]) -> dict[str, list[Declaration]]:
    found: dict[str, list[Declaration]] = {}
    for path in paths:
        for line in path.read_text().splitlines():
            line = re.sub(r"\s*//.*", "", line).strip().removeprefix("RUSHLIGHT_API ")
            matched = DECLARATION.match(line)
            if matched is not None and not line.startswith(("#", "using", "return")):
                made = Declaration(matched[2], parameters(matched[3]))
                found.setdefault(made.name, []).append(made)
    return found


def functions() -> dict[str, list[Declaration]]:
    return declarations(sorted(GENERATED.glob("*.h")))


def methods() -> dict[str, list[Declaration]]:
    return declarations([GENERATED / "tensor_methods.inc", SOURCE / "tensor.h"])


ARGUMENT = re.compile(r"RUSHLIGHT_ARG\(([^()]*), (\w+)\)(?: = (.*))?;")
OPTIONS = re.compile(r"struct (\w+)Options \{(.*?)\n\};", re.S)
ONE_LINE = re.compile(r"^RUSHLIGHT_(?:LAYER|LOSS)\d\((\w+)(?:, (.*?))?\);", re.M | re.S)
# A layer with the options of a family, and one whose only option is a whole number.
OF_FAMILY = re.compile(r"^RUSHLIGHT_(?:ND_\w+|DROPOUT|UPSAMPLING)\((\w+), (\w+)", re.M)
OF_INT = re.compile(r"^RUSHLIGHT_OF_INT\((\w+), (\w+)\);", re.M)
OPTIONS_ALIAS = re.compile(r"^using (\w+)Options = (\w+)Options(?:<\d>)?;", re.M)
MODULE = re.compile(r"^RUSHLIGHT_MODULE\((\w+)\);", re.M)
OPTIMIZER = re.compile(
    r"^RUSHLIGHT_OPTIMIZER\((\w+)\);|^class RUSHLIGHT_API (\w+) : public Optimizer \{", re.M
)
SCHEDULE = re.compile(
    r"^class RUSHLIGHT_API (\w+) : public LRScheduler \{\n public:\n(.*?;)", re.M | re.S
)


def options(text: str) -> dict[str, list[Parameter]]:
    """For each class with options: these, in their order."""
    found = {}
    for name, body in OPTIONS.findall(text):
        if "##" not in name:
            found[name] = [Parameter(*match) for match in ARGUMENT.findall(body)]
    for name, family in OF_FAMILY.findall(text) + OPTIONS_ALIAS.findall(text):
        found[name] = found.get(family) or shared()[family]
    for name, option in OF_INT.findall(text):
        found[name] = [Parameter("int64_t", option, None)]
    for name, rest in ONE_LINE.findall(text):
        words = split_top(rest)
        triples = zip(words[0::3], words[1::3], words[2::3], strict=True)
        found[name] = [Parameter(*triple) for triple in triples]
    return found


@functools.cache
def shared() -> dict[str, list[Parameter]]:
    """Options that layers of other headers take too."""
    return options((SOURCE / "nn" / "layers.h").read_text())


def layers() -> dict[str, list[Parameter]]:
    """Every module of the C++ face with its options."""
    found: dict[str, list[Parameter]] = {}
    for path in sorted((SOURCE / "nn").glob("*.h")):
        text = path.read_text()
        given = options(text)
        names = set(MODULE.findall(text)) | {name for name, _ in ONE_LINE.findall(text)}
        names |= {name for name, _ in OF_FAMILY.findall(text) + OF_INT.findall(text)}
        found |= {name: given.get(name, []) for name in names}
    return found


def optimizers() -> dict[str, list[Parameter]]:
    found: dict[str, list[Parameter]] = {}
    for path in sorted((SOURCE / "optim").glob("*.h")):
        text = path.read_text()
        given = options(text)
        names = [made or written for made, written in OPTIMIZER.findall(text)]
        found |= {name: given[name] for name in names if name in given}
    return found


def schedules() -> dict[str, list[Parameter]]:
    """Of each schedule, the parameters of its first constructor."""
    found = {}
    for name, body in SCHEDULE.findall((SOURCE / "optim" / "lr_scheduler.h").read_text()):
        one_line = re.sub(r"\s+", " ", re.sub(r"//.*", "", body))
        found[name] = list(parameters(re.search(rf"{name}\((.*)\);", one_line)[1]))
    return found


def initializers() -> dict[str, list[Parameter]]:
    return functions_of(SOURCE / "nn" / "init.h")


def utilities() -> dict[str, list[Parameter]]:
    return functions_of(SOURCE / "nn" / "utils.h")


def functions_of(path: pathlib.Path) -> dict[str, list[Parameter]]:
    """The free functions that a header declares, over as many lines as they take."""
    text = re.sub(r"\n +", " ", path.read_text()).replace("( ", "(")
    found = {}
    for line in text.splitlines():
        line = re.sub(r"\s*//.*", "", line).removeprefix("RUSHLIGHT_API ")
        matched = DECLARATION.match(line)
        if matched is not None:
            found[matched[2]] = list(parameters(matched[3]))
    return found
