# SPDX-License-Identifier: Apache-2.0
"""Specs as JSON, for files that say what their elements look like; JSON of others, looked at before it is used."""

import sys
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from keyword import iskeyword
from typing import Any
from zlib import crc32

import numpy as np

from distinput.errors import DataLossError, InvalidArgumentError, NotFoundError
from distinput.names.lazy import library
from distinput.names.words import shown
from distinput.values.leaves import STRING, dtype_code
from distinput.values.nest import LEAF, NONE, Structure, component, structure_of
from distinput.values.nullable import Nullable
from distinput.values.spec import (
    DatasetSpec,
    LeafSpec,
    OptionalSpec,
    RaggedTensorSpec,
    Spec,
    TensorSpec,
    dense_shape_spec,
    shape_fits,
)

json = library("json")  # for mistakes, and for those who write

# ----------------------------------------------------------------------------
# JSON that files and messages hold, looked at before it is used.
#
# What is not as its reader expects is an error of its own. Were it the KeyError or TypeError that Python raises when such a
# value is used, a defect of a reader would look like a damaged file.
# ----------------------------------------------------------------------------


class MalformedJson(ValueError):
    """What should be JSON of some form is not."""


def json_value(text: str | bytes | bytearray) -> Any:
    """The value of a JSON document.

    Raises:
      MalformedJson: it is none.

    >>> json_value(b'{"rows": 3}')
    {'rows': 3}
    """
    from json import loads  # which few first batches need

    try:
        return loads(text)
    except (ValueError, RecursionError) as error:
        raise MalformedJson(f"it is no JSON: {error}") from error


def check_word(value: Any) -> int:
    """A checksum of a JSON value, whatever the order of its keys."""
    return crc32(json.dumps(value, sort_keys=True, separators=(",", ":")).encode())


def of_kind(value: Any, what: str, *kinds: type) -> Any:
    """A value, if it is of one of these kinds; `bool` is no `int`.

    Raises:
      MalformedJson: it is of another kind.
    """
    if type(value) not in kinds:
        names = " or ".join("null" if kind is type(None) else kind.__name__ for kind in kinds)
        raise MalformedJson(f"{what} must be {names}, got {shown(value)}")
    return value


def member(found: Any, key: str, *kinds: type) -> Any:
    """A member of an object, if it is of one of these kinds; of any, if none are named.

    Raises:
      MalformedJson: it is not there, or of another kind, or `found` is not an object.

    >>> member({"rows": 3}, "rows", int)
    3
    >>> member({"rows": "many"}, "rows", int)
    Traceback (most recent call last):
    distinput.values.spec_json.MalformedJson: 'rows' must be int, got 'many'
    """
    if key not in of_kind(found, "it", dict):
        raise MalformedJson(f"it has no {key!r}")
    return of_kind(found[key], repr(key), *kinds) if kinds else found[key]


def items_of(value: Any, what: str, size: int | None = None) -> list[Any]:
    """The items of a list, or of a tuple that becomes one in JSON; there must be so many.

    Raises:
      MalformedJson: it is not a list, or one of another length.
    """
    items = list(of_kind(value, what, list, tuple))
    if size is not None and len(items) != size:
        raise MalformedJson(f"{what} must have {size} items, got {shown(value)}")
    return items


# ----------------------------------------------------------------------------
# Specs as JSON, for files that say what their elements look like. Nothing that is read is imported or executed.
#
# A namedtuple is read back as the class that it was if this process has imported it, else as a new namedtuple of the same
# name and fields. For a dataclass the reader must say what spec it expects, since making one calls code.
# ----------------------------------------------------------------------------


def spec_json(spec: Spec, who: str, more: Callable[[Structure], dict[str, Any]] | None = None) -> Any:
    """A spec as a JSON value.

    Args:
      spec: of the elements.
      who: the caller, for error messages.
      more: what else is said of a leaf or a dict.

    Raises:
      InvalidArgumentError: a component is a dataset, or a key of a dict cannot be saved.

    >>> spec_json(Spec.of({"x": TensorSpec([None], "int64")}), "save")
    {'dict': [['x', {'dtype': '<i8', 'shape': [None]}]]}
    """
    for leaf, path in zip(spec.leaves, spec.structure.paths, strict=True):
        if isinstance(leaf, DatasetSpec):
            raise InvalidArgumentError(f"{who}: {component(path)} is {leaf.called}; {leaf.cure}")
    leaves = iter(spec.leaves)

    def of_leaf(at: Structure) -> Any:
        return _leaf_json(next(leaves), who) | (more(at) if more is not None else {})

    return _structure_json(spec.structure, of_leaf, who, more)


