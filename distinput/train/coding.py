# SPDX-License-Identifier: Apache-2.0
"""Values of a checkpoint as JSON, with arrays set aside, and the kinds of objects that a checkpoint saves."""

import base64
import math
import sys
from abc import ABC, abstractmethod
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from typing import Any
from urllib.parse import quote

import numpy as np

from distinput.columns.state import is_count
from distinput.errors import DataLossError, ElementTypeError, InvalidArgumentError, StateError
from distinput.names.words import shown
from distinput.values.spec_json import MalformedJson, items_of, member, of_kind

# ----------------------------------------------------------------------------
# Arrays of PyTorch and JAX. Neither package is imported: whoever has such an array has imported it.
# ----------------------------------------------------------------------------


Array = np.ndarray[Any, Any]


def is_tensor(value: Any) -> bool:
    """True for tensors of PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, getattr(torch, "Tensor", ()))


def numpy_of_tensor(value: Any) -> tuple[Array, str]:
    """A copy of a tensor's values, and the name of its dtype; dtypes that NumPy does not have become unsigned integers."""
    torch = sys.modules["torch"]
    value = value.detach().cpu().resolve_conj().resolve_neg().contiguous()
    name = str(value.dtype).removeprefix("torch.")
    try:
        return value.numpy().copy(), name
    except TypeError:
        width = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[value.element_size()]
        return value.view(width).numpy().copy(), name


def tensor_of(array: Array, name: str) -> Any:
    """A tensor of a dtype with these values."""
    torch = sys.modules.get("torch")
    if torch is None:
        raise TypeError(f"the checkpoint has a tensor of PyTorch, of dtype {name}; import torch first")
    made = torch.from_numpy(np.array(array, order="C"))
    dtype = getattr(torch, name)
    return made if made.dtype == dtype else made.view(dtype)


def is_jax_array(value: Any) -> bool:
    """True for arrays of JAX, those of random keys too."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, getattr(jax, "Array", ()))


def numpy_of_jax_array(value: Any) -> Array:
    """The values of a JAX array.

    Raises:
      TypeError: this process does not have all of them, or they are random keys.
    """
    if not value.is_fully_addressable and not value.is_fully_replicated:
        raise TypeError("is an array of JAX of which other processes have a part; gather it first")
    if not isinstance(value.dtype, np.dtype):
        raise TypeError("is an array of random keys; save jax.random.key_data(keys) and make keys with wrap_key_data")
    return np.asarray(value)


def like_jax_array(array: Array, like: Any) -> Any:
    """A JAX array with these values, on the devices of another one."""
    return sys.modules["jax"].device_put(array, like.sharding)


# ----------------------------------------------------------------------------
# Values of a checkpoint as JSON, with arrays set aside.
# ----------------------------------------------------------------------------


Fetch = Callable[[str], Array]

_INLINE = 1 << 16
"""Arrays of up to this many bytes may be part of the JSON, so that each worker can have its own."""


class Aside:
    """The arrays of a checkpoint, by name."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}

    def put(self, name: str, array: Array) -> str:
        """Set an array aside, and return its name, in which what file names cannot hold is written as in URLs."""
        plain = quote(name, safe="/ ~[]()", errors="surrogatepass")
        free, number = plain, 1
        while free in self.arrays:
            number += 1
            free = f"{plain}~{number}"
        self.arrays[free] = array
        return free


