# SPDX-License-Identifier: Apache-2.0
"""Writes what editors and type checkers know of the methods that add an op, and of the datasets that are made of formats.

python docs/make_stub.py            write distinput/data/transformations.pyi and distinput/data/file_datasets/__init__.pyi
python docs/make_stub.py --check    write nothing; exit 1 if a file is not what would be written

Names, defaults and documentation are those of the ops and formats; a test holds the files against them. What an op cannot say,
since it depends on the type of the elements, is said here: a face is one way to call a method, and the type that follows from
it.
"""

import argparse
import inspect
import re
import sys
from dataclasses import dataclass, field
from inspect import Parameter
from pathlib import Path

from distinput.data import file_datasets
from distinput.data.dataset import Dataset, adds_an_op

DATA = Path(__file__).parents[1] / "distinput" / "data"
STUB = DATA / "transformations.pyi"
DATASETS_STUB = DATA / "file_datasets" / "__init__.pyi"
WIDTH = 120

LICENCE = Path(__file__).read_text(encoding="utf-8").splitlines()[0]

HEAD = f"""{LICENCE}
# Written by docs/make_stub.py from the ops; do not change it by hand.
# `self` is a Dataset, the one class that has these methods, and at run time the only one; faces may overlap, the first that
# fits is taken.
# mypy: disable-error-code="misc, overload-overlap"
# pyright: reportGeneralTypeIssues=false, reportOverlappingOverload=false

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Never, TypeAlias, TypeVar, TypeVarTuple, overload

import numpy as np
from numpy.typing import NDArray

from distinput.values.sparse_tensor import SparseTensor
from distinput.data.dataset import Dataset
from distinput.data.iterator import T_co
from distinput.formats.features import Feature
from distinput.plan.options import Options
from distinput.plan.options import SkipErrors

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
S = TypeVar("S", bound=np.generic)
S1 = TypeVar("S1", bound=np.generic)
S2 = TypeVar("S2", bound=np.generic)
S3 = TypeVar("S3", bound=np.generic)
S4 = TypeVar("S4", bound=np.generic)
U = TypeVar("U")
Ts = TypeVarTuple("Ts")

Leaf: TypeAlias = S | NDArray[S]  # a row of an array: a scalar or an array
Python: TypeAlias = bool | int | float | complex | str | list[Any]  # these become NumPy's
Truth: TypeAlias = bool | np.bool_

class Transformations(Generic[T_co]):
"""


DATASETS_HEAD = f"""{LICENCE}
# Written by docs/make_stub.py from the formats; do not change it by hand.

from collections.abc import Mapping, Sequence
from typing import Any

from distinput.data.dataset import Dataset
from distinput.data.file_datasets.reading import Constructor
from distinput.plan.options import SkipErrors

DATASETS: dict[str, Constructor]
"""


@dataclass(frozen=True)
class Face:
    """One way to call a method.

    Args:
      returns: the type of what it returns.
      of: the type of the dataset; None: any.
      given: types of arguments that are not those of the op.
    """

    returns: str = "Dataset[T_co]"
    of: str | None = None
    given: dict[str, str] = field(default_factory=dict)


def called(argument: str, result: str, returns: str) -> list[Face]:
    """The faces of a method whose function gets an element: the members of a tuple are an argument each.

    Nothing is known of the arguments where nothing is known of the elements, which `Dataset[Never]` finds out.
    """
    return [
        Face(returns, "Dataset[Never]", {argument: f"Callable[..., {result}]"}),
        Face(returns, "Dataset[tuple[*Ts]]", {argument: f"Callable[[*Ts], {result}]"}),
        Face(returns, None, {argument: f"Callable[[T_co], {result}]"}),
    ]


def tuples(leaf: str) -> list[str]:
    """The types of tuples of two, three and four leaves, each with a dtype of its own in the place of S."""
    return [f"tuple[{', '.join(leaf.replace('S', f'S{i}') for i in range(1, n + 1))}]" for n in (2, 3, 4)]