def spec_of_json(
    value: Any, given: Spec | None = None, more: Callable[[Structure, dict[str, Any]], Structure] | None = None
) -> Spec:
    """The spec that `spec_json` was given.

    Args:
      value: the JSON value.
      given: what the reader expects; its classes are used, and it may leave dimensions open.
      more: a leaf or a dict, and the JSON of it -> the same with what else is said there; it may raise `MalformedJson`.

    Raises:
      DataLossError: that was not given by `spec_json`.
      InvalidArgumentError: `given` is another spec; or it is None, and the elements are dataclasses.
    """
    leaves: list[LeafSpec] = []
    try:
        made = Spec(_structure(value, leaves), tuple(leaves)) if given is None else _as_given(value, given)
        return made if more is None else replace(made, structure=_with_more(made.structure, value, more))
    except (MalformedJson, RecursionError) as error:
        raise DataLossError(f"the spec of the elements is damaged: {error}") from error


def leaves_of_json(value: Any) -> tuple[LeafSpec, ...]:
    """The leaves of the spec that `spec_json` was given, in the order of flattening.

    Raises:
      DataLossError: that was not given by it.
    """
    try:
        return tuple([_leaf(leaf) for leaf in _leaves_of(value)])
    except (MalformedJson, RecursionError) as error:
        raise DataLossError(f"the spec of the elements is damaged: {error}") from error


def dtype_json(dtype: np.dtype[Any]) -> Any:
    """A dtype as JSON."""
    if dtype == STRING:
        return "string"
    if dtype.fields is not None:
        return np.lib.format.dtype_to_descr(dtype)
    return dtype_code(dtype)


def dtype_of_json(value: Any) -> np.dtype[Any]:
    """The dtype that `dtype_json` was given.

    Raises:
      DataLossError: that was not given by it.
      NotFoundError: the package that defines it has not been imported.
    """
    if value == "string":
        return STRING
    try:
        descr = _descr(value)
    except (MalformedJson, RecursionError) as error:
        raise DataLossError(f"{value!r:.80} is not a dtype: {error}") from error
    try:
        made = np.lib.format.descr_to_dtype(descr)
    except (TypeError, ValueError, SyntaxError) as error:  # of NumPy
        if isinstance(value, str) and value.isidentifier():
            raise NotFoundError(f"NumPy knows no dtype {value!r}; import the package that defines it") from error
        raise DataLossError(f"{value!r} is not a dtype") from error
    if made.hasobject:  # bytes of a file must never become addresses
        raise DataLossError(f"{value!r} is not a dtype of values")
    return made


def _descr(value: Any) -> Any:
    """The description of a dtype as NumPy has it, with tuples where JSON has lists."""
    if isinstance(value, str):
        return value
    fields = []
    for each in items_of(value, "a dtype"):
        field = items_of(each, "a field", 3 if len(items_of(each, "a field")) > 2 else 2)
        title = tuple(field[0]) if isinstance(field[0], list) else field[0]
        fields.append((title, _descr(field[1]), *[tuple(_sizes(shape)) for shape in field[2:]]))
    return fields


def _sizes(shape: Any) -> list[Any]:
    sizes = items_of(shape, "a shape")
    if any(size is not None and (type(size) is not int or not 0 <= size < 1 << 63) for size in sizes):
        raise MalformedJson(f"a shape has sizes from 0 on, got {shown(shape)}")
    return sizes


def _leaf_json(leaf: LeafSpec, who: str) -> dict[str, Any]:
    if isinstance(leaf, OptionalSpec):
        return {"optional": spec_json(Spec.of(leaf.element_spec), who)}
    assert isinstance(leaf, TensorSpec)
    made: dict[str, Any] = {"dtype": dtype_json(leaf.dtype), "shape": None if leaf.shape is None else list(leaf.shape)}
    if leaf.ragged_rank is not None:
        made["ragged_rank"] = leaf.ragged_rank
    if leaf.sizes is not None:
        made["sizes"] = list(leaf.sizes)
    if leaf.name is not None:
        made["name"] = leaf.name
    return made