def is_value(value: Any) -> bool:
    """True for numbers, text, None, and containers of nothing else: they are saved whole, whatever their length."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        return not hasattr(value, "_saved")
    if isinstance(value, dict):
        value = [*value, *value.values()]
    elif type(value) not in (list, tuple, set, frozenset, deque):
        return False
    for item in value:  # noqa: SIM110 - `all` would call it from C, where one that holds itself ends the process
        if not is_value(item):
            return False
    return True


def coded(value: Any, aside: Aside, name: str, *, inline: bool = False) -> Any:
    """A nest of numbers, text and arrays as JSON.

    Args:
      value: the nest.
      aside: takes the arrays.
      name: begins the names of the arrays.
      inline: True to keep small arrays in the JSON.

    Raises:
      TypeError: it holds anything else; the message says what and where.
    """
    found = _coded_scalar(value)
    if found is not None:
        return found[0]
    if is_tensor(value):
        array, dtype = numpy_of_tensor(value)
        return {"tensor": dtype, "of": _coded_array(array, aside, name, inline)}
    if is_jax_array(value):
        return {"jax": _coded_array(numpy_of_jax_array(value), aside, name, inline)}
    if isinstance(value, np.ndarray):
        return _coded_array(value, aside, name, inline)
    if isinstance(value, np.generic):
        return {"scalar": _coded_array(np.asarray(value), aside, name, True)}

    def inner(item: Any, key: Any) -> Any:
        if isinstance(item, defaultdict) and item.default_factory not in (None, *_FACTORIES.values()):
            raise TypeError(
                f"{name}/{key}: holds a defaultdict whose default_factory cannot be saved; that may be one of "
                f"{', '.join(_FACTORIES)}"
            )
        return coded(item, aside, f"{name}/{key}", inline=inline)

    if isinstance(value, Mapping):
        kind = "ordered" if isinstance(value, OrderedDict) else "counter" if isinstance(value, Counter) else "dict"
        pairs = [[inner(key, "key"), inner(item, key)] for key, item in value.items()]
        default = value.default_factory if isinstance(value, defaultdict) else None
        factory = next((name for name, made in _FACTORIES.items() if made is default), None)
        return {kind: pairs} if factory is None else {kind: pairs, "factory": factory}
    for kind, types in _SEQUENCES.items():
        if isinstance(value, types):
            items = sorted(value, key=repr) if kind in ("set", "frozenset") else value
            made = {kind: [inner(item, number) for number, item in enumerate(items)]}
            most = value.maxlen if isinstance(value, deque) else None
            return made if most is None else {**made, "maxlen": most}
    raise TypeError(f"{name}: holds a {type(value).__name__}, which cannot be saved; numbers, text and arrays can")


_SEQUENCES: dict[str, Any] = {"list": list, "tuple": tuple, "deque": deque, "set": set, "frozenset": frozenset}
_MAPPINGS: dict[str, Any] = {"dict": dict, "ordered": OrderedDict, "counter": Counter}
_FACTORIES: dict[str, Any] = {kind.__name__: kind for kind in (int, float, list, dict, set, str, bool)}
"""Of dicts with defaults."""
_BESIDE = {"tensor": "of", "dict": "factory", "deque": "maxlen"}
"""The member that the code of a value may have beside that of its kind."""
_OF_STRINGS = {"lengths": "<i8", "kinds": "|u1", "data": "|u1"}
"""The arrays that an array of text is made of, and their dtypes."""


def _coded_scalar(value: Any) -> tuple[Any] | None:
    if value is None or isinstance(value, bool | str):
        # That of a text that is in an Enum as well is not its name.
        return (value if value is None or isinstance(value, bool) else str.__str__(value),)
    if isinstance(value, np.generic):
        return None
    if isinstance(value, int):
        return (int(value),)
    if isinstance(value, float):
        return (float(value) if math.isfinite(value) else {"float": repr(float(value))},)
    if isinstance(value, complex):
        return ({"complex": [repr(value.real), repr(value.imag)]},)
    if isinstance(value, bytes):
        return ({"bytes": base64.b64encode(value).decode()},)
    return None


def _coded_array(array: Array, aside: Aside, name: str, inline: bool) -> Any:
    if array.dtype.kind in "OT":
        return _coded_strings(array, aside, name, inline)
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{name}: a masked array cannot be saved; save its data and its mask")
    foreign = array.dtype.isbuiltin == 2  # of another package, such as bfloat16, which the npy format does not know
    stored = array.view(f"u{array.dtype.itemsize}") if foreign else array
    made = {"dtype": array.dtype.name if foreign else _describe(array.dtype), "shape": list(array.shape)}
    if inline and array.nbytes <= _INLINE and array.dtype.names is None:
        return {**made, "data": base64.b64encode(np.ascontiguousarray(stored).tobytes()).decode()}
    return {**made, "array": aside.put(name, np.asarray(stored))}


def _describe(dtype: np.dtype[Any]) -> Any:
    return dtype.str if dtype.names is None else repr(dtype.descr)


def _coded_strings(array: Array, aside: Aside, name: str, inline: bool) -> Any:
    items = array.astype(object).reshape(-1).tolist()
    for item in items:
        if item is not None and not isinstance(item, str | bytes):
            raise TypeError(f"{name}: an array of objects holds a {type(item).__name__}; only text can be saved in one")
    data = [item.encode("utf-8", "surrogatepass") if isinstance(item, str) else item or b"" for item in items]
    kinds = [0 if item is None else 1 if isinstance(item, bytes) else 2 for item in items]
    parts: dict[str, Array] = {
        "lengths": np.array([len(item) for item in data], "<i8"),
        "kinds": np.array(kinds, np.uint8),
        "data": np.frombuffer(b"".join(data), np.uint8),
    }
    made = {key: _coded_array(part, aside, f"{name}.{key}", inline) for key, part in parts.items()}
    dtype = "object" if array.dtype.kind == "O" else "StringDType"
    return {"strings": made, "dtype": dtype, "shape": list(array.shape)}


def checked_entries(header: Mapping[str, Any], path: str) -> dict[str, dict[str, Any]]:
    """What a checkpoint has of each path: a "kind", its "value" or "values", and perhaps other paths, "also".

    Raises:
      DataLossError: it is none that was saved.
    """
    try:
        for count in ("save_counter", "run_calls"):
            if not is_count(number := member(header, count)):
                raise MalformedJson(f"{count!r} cannot be {shown(number)}")
        entries: dict[str, dict[str, Any]] = member(header, "entries", dict)
        for entry in entries.values():
            member(entry, "kind", str)
            for other in items_of(entry.get("also", []), "'also'"):
                of_kind(other, "a path", str)
            values = [entry["value"]] if "value" in entry else items_of(member(entry, "values"), "'values'")
            if not values:
                raise MalformedJson("'values' has none")
            for value in values:
                if entry["kind"] != _Iterator.name:
                    _check_coded(value, header["arrays"])
    except MalformedJson as error:
        raise DataLossError(f"{path}: the checkpoint is damaged: {error}; take one saved before it") from error
    return entries


def _check_coded(saved: Any, arrays: Collection[str]) -> None:
    if saved is None or isinstance(saved, bool | int | float | str):
        return
    if "shape" in of_kind(saved, "a value", dict):
        _check_coded_array(saved, arrays)
        return
    kind = next(iter(saved), "")
    more = saved.keys() - {kind, _BESIDE.get(kind)}
    match kind:
        case _ if more:
            raise MalformedJson(f"a value of the kind {kind!r} has a member {min(more)!r}")
        case "tensor":
            of_kind(saved[kind], "the dtype of a tensor", str)
            _check_coded_array(member(saved, "of", dict), arrays)
        case "jax" | "scalar":
            _check_coded_array(of_kind(saved[kind], "an array", dict), arrays)
        case "float" | "complex":
            for number in [saved[kind]] if kind == "float" else items_of(saved[kind], "a complex number", 2):
                try:
                    float(of_kind(number, "a number", str))
                except ValueError:
                    raise MalformedJson(f"{number!r} is no number") from None
        case "bytes":
            _size_of_base64(saved[kind])
        case _ if kind in _MAPPINGS or kind in _SEQUENCES:
            _check_container(saved, kind, arrays)
        case _:
            raise MalformedJson(f"a value has the unknown kind {kind!r}")


def _check_container(saved: Any, kind: str, arrays: Collection[str]) -> None:
    if of_kind(saved.get("factory", "int"), "the default of a dict", str) not in _FACTORIES:
        raise MalformedJson(f"a dict has the unknown default {saved['factory']!r}")
    if not is_count(most := saved.get("maxlen", 0), most=sys.maxsize):
        raise MalformedJson(f"a deque cannot have room for {shown(most)}")
    for item in items_of(saved[kind], f"a {kind}"):
        parts = [item] if kind in _SEQUENCES else items_of(item, "a pair", 2)
        for part in parts:
            _check_coded(part, arrays)
        if kind in ("set", "frozenset", *_MAPPINGS) and not _is_hashable(parts[0]):
            raise MalformedJson(f"a {kind} cannot have {shown(parts[0])} as a key or an item")


def _is_hashable(saved: Any) -> bool:
    """Whether a value that was looked at can be the key of a dict."""
    if not isinstance(saved, dict):
        return True
    kind = next(iter(saved))
    if kind in ("tuple", "frozenset"):
        return all(map(_is_hashable, saved[kind]))
    return "shape" not in saved and kind not in ("jax", *_MAPPINGS, *_SEQUENCES)


def _check_coded_array(saved: Any, arrays: Collection[str]) -> None:
    shape = [of_kind(size, "a size", int) for size in items_of(member(saved, "shape"), "a shape")]
    items = math.prod(shape)
    dtype = member(saved, "dtype", str)
    if min(shape, default=0) < 0 or not dtype.isascii() or not _is_possible(dtype):
        raise MalformedJson(f"an array has the shape {shape} and the dtype {dtype!r}")
    if "strings" in saved:
        parts = member(saved, "strings", dict)
        if {name: part.get("dtype") for name, part in parts.items() if isinstance(part, dict)} != _OF_STRINGS:
            raise MalformedJson(f"an array of text is made of arrays of other dtypes than {_OF_STRINGS}")
        for part in parts.values():
            _check_coded_array(part, arrays)
        if not parts["lengths"]["shape"] == parts["kinds"]["shape"] == [items]:
            raise MalformedJson(f"an array of text of the shape {shape} has another number of texts")
    elif "data" in saved:
        try:
            wanted = items * np.dtype(dtype).itemsize
        except TypeError:  # of a package that is not imported, which is told where the array is made
            return
        if _size_of_base64(saved["data"]) != wanted:
            raise MalformedJson(f"an array of the shape {shape} and the dtype {dtype} has another number of bytes")
    elif member(saved, "array", str) not in arrays:
        raise MalformedJson(f"there is no array {saved['array']!r}")


def _is_possible(dtype: str) -> bool:
    """False for what looks like the text of a dtype of NumPy and is none; names may be those of packages."""
    try:
        return bool(dtype) and (dtype[0] not in "<>|=" or np.dtype(dtype) is not None)
    except TypeError:
        return False


def _size_of_base64(text: Any) -> int:
    try:
        return len(base64.b64decode(of_kind(text, "bytes", str), validate=True))
    except ValueError as error:
        raise MalformedJson(f"bytes are not in base64: {error}") from None


def decoded(saved: Any, fetch: Fetch) -> Any:
    """The nest that `coded` was given.

    Args:
      saved: its result, which `checked_entries` has looked at.
      fetch: returns an array that was set aside.
    """
    if saved is None or isinstance(saved, bool | int | float | str):
        return saved
    if "shape" in saved:
        array = array_of(saved, fetch)
        return array if array.flags.writeable else array.copy()
    kind, content = next(iter(saved.items()))
    match kind:
        case "tensor":
            return tensor_of(array_of(saved["of"], fetch), content)
        case "jax":
            return array_of(content, fetch)
        case "scalar":
            return array_of(content, fetch)[()]
        case "float":
            return float(content)
        case "complex":
            return complex(*map(float, content))
        case "bytes":
            return base64.b64decode(content)
        case "deque":
            return deque((decoded(item, fetch) for item in content), saved.get("maxlen"))
        case _ if kind in _MAPPINGS:
            pairs = {decoded(key, fetch): decoded(item, fetch) for key, item in content}
            factory = saved.get("factory")
            return _MAPPINGS[kind](pairs) if factory is None else defaultdict(_FACTORIES[factory], pairs)
    return _SEQUENCES[kind](decoded(item, fetch) for item in content)


def array_of(saved: Any, fetch: Fetch, like: np.dtype[Any] | None = None) -> Array:
    """An array that `coded` was given; it may be read-only.

    Args:
      saved: its JSON.
      fetch: returns an array that was set aside.
      like: the expected dtype, which may be one that NumPy does not know by name.
    """
    if "strings" in saved:
        return _strings_of(saved, fetch, like)
    dtype = _dtype_named(saved["dtype"], like)
    if "data" in saved:
        raw = base64.b64decode(saved["data"])
        with _naming_array(saved):
            flat: Array = np.frombuffer(raw, dtype) if raw else np.zeros(0 if dtype.itemsize else saved["shape"], dtype)
            return flat.reshape(saved["shape"])
    array = fetch(saved["array"])
    if list(array.shape) != saved["shape"] or (dtype.names is None and array.dtype.itemsize != dtype.itemsize):
        raise DataLossError(
            f"the checkpoint is damaged: the array {saved['array']!r} is said to have dtype {dtype} and shape "
            f"{saved['shape']}, and has {array.dtype} and {list(array.shape)}"
        )
    with _naming_array(saved):
        return array if dtype == array.dtype or dtype.names is not None else array.view(dtype)


@contextmanager
def _naming_array(saved: Any) -> Iterator[None]:
    """Say of values that make no array of their dtype and shape that they are damaged."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise DataLossError(
            f"the checkpoint is damaged: {saved['dtype']} of shape {shown(saved['shape'])} is no array: {error}"
        ) from error