BATCHED = [
    Face("Dataset[Any]", "Dataset[Never]"),
    Face("Dataset[NDArray[np.object_]]", "Dataset[bytes]"),
    *[
        Face(f"Dataset[{made}]", f"Dataset[{of}]")
        for made, of in zip(tuples("NDArray[S]"), tuples("Leaf[S]"), strict=True)
    ],
    Face("Dataset[dict[str, NDArray[S]]]", "Dataset[Mapping[str, Leaf[S]]]"),
    Face("Dataset[NDArray[S]]", "Dataset[Leaf[S]]"),  # last: for a subclass of Dataset, mypy takes anything for a leaf
    Face("Dataset[Any]"),
]

FACES: dict[str, list[Face]] = {
    "batch": BATCHED,
    "bucket_by_sequence_length": [Face("Dataset[Any]")],
    "filter": [
        Face("Dataset[Any]", "Dataset[Never]"),
        Face("Dataset[tuple[*Ts]]", "Dataset[tuple[*Ts]]", {"predicate": "Callable[[*Ts], Truth]"}),
        Face(given={"predicate": "Callable[[T_co], Truth]"}),
    ],
    "flat_map": called("map_func", "Dataset[U]", "Dataset[U]"),
    "group_by_window": [
        Face("Dataset[U]", "Dataset[Never]", {"reduce_func": "Callable[[np.int64, Dataset[Any]], Dataset[U]]"}),
        Face(
            "Dataset[U]",
            "Dataset[tuple[*Ts]]",
            {
                "key_func": "Callable[[*Ts], int | np.integer[Any]]",
                "reduce_func": "Callable[[np.int64, Dataset[tuple[*Ts]]], Dataset[U]]",
            },
        ),
        Face(
            "Dataset[U]",
            None,
            {
                "key_func": "Callable[[T_co], int | np.integer[Any]]",
                "reduce_func": "Callable[[np.int64, Dataset[T_co]], Dataset[U]]",
            },
        ),
    ],
    "interleave": called("map_func", "Dataset[U]", "Dataset[U]"),
    "map": [
        Face("Dataset[U]", "Dataset[Never]", {"map_func": "Callable[..., U]"}),
        Face("Dataset[Any]", "Dataset[tuple[*Ts]]", {"map_func": "Callable[[*Ts], Python]"}),
        Face("Dataset[U]", "Dataset[tuple[*Ts]]", {"map_func": "Callable[[*Ts], U]"}),
        Face("Dataset[Any]", None, {"map_func": "Callable[[T_co], Python]"}),
        Face("Dataset[U]", None, {"map_func": "Callable[[T_co], U]"}),
    ],
    "map_rows": [Face("Dataset[Any]")],
    "padded_batch": BATCHED,
    "parse_example": [
        Face("Dataset[dict[str, Any]]", of, {"features": "Mapping[str, Feature]"})
        for of in ("Dataset[bytes]", "Dataset[NDArray[np.object_]]")
    ],
    "ragged_batch": [Face("Dataset[Any]")],
    "rebatch": [Face()],
    "scan": [Face("Dataset[U]", None, {"scan_func": "Callable[[Any, T_co], tuple[Any, U]]"})],
    "sparse_batch": [Face("Dataset[SparseTensor]")],
    "take_while": [
        Face("Dataset[Any]", "Dataset[Never]"),
        Face("Dataset[tuple[*Ts]]", "Dataset[tuple[*Ts]]", {"predicate": "Callable[[*Ts], Truth]"}),
        Face(given={"predicate": "Callable[[T_co], Truth]"}),
    ],
    "unbatch": [
        Face("Dataset[Any]", "Dataset[Never]"),
        Face("Dataset[tuple[Any, Any]]", "Dataset[tuple[A, B]]"),
        Face("Dataset[tuple[Any, Any, Any]]", "Dataset[tuple[A, B, C]]"),
        Face("Dataset[dict[str, Any]]", "Dataset[Mapping[str, Any]]"),
        Face("Dataset[Any]"),
    ],
    "window": [
        Face("Dataset[Any]", "Dataset[Never]"),
        Face("Dataset[Dataset[bytes]]", "Dataset[bytes]"),
        Face("Dataset[Dataset[NDArray[S]]]", "Dataset[NDArray[S]]"),
        Face("Dataset[Dataset[S]]", "Dataset[S]"),
        Face("Dataset[Any]"),
    ],
}
"""The faces of the methods whose result is of another type than the dataset, or depends on what a function returns."""


