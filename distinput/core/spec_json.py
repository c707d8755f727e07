# SPDX-License-Identifier: Apache-2.0
"""Specs as JSON, for files that say what their elements look like. Nothing that is read is imported or executed.

A namedtuple is read back as the class that it was if this process has imported it, else as a new namedtuple of the same name
and fields. For a dataclass the reader must say what spec it expects, since making one calls code.
"""

import json
import sys
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from distinput.core.leaves import STRING, dtype_code
from distinput.core.nest import LEAF, NONE, Structure, component, structure_of
from distinput.core.spec import (
    DatasetSpec,
    LeafSpec,
    OptionalSpec,
    RaggedTensorSpec,
    Spec,
    TensorSpec,
    dense_shape_spec,
    shape_fits,
)
from distinput.errors import DataLossError, DistinputError, InvalidArgumentError, NotFoundError

__all__ = ["dtype_json", "dtype_of_json", "leaves_of_json", "spec_json", "spec_of_json"]


def spec_json(spec: Spec, who: str) -> Any:
    """A spec as a JSON value.

    Args:
      spec: of the elements.
      who: the caller, for error messages.

    Raises:
      InvalidArgumentError: a component is a dataset, or a key of a dict cannot be saved.

    >>> spec_json(Spec.of({"x": TensorSpec([None], "int64")}), "save")
    {'dict': [['x', {'dtype': '<i8', 'shape': [None]}]]}
    """
    for leaf, path in zip(spec.leaves, spec.structure.paths, strict=True):
        if isinstance(leaf, DatasetSpec):
            raise InvalidArgumentError(f"{who}: {component(path)} is {leaf.called}; {leaf.cure}")
    leaves = iter(spec.leaves)
    return _structure_json(spec.structure, lambda: _leaf_json(next(leaves), who), who)


def spec_of_json(value: Any, given: Spec | None = None) -> Spec:
    """The spec that `spec_json` was given.

    Args:
      value: the JSON value.
      given: what the reader expects; its classes are used, and it may leave dimensions open.

    Raises:
      DataLossError: that was not given by `spec_json`.
      InvalidArgumentError: `given` is another spec; or it is None, and the elements are dataclasses.
    """
    leaves: list[LeafSpec] = []
    try:
        if given is not None:
            return _as_given(value, given)
        return Spec(_structure(value, leaves), tuple(leaves))
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        if isinstance(error, DistinputError):
            raise
        raise DataLossError(f"the spec of the elements is damaged: {error}") from error


def leaves_of_json(value: Any) -> tuple[LeafSpec, ...]:
    """The leaves of the spec that `spec_json` was given, in the order of flattening.

    Raises:
      DataLossError: that was not given by it.
    """
    try:
        return tuple([_leaf(leaf) for leaf in _leaves_of(value)])
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        if isinstance(error, DistinputError):
            raise
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
        made = np.lib.format.descr_to_dtype(_descr(value))
    except (TypeError, ValueError, SyntaxError) as error:
        if isinstance(value, str) and value.isidentifier():
            raise NotFoundError(f"NumPy knows no dtype {value!r}; import the package that defines it") from error
        raise DataLossError(f"{value!r} is no dtype") from error
    if made.hasobject:  # bytes of a file must never become addresses
        raise DataLossError(f"{value!r} is no dtype of values")
    return made


def _descr(value: Any) -> Any:
    """The description of a dtype as NumPy has it, with tuples where JSON has lists."""
    if isinstance(value, str):
        return value
    fields = []
    for name, kind, *shape in value:
        title = tuple(name) if isinstance(name, list) else name
        fields.append((title, _descr(kind), *[tuple(each) for each in shape]))
    return fields