def _dtype_named(name: str, like: np.dtype[Any] | None) -> np.dtype[Any]:
    if like is not None and like.name == name:
        return like
    if name.startswith("["):
        return np.dtype([("", "u1")])  # a record; its dtype is in the npy member
    try:
        return np.dtype(name)
    except TypeError as error:
        raise ElementTypeError(
            f"the checkpoint has an array of dtype {name}, which NumPy does not know here; import the package that defines "
            "it first, such as ml_dtypes"
        ) from error


def _strings_of(saved: Any, fetch: Fetch, like: np.dtype[Any] | None = None) -> Array:
    parts = {key: array_of(part, fetch) for key, part in saved["strings"].items()}
    with _naming_array(saved):
        data, ends = parts["data"].tobytes(), np.cumsum(parts["lengths"])
        if len(ends) and (ends[-1] != len(data) or parts["lengths"].min() < 0):
            raise DataLossError(
                f"the checkpoint is damaged: an array of text has {len(data)} bytes, and should have {ends[-1]}"
            )
        made = np.empty(len(ends), object)
        rows = zip(ends.tolist(), parts["lengths"].tolist(), parts["kinds"].tolist(), strict=True)
        for i, (end, length, kind) in enumerate(rows):
            item = data[end - length : end]
            made[i] = None if kind == 0 else item if kind == 1 else item.decode("utf-8", "surrogatepass")
        if saved["dtype"] == "StringDType":
            strings: Any = np.dtypes.StringDType
            own = strings() if parts["kinds"].all() else strings(na_object=None)
            made = made.astype(like if like is not None and like.kind == "T" else own)
        return made.reshape(saved["shape"])


