# SPDX-License-Identifier: Apache-2.0
"""JSON: objects become dicts, texts bytes, lists of numbers or texts arrays."""

import json
from typing import Any

import numpy as np

from distinput.errors import DataLossError, InvalidArgumentError
from distinput.values.spec import TensorSpec

_ALLOWED: dict[str, set[type]] = {"b": {bool}, "i": {int}, "u": {int}, "f": {int, float}}
"""The types in a document that become a kind of dtype."""

_MOST_AXES = 30
"""Of texts; NumPy has a few more."""


def decode_json(contents: bytes, spec: Any = None) -> Any:
    """The value of a JSON document.

    Args:
      contents: the document.
      spec: a dict of `TensorSpec`, which names the keys that are read and their dtypes; None: all keys, with the types that
        they have. Then all documents must have the same keys and types.

    Raises:
      InvalidArgumentError: a value is null, too large, a list of dicts or of several types, or not as `spec` says.
      DataLossError: it is no JSON.

    >>> import distinput as di
    >>> decode_json(b'{"label": 7, "text": "a cat", "box": [1, 2.5], "more": null}', {"box": di.TensorSpec([None], "float32")})
    {'box': array([1. , 2.5], dtype=float32)}
    """
    try:
        found = json.loads(contents)
    except (ValueError, RecursionError) as error:
        raise DataLossError(f"it is no JSON: {error}; decode it as 'bytes'") from None
    try:
        return _plain(found, "$") if spec is None else _stated(found, spec, "$")
    except RecursionError:
        raise InvalidArgumentError("its values are nested too deeply; decode it as 'bytes'") from None


def _plain(value: Any, where: str) -> Any:
    match value:
        case dict():
            return {key: _plain(item, f"{where}.{key}") for key, item in value.items()}
        case list():
            return _array(value, where)
        case bool():
            return np.bool_(value)
        case int() if -(1 << 63) <= value < 1 << 63:
            return np.int64(value)
        case float():
            return np.float64(value)
        case str():
            return value.encode(errors="surrogatepass")
    raise InvalidArgumentError(
        f"{where} is {str(value)[:40]}, which has no type; state the keys and types that you want, such as "
        "decode={'json': {'label': di.TensorSpec([], 'int64')}}, or decode it as 'bytes'"
    )


def _array(items: list[Any], where: str) -> Any:
    kinds = {type(item) for item in _leaves(items)}
    texts = _texts(items) if kinds == {str} else None
    if texts is not None:
        return texts
    try:
        made = np.array(items) if (kinds and kinds <= {int, float}) or kinds == {bool} else None
    except (ValueError, OverflowError):  # lists of several lengths, or integers that are too large
        made = None
    if made is None or made.dtype == object or made.dtype == np.uint64 or _changed(items, made):
        what = "empty, so that its type is not known" if not kinds else "not a rectangle of values of one type"
        raise InvalidArgumentError(
            f"{where} is {what}; state its type, such as decode={{'json': {{'box': di.TensorSpec([None], 'float32')}}}}, or "
            "decode it as 'bytes'"
        )
    return made


def _changed(items: list[Any], made: np.ndarray[Any, Any]) -> bool:
    """Whether an integer has been rounded to a float beside others."""
    if made.dtype != np.float64:
        return False
    return any(
        int(value) != item
        for value, item in zip(made.ravel().tolist(), _leaves(items), strict=True)
        if type(item) is int
    )


def _leaves(items: list[Any]) -> list[Any]:
    """The values in lists of lists."""
    level: list[Any] = items
    while any(isinstance(item, list) for item in level):
        level = [part for item in level for part in (item if isinstance(item, list) else [item])]
    return level


def _texts(items: list[Any]) -> Any:
    """An array of texts; None where lists have several lengths."""
    shape: list[int] = []
    level: list[Any] = items
    while any(isinstance(item, list) for item in level):
        lengths = {len(item) if isinstance(item, list) else -1 for item in level}
        if len(lengths) > 1 or len(shape) >= _MOST_AXES:
            return None
        shape += lengths
        level = [part for item in level for part in item]
    return np.array([item.encode(errors="surrogatepass") for item in level], object).reshape(len(items), *shape)


def _stated(value: Any, spec: Any, where: str) -> Any:
    if isinstance(spec, dict):
        if not isinstance(value, dict):
            raise InvalidArgumentError(f"{where} must be an object, got {str(value)[:40]}")
        missing = [key for key in spec if key not in value]
        if missing:
            raise InvalidArgumentError(f"{where} has no key {missing[0]!r}")
        return {key: _stated(value[key], inner, f"{where}.{key}") for key, inner in spec.items()}
    if not isinstance(spec, TensorSpec):
        raise InvalidArgumentError(f"{where}: a spec must be a dict or a TensorSpec, got {spec!r}")
    made = _of_dtype(value, spec, where)
    if not spec.fits_value(made):
        raise InvalidArgumentError(f"{where} must be {spec}, got {str(value)[:40]}")
    return made


def _of_dtype(value: Any, spec: TensorSpec, where: str) -> Any:
    """A value as an array or scalar of the dtype, where that changes no number."""
    kinds = {type(item) for item in _leaves(value if isinstance(value, list) else [value])}
    if spec.dtype == object:
        if kinds - {str}:
            raise InvalidArgumentError(f"{where} must be text, got {str(value)[:40]}")
        texts = _texts(value) if isinstance(value, list) else value.encode(errors="surrogatepass")
        if texts is None:
            raise InvalidArgumentError(f"{where} must be {spec}, got lists of several lengths: {str(value)[:40]}")
        return texts
    if kinds - _ALLOWED.get(spec.dtype.kind, set()):
        raise InvalidArgumentError(f"{where} must be {spec.dtype}, got {str(value)[:40]}")
    try:
        with np.errstate(over="raise"):
            made = np.array(value, spec.dtype)
    except (ValueError, OverflowError, FloatingPointError) as error:
        raise InvalidArgumentError(f"{where} must be {spec.dtype}: {error}, got {str(value)[:40]}") from None
    return made if isinstance(value, list) else made[()]