def _leaf_json(leaf: LeafSpec, who: str) -> dict[str, Any]:
    if isinstance(leaf, OptionalSpec):
        return {"optional": spec_json(Spec.of(leaf.element_spec), who)}
    assert isinstance(leaf, TensorSpec)
    made: dict[str, Any] = {
        "dtype": dtype_json(leaf.dtype),
        "shape": None if leaf.shape is None else list(leaf.shape),
    }
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
    shape = None if value["shape"] is None else [None if size is None else int(size) for size in value["shape"]]
    if any(size is not None and size < 0 for size in shape or ()):
        raise ValueError(f"a dimension is negative: {shape}")
    dtype = dtype_of_json(value["dtype"])
    if "sizes" in value:
        sizes = [None if size is None else int(size) for size in value["sizes"]]
        if shape != [len(sizes)] or any(size is not None and size < 0 for size in sizes):
            raise ValueError(f"the sizes of a sparse tensor are damaged: {sizes}")
        return dense_shape_spec(tuple(sizes))
    if "ragged_rank" in value:
        return RaggedTensorSpec(shape, dtype, value["ragged_rank"])
    return TensorSpec(shape, dtype, value.get("name"))


def _structure_json(structure: Structure, leaf: Callable[[], Any], who: str) -> Any:
    if structure.kind == "leaf":
        return leaf()
    if structure.kind == "none":
        return None
    children = [_structure_json(child, leaf, who) for child in structure.children]
    if structure.kind in ("tuple", "list"):
        return {structure.kind: children}
    if structure.kind == "dict":
        by_key = dict(zip(structure.keys, children, strict=True))
        made: dict[str, Any] = {"dict": [[_key_json(key, who), by_key[key]] for key in structure.order or by_key]}
        if structure.mapping is not None and structure.mapping.cls is OrderedDict:
            made["class"] = "OrderedDict"
        return made
    cls = structure.cls
    assert cls is not None
    named = [[name, child] for name, child in zip(structure.keys, children, strict=True)]
    return {structure.kind: named, "class": cls.__qualname__, "module": cls.__module__}


def _is_leaf(value: Any) -> bool:
    return "dtype" in value or "optional" in value


def _structure(value: Any, leaves: list[LeafSpec]) -> Structure:
    if value is None:
        return NONE
    if _is_leaf(value):
        leaves.append(_leaf(value))
        return LEAF
    for kind in ("tuple", "list"):
        if kind in value:
            return Structure(kind, children=tuple([_structure(child, leaves) for child in value[kind]]))
    if "dict" in value:
        children = {_key(key): child for key, child in value["dict"]}
        order = tuple(children)
        like: Any = (OrderedDict if value.get("class") == "OrderedDict" else dict)((key, None) for key in order)
        form = structure_of(like)
        made = tuple([_structure(children[key], leaves) for key in form.keys])
        return Structure("dict", form.keys, made, order=order, mapping=form.mapping)
    if "dataclass" in value:
        raise InvalidArgumentError(
            f"its elements are objects of the dataclass {value['module']}.{value['class']}; give element_spec, with such an "
            "object, to have them made"
        )
    names = tuple(name for name, _ in value["namedtuple"])
    made = tuple([_structure(child, leaves) for _, child in value["namedtuple"]])
    return Structure("namedtuple", names, made, _class(value["module"], value["class"], names))


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
    if _is_leaf(value):
        return [value]
    if "dict" in value:
        children = {_key(key): child for key, child in value["dict"]}
        return [leaf for key in structure_of(children).keys for leaf in _leaves_of(children[key])]
    for kind in ("namedtuple", "dataclass"):
        if kind in value:
            return [leaf for _, child in value[kind] for leaf in _leaves_of(child)]
    return [leaf for child in value.get("tuple", value.get("list")) for leaf in _leaves_of(child)]


def _form(value: Any) -> Any:
    """The JSON of a structure without what may differ: leaves, the order of keys, and where classes are defined."""
    if value is None or _is_leaf(value):
        return value is None
    if "dict" in value:
        return {
            "dict": sorted([[json.dumps(key), _form(child)] for key, child in value["dict"]], key=lambda pair: pair[0])
        }
    for kind in ("namedtuple", "dataclass"):
        if kind in value:
            return {kind: [[name, _form(child)] for name, child in value[kind]]}
    return {kind: [_form(child) for child in children] for kind, children in value.items()}


def _class(module: str, name: str, fields: tuple[str, ...]) -> type:
    """The namedtuple of this name and fields: the one that this process has imported, or a new one."""
    found: Any = sys.modules.get(
        "distinput" if module.startswith("distinput.") else module
    )  # ours, wherever it is defined
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
    if "bytes" in value:
        return bytes.fromhex(value["bytes"])
    return tuple([_key(part) for part in value["tuple"]]) if "tuple" in value else value["value"]