def written() -> str:
    """The text of the stub."""
    names = [name for name, method in vars(Dataset).items() if adds_an_op(method)]
    unknown = FACES.keys() - set(names)
    if unknown:
        raise KeyError(f"make_stub: no method has these names: {', '.join(sorted(unknown))}")
    return HEAD + "\n".join(method(name) for name in names)


def datasets_written() -> str:
    """The text of the stub of the datasets that are made of formats."""
    found = [DATASETS_HEAD]
    for name, line in file_datasets.DATASETS.items():
        made = getattr(file_datasets, name)
        base = re.sub(r"\b(?:typing|distinput(?:\.\w+)+)\.", "", str(line.base))
        found.append(f"class {name}({base}):" + documentation(made, "    "))
        found.append(declaration("__init__", inspect.signature(made.__init__), Face("None")) + " ...\n")
    return "\n".join(found)


def method(name: str) -> str:
    """The declarations of a method; the first one has the documentation."""
    function = getattr(Dataset, name)
    faces = FACES.get(name, [Face()])
    found = []
    for index, face in enumerate(faces):
        overload = "    @overload\n" if len(faces) > 1 else ""
        body = documentation(function) if index == 0 else " ...\n"
        found.append(overload + declaration(name, inspect.signature(function), face) + body)
    return "".join(found)


def declaration(name: str, signature: inspect.Signature, face: Face) -> str:
    """`def name(...) -> ...:`, on several lines where one would be too long."""
    first, *rest = signature.parameters.values()
    shown = [first.name if face.of is None else f"{first.name}: {face.of}"]
    starred = False
    for each in rest:
        if each.kind is Parameter.KEYWORD_ONLY and not starred:
            shown.append("*")
            starred = True
        default = "" if each.default is Parameter.empty else f" = {each.default!r}"
        shown.append(f"{each.name}: {face.given.get(each.name) or spelled(each)}{default}")
    line = f"    def {name}({', '.join(shown)}) -> {face.returns}:"
    if len(line) + 4 <= WIDTH:
        return line
    return f"    def {name}(\n" + "".join(f"        {each},\n" for each in shown) + f"    ) -> {face.returns}:"


def spelled(parameter: Parameter) -> str:
    """The annotation of a parameter as it is written in the stub."""
    text = (
        inspect.formatannotation(parameter.annotation)
        if not isinstance(parameter.annotation, str)
        else parameter.annotation
    )
    text = re.sub(r"\b(?:collections\.abc|typing|distinput(?:\.\w+)+)\.", "", text)
    return "Dataset[T_co]" if text.strip("'") == "Dataset" else text


def documentation(function: object, indent: str = " " * 8) -> str:
    """The docstring as the body of a declaration."""
    text = inspect.getdoc(function)
    if text is None:
        raise ValueError(f"make_stub: {function} has no documentation")
    mark = 'r"""' if "\\" in text else '"""'
    lines = text.splitlines()
    if len(lines) == 1:
        return f'\n{indent}{mark}{lines[0]}"""\n'
    inner = "".join(f"{indent}{line}".rstrip() + "\n" for line in lines[1:])
    return f'\n{indent}{mark}{lines[0]}\n{inner}{indent}"""\n'


def main() -> int:
    """Write the files, or say whether they are what would be written."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is stale")
    check = parser.parse_args().check
    texts = {STUB: written(), DATASETS_STUB: datasets_written()}
    if check:
        return int(any(path.read_text(encoding="utf-8") != text for path, text in texts.items()))
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