def _leaf(value: dict[str, Any]) -> LeafSpec:
    if "optional" in value:
        return OptionalSpec(spec_of_json(value["optional"]).nest)
    stated = member(value, "shape")
    shape = None if stated is None else _sizes(stated)
    dtype = dtype_of_json(member(value, "dtype"))
    if "sizes" in value:
        sizes = _sizes(value["sizes"])
        if shape != [len(sizes)]:
            raise MalformedJson(f"a sparse tensor of the sizes {sizes} with a shape of {shape}")
        return dense_shape_spec(tuple(sizes))
    if "ragged_rank" not in value:
        return TensorSpec(shape, dtype, value.get("name"))
    rank = member(value, "ragged_rank", int)
    if shape is None or not 0 <= rank < max(1, len(shape)):
        raise MalformedJson(f"a ragged rank of {rank} for a shape {shape}")
    return RaggedTensorSpec(shape, dtype, rank)


_MAPPINGS = (OrderedDict, Nullable)
"""Dicts of which readers make the same again."""


def _structure_json(structure: Structure, leaf: Callable[[Structure], Any], who: str, more: Any) -> Any:
    if structure.kind == "leaf":
        return leaf(structure)
    if structure.kind == "none":
        return None
    children = [_structure_json(child, leaf, who, more) for child in structure.children]
    if structure.kind in ("tuple", "list"):
        return {structure.kind: children}
    if structure.kind == "dict":
        by_key = dict(zip(structure.keys, children, strict=True))
        made: dict[str, Any] = {"dict": [[_key_json(key, who), by_key[key]] for key in structure.order or by_key]}
        cls = getattr(structure.mapping, "cls", None)
        if cls in _MAPPINGS:
            made["class"] = cls.__name__
        return made if more is None else made | more(structure)
    cls = structure.cls
    assert cls is not None
    named = [[name, child] for name, child in zip(structure.keys, children, strict=True)]
    return {structure.kind: named, "class": cls.__qualname__, "module": cls.__module__}


def _structure(value: Any, leaves: list[LeafSpec]) -> Structure:
    if value is None:
        return NONE
    kind, parts = _kind_of(value)
    if kind == "leaf":
        leaves.append(_leaf(value))
        return LEAF
    if kind in ("tuple", "list"):
        return Structure(kind, children=tuple([_structure(child, leaves) for child in parts]))
    if kind == "dict":
        children = {_key(key): child for key, child in parts}
        order = tuple(children)
        cls = next((each for each in _MAPPINGS if each.__name__ == value.get("class")), dict)
        like: Any = cls((key, None) for key in order)
        form = structure_of(like)
        made = tuple([_structure(children[key], leaves) for key in form.keys])
        return Structure("dict", form.keys, made, order=order, mapping=form.mapping)
    module, name = member(value, "module", str), member(value, "class", str)
    if kind == "dataclass":
        raise InvalidArgumentError(
            f"its elements are objects of the dataclass {module}.{name}; give element_spec, with such an object, to have them "
            "made"
        )
    names = tuple([field for field, _ in parts])
    made = tuple([_structure(child, leaves) for _, child in parts])
    return Structure("namedtuple", names, made, _class(module, name, names))


def _with_more(at: Structure, value: Any, more: Callable[[Structure, dict[str, Any]], Structure]) -> Structure:
    """The structure of a JSON value, with what else is said of its parts."""
    if value is None:
        return at
    parts = [_with_more(child, part, more) for child, part in zip(at.children, _parts_of(value), strict=True)]
    made = replace(at, children=tuple(parts))
    return more(made, value) if at.kind in ("leaf", "dict") else made


_KINDS = {
    "dtype": "leaf",
    "optional": "leaf",
    "tuple": "tuple",
    "list": "list",
    "dict": "dict",
    "namedtuple": "namedtuple",
    "dataclass": "dataclass",
}
"""By a member that only such a part of a spec has."""


def _kind_of(value: Any) -> tuple[str, Any]:
    """What a part of a spec is, and what it holds: parts, pairs of a key and a part, or the dtype of a leaf.

    Raises:
      MalformedJson: it is none.
    """
    of_kind(value, "a part of it", dict)
    for name, kind in _KINDS.items():
        if name not in value:
            continue
        held = value[name]
        if kind == "leaf":
            return kind, held
        if kind in ("tuple", "list"):
            return kind, items_of(held, repr(kind))
        pairs = [items_of(pair, f"a part of {kind!r}", 2) for pair in items_of(held, repr(kind))]
        if kind != "dict":
            _check_fields(value, [field for field, _ in pairs])
        return kind, pairs
    raise MalformedJson(f"a part of it is none of {', '.join(_KINDS)}: {shown(value)}")