# ----------------------------------------------------------------------------
# The kinds of objects that a checkpoint saves, and how each is saved and restored.
# ----------------------------------------------------------------------------


class RestoreContext:
    """What restoring needs besides the saved value.

    Args:
      fetch: returns an array that was set aside.
      may_differ: what `load_state_dict` of an iterator may find changed.
    """

    def __init__(self, fetch: Callable[[str], Array], may_differ: str | Collection[str] = ()) -> None:
        self.fetch, self.may_differ = fetch, may_differ


class Kind(ABC):
    """How one kind of object is saved.

    Attributes:
      name: its name in the file.
      first: the order of restoring; kinds that examine the saved state only while restoring come first.
      own: True if each worker may have a state of its own.
      inline: True if arrays may be part of the JSON, so that each worker can have its own.
    """

    name = ""
    first = 2
    own = True
    inline = False
    position = False
    """True for iterators of datasets, which say themselves on how many workers they can continue."""
    has_parts = False
    """True for objects that may have parts with names too."""

    @abstractmethod
    def fits(self, value: Any) -> bool:
        """True if the value is of this kind."""

    def state(self, value: Any) -> Any:
        """The state of the value; that of an iterator must not change when the iterator advances."""
        return value

    def code(self, state: Any, aside: Aside, path: str) -> Any:
        """The state as JSON; arrays are set aside."""
        return coded(state, aside, path, inline=self.inline)

    def is_replaced(self, value: Any) -> bool:
        """True if the value is immutable, so that restoring replaces it."""
        return False

    def check(self, value: Any, saved: Any, path: str) -> None:
        """Check that the saved state fits, before anything is changed.

        Raises:
          InvalidArgumentError: it does not.
        """
        del value, saved, path

    @abstractmethod
    def restore(self, value: Any, saved: Any, reading: RestoreContext, path: str) -> Any:
        """Restore the value; or return another one that must replace it, if it `is_replaced`."""


def _has(value: Any, *names: str) -> bool:
    return not isinstance(value, type) and all(callable(getattr(value, name, None)) for name in names)


def _check_array(path: str, saved: Any, dtype: Any, shape: Any) -> None:
    if not isinstance(saved, dict) or "shape" not in saved:
        raise InvalidArgumentError(f"restore: {path!r} is an array in the program and something else in the checkpoint")
    there = np.dtype(dtype)
    name = "object" if there.kind == "O" else "StringDType" if there.kind == "T" else None
    fits = saved["dtype"] == name if name else saved["dtype"] in (there.str, there.name, repr(there.descr))
    compatible = getattr(shape, "is_compatible_with", None)  # of a variable, whose sizes may change
    alike = compatible(saved["shape"]) if compatible else tuple(saved["shape"]) == tuple(shape)
    if not fits or not alike:
        stored = saved["dtype"] if "strings" in saved or saved["dtype"][0] not in "<>|=" else np.dtype(saved["dtype"])
        sizes = shape if compatible else list(shape)
        raise InvalidArgumentError(
            f"restore: {path!r} has dtype {there} and shape {sizes} in the program, and dtype {stored} and shape "
            f"{saved['shape']} in the checkpoint; build the same model as when it was saved"
        )


class _Variable(Kind):
    """Variables: `_saved()` returns their value, `_restored(array)` sets it."""

    name = "variable"
    own = False

    def fits(self, value: Any) -> bool:
        return _has(value, "_saved", "_restored")

    def state(self, value: Any) -> Any:
        return np.asarray(value._saved())

    def check(self, value: Any, saved: Any, path: str) -> None:
        _check_array(path, saved, value.dtype, value.shape)

    def restore(self, value: Any, saved: Any, reading: RestoreContext, path: str) -> None:
        array = array_of(saved, reading.fetch, np.dtype(value.dtype))
        value._restored(array if array.flags.writeable else array.copy())