def _check_fields(value: Any, fields: list[Any]) -> None:
    """Refuse what can be no names of fields, and no name of a class.

    Raises:
      MalformedJson: it cannot.
    """
    for name in (*fields, member(value, "class", str).rpartition(".")[2]):
        if type(name) is not str or not name.isidentifier() or iskeyword(name):
            raise MalformedJson(f"{name!r:.60} can be no name of a field or class")
    if len(set(fields)) < len(fields) or any(name.startswith("_") for name in fields):
        raise MalformedJson(f"these can be no names of fields: {', '.join(fields)}")


def _as_given(value: Any, given: Spec) -> Spec:
    """The expected spec, checked to be that of a JSON value."""
    here = spec_json(given, "element_spec")
    kept, wanted = [_leaf(leaf) for leaf in _leaves_of(value)], [_leaf(leaf) for leaf in _leaves_of(here)]
    same = _form(value) == _form(here) and len(kept) == len(wanted)
    for a, b in zip(kept, wanted, strict=True) if same else ():
        same = same and (a.is_subtype_of(b) if isinstance(b, OptionalSpec) else _fits(a, b))
    if not same:
        raise InvalidArgumentError(
            f"the elements look like {json.dumps(value)}, and element_spec says {json.dumps(here)}"
        )
    return given


def _fits(a: LeafSpec, b: LeafSpec) -> bool:
    """Whether arrays of one spec may be read as those of another one."""
    if not isinstance(a, TensorSpec) or not isinstance(b, TensorSpec) or not a.alike(b):
        return False
    if b.sizes is not None and not shape_fits(a.sizes or (), b.sizes):
        return False
    return b.shape is None or (a.shape is not None and shape_fits(a.shape, b.shape))


def _leaves_of(value: Any) -> list[Any]:
    """The leaves of the JSON of a spec, in the order of flattening."""
    if value is None:
        return []
    if _kind_of(value)[0] == "leaf":
        return [value]
    return [leaf for child in _parts_of(value) for leaf in _leaves_of(child)]


def _parts_of(value: Any) -> list[Any]:
    """The JSON of the children of a structure, in the order of flattening."""
    kind, held = _kind_of(value)
    if kind == "leaf":
        return []
    if kind == "dict":
        children = {_key(key): child for key, child in held}
        return [children[key] for key in structure_of(children).keys]
    return [child for _, child in held] if kind in ("namedtuple", "dataclass") else list(held)


def _form(value: Any) -> Any:
    """The JSON of a structure without what may differ: leaves, the order of keys, and where classes are defined."""
    if value is None:
        return True
    kind, held = _kind_of(value)
    if kind == "leaf":
        return False
    if kind == "dict":
        return {"dict": sorted([[json.dumps(key), _form(child)] for key, child in held], key=lambda pair: pair[0])}
    if kind in ("namedtuple", "dataclass"):
        return {kind: [[name, _form(child)] for name, child in held]}
    return {kind: [_form(child) for child in held]}


def _class(module: str, name: str, fields: tuple[str, ...]) -> type:
    """The namedtuple of this name and fields: the one that this process has imported, or a new one."""
    # Ours, wherever it is defined.
    found: Any = sys.modules.get("distinput" if module.startswith("distinput.") else module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if isinstance(found, type) and issubclass(found, tuple) and getattr(found, "_fields", None) == fields:
        return found
    return _namedtuple(name.rpartition(".")[2], fields)


@lru_cache(maxsize=256)
def _namedtuple(name: str, fields: tuple[str, ...]) -> type:
    return namedtuple(name, fields)  # noqa: PYI024 - of names that are read


def _key_json(key: Any, who: str) -> Any:
    if isinstance(key, str):
        return key
    if isinstance(key, bool | int | float) or key is None:
        return {"value": key}
    if isinstance(key, bytes):
        return {"bytes": key.hex()}
    if isinstance(key, tuple):
        return {"tuple": [_key_json(part, who) for part in key]}
    raise InvalidArgumentError(
        f"{who}: keys of dicts must be text, bytes, numbers or tuples of them, got {key!r}; map the elements to other keys"
    )


def _key(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if "bytes" in of_kind(value, "a key", dict):
        coded = member(value, "bytes", str)
        if len(coded) % 2 or set(coded) - set("0123456789abcdef"):
            raise MalformedJson(f"{coded!r:.60} are no bytes of a key")
        return bytes.fromhex(coded)
    if "tuple" in value:
        return tuple([_key(part) for part in member(value, "tuple", list)])
    return member(value, "value", bool, int, float, type(None))