class _Iterator(Kind):
    """Iterators of datasets, distributed or not: they continue in place."""

    name = "iterator"
    first = 0
    position = True

    def fits(self, value: Any) -> bool:
        return _has(value, "state", "load_state_dict", "get_next")

    def state(self, value: Any) -> Any:
        return value.state()

    def code(self, state: Any, aside: Aside, path: str) -> Any:
        return state

    def restore(self, value: Any, saved: Any, reading: RestoreContext, path: str) -> None:
        try:
            value.load_state_dict(saved, reading.may_differ)
        except StateError as error:
            error.add_note(f"while restoring {path!r} from a checkpoint")
            raise


class _GetAndSet(Kind):
    """Objects with a pair of methods that get and set their state, such as PyTorch's modules, optimizers and schedulers.

    Args:
      get: the one.
      put: the other.
      inline: see `Kind`.
    """

    first = 1
    has_parts = True

    def __init__(self, get: str, put: str, *, inline: bool = True) -> None:
        self._get, self._put = get, put
        self.name, self.inline = get, inline

    def fits(self, value: Any) -> bool:
        return _has(value, self._get, self._put)

    def state(self, value: Any) -> Any:
        found = getattr(value, self._get)()
        return deepcopy(found) if isinstance(value, Iterator) else found

    def restore(self, value: Any, saved: Any, reading: RestoreContext, path: str) -> None:
        getattr(value, self._put)(decoded(saved, reading.fetch))


class _Generator(Kind):
    """NumPy's generators of random numbers."""

    name = "generator"
    inline = True

    def fits(self, value: Any) -> bool:
        return isinstance(value, np.random.Generator | np.random.BitGenerator)

    def state(self, value: Any) -> Any:
        return getattr(value, "bit_generator", value).state

    def check(self, value: Any, saved: Any, path: str) -> None:
        bits = getattr(value, "bit_generator", value)
        pairs = saved.get("dict", ()) if isinstance(saved, dict) else ()
        names = [item for key, item in pairs if key == "bit_generator"]
        if names != [bits.state["bit_generator"]]:
            raise InvalidArgumentError(
                f"restore: {path!r} is a generator of kind {bits.state['bit_generator']} in the program, and "
                f"{', '.join(map(str, names)) or 'something else'} in the checkpoint"
            )

    def restore(self, value: Any, saved: Any, reading: RestoreContext, path: str) -> None:
        state = decoded(saved, reading.fetch)
        try:
            getattr(value, "bit_generator", value).state = state
        except (TypeError, ValueError, KeyError, OverflowError) as error:  # of NumPy
            raise DataLossError(f"the checkpoint is damaged: {path!r} is no state of a generator: {error!r}") from error


class _Array(Kind):
    """NumPy arrays, restored in place; those that are read-only are replaced."""

    name = "array"
    own = False

    def fits(self, value: Any) -> bool:
        return isinstance(value, np.ndarray)

    def is_replaced(self, value: Any) -> bool:
        return not value.flags.writeable

    def check(self, value: Any, saved: Any, path: str) -> None:
        _check_array(path, saved, value.dtype, value.shape)

    def restore(self, value: Any, saved: Any, reading: RestoreContext, path: str) -> Any:
        array = array_of(saved, reading.fetch, value.dtype)
        if value.flags.writeable:
            value[...] = array
        return array


class _Tensor(Kind):
    """Tensors of PyTorch, restored in place."""

    name = "tensor"
    own = False

    def fits(self, value: Any) -> bool:
        return is_tensor(value)

    def check(self, value: Any, saved: Any, path: str) -> None:
        there = str(value.dtype).removeprefix("torch.")
        here = (saved.get("tensor"), saved.get("of", {}).get("shape")) if isinstance(saved, dict) else None
        if here != (there, list(value.shape)):
            raise InvalidArgumentError(
                f"restore: {path!r} is a tensor of dtype {there} and shape {list(value.shape)} in the program, and "
                f"(dtype, shape) is {here} in the checkpoint; build the same model as when it was saved"
            )

    def restore(self, value: Any, saved: Any, reading: RestoreContext, path: str) -> None:
        value.detach().copy_(decoded(saved, reading.fetch))


class _JaxArray(Kind):
    """Arrays of JAX, which cannot be modified: they are replaced by others on the same devices."""

    name = "jax"
    own = False

    def fits(self, value: Any) -> bool:
        return is_jax_array(value)

    def is_replaced(self, value: Any) -> bool:
        return True

    def code(self, state: Any, aside: Aside, path: str) -> Any:
        try:
            return coded(state, aside, path)
        except TypeError as error:
            raise TypeError(f"save: {path!r} {error}") from None

    def check(self, value: Any, saved: Any, path: str) -> None:
        _check_array(path, saved.get("jax") if isinstance(saved, dict) else None, value.dtype, value.shape)

    def restore(self, value: Any, saved: Any, reading: RestoreContext, path: str) -> Any:
        return like_jax_array(array_of(saved["jax"], reading.fetch, value.dtype), value)


_FILLED = (list, dict, set, deque)


class _Value(Kind):
    """Numbers, text, and lists, dicts, tuples, sets and deques of nothing else, which are saved whole.

    A container is cleared and filled again, since other objects may refer to it.
    """

    name = "value"
    inline = True

    def fits(self, value: Any) -> bool:
        return is_value(value)

    def is_replaced(self, value: Any) -> bool:
        return not isinstance(value, _FILLED)

    def check(self, value: Any, saved: Any, path: str) -> None:
        if not isinstance(value, _FILLED):
            return
        container = next(iter(saved), "") if isinstance(saved, dict) else ""
        there = defaultdict if container and "factory" in saved else {**_SEQUENCES, **_MAPPINGS}.get(container)
        if there is None or not (issubclass(there, type(value)) or isinstance(value, there)):
            what = "number or text" if there is None else there.__name__
            raise InvalidArgumentError(
                f"restore: {path!r} is a {type(value).__name__} in the program and a {what} in the checkpoint"
            )

    def restore(self, value: Any, saved: Any, reading: RestoreContext, path: str) -> Any:
        found = decoded(saved, reading.fetch)
        if isinstance(value, _FILLED):
            value.clear()
            (value.update if isinstance(value, dict | set) else value.extend)(found)
        return found


KINDS: tuple[Kind, ...] = (
    _Variable(),
    _Iterator(),
    _Array(),
    _Tensor(),
    _JaxArray(),
    _Generator(),
    _GetAndSet("state_dict", "load_state_dict", inline=False),
    _GetAndSet("get_state", "set_state"),
    _GetAndSet("getstate", "setstate"),
    _Value(),
)
"""All kinds; the first one that fits is taken."""


def kind_of(value: Any) -> Kind | None:
    """The kind of a value; None if it is a container of others, or cannot be saved."""
    return next((kind for kind in KINDS if kind.fits(value)), None)
