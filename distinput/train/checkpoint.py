# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: the values of variables and the positions of iterators in one file, saved by all workers together."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from distinput.distribute.collectives.peers import OpenPeers, only_peers
from distinput.distribute.core.contexts import modes
from distinput.distribute.core.replicas import CallDescription
from distinput.distribute.core.values import LocalOperators
from distinput.errors import DataLossError, FailedPreconditionError, InvalidArgumentError, NotFoundError, StateError
from distinput.files.folder import make_folder, split_path
from distinput.files.source import size_of
from distinput.train.checkpoint_file import CheckpointFile, file_of, write_checkpoint
from distinput.train.coding import Aside, RestoreContext, checked_entries
from distinput.train.manager import CheckpointIndex, CheckpointManager, is_whole
from distinput.train.tracked import (
    Child,
    InitializationStatus,
    Put,
    RestoreStatus,
    Tracked,
    attribute_children,
    attribute_setter,
    check_root,
    item_setter,
    tracked,
)

# ----------------------------------------------------------------------------
# The counter of the saves of a checkpoint.
# ----------------------------------------------------------------------------


class SaveCounter(LocalOperators):
    """A whole number with the methods of a variable that users of `save_counter` call; it belongs to no strategy.

    >>> counter = SaveCounter()
    >>> _ = counter.assign_add(1)
    >>> int(counter), counter.numpy(), counter + 1
    (1, np.int64(1), np.int64(2))
    """

    dtype = np.dtype(np.int64)
    shape = ()
    name = "save_counter"

    def __init__(self) -> None:
        self._value = np.int64(0)

    @property
    def values(self) -> tuple[np.int64]:  # type: ignore[override]
        """The value, as operators look for it."""
        return (self._value,)

    def numpy(self) -> np.int64:
        """The value."""
        return self._value

    value = read_value = numpy

    def assign(self, value: Any) -> "SaveCounter":
        """Set the value."""
        self._value = np.int64(value)
        return self

    def assign_add(self, delta: Any) -> "SaveCounter":
        """Add to the value."""
        return self.assign(self._value + int(delta))

    def assign_sub(self, delta: Any) -> "SaveCounter":
        """Subtract from the value."""
        return self.assign(self._value - int(delta))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.asarray(self._value, dtype)

    def __format__(self, how: str) -> str:
        return format(int(self._value), how)

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"<save_counter {int(self._value)}>"


# ----------------------------------------------------------------------------
# The workers that save and restore a checkpoint together; a process without other workers is a crew of one.
# ----------------------------------------------------------------------------


_SLOWEST_BYTES = 10e6
"""The lowest expected speed of reading and writing, in bytes per second; calls that wait for it time out accordingly later."""


class Crew:
    """The workers that take part in saving or restoring a checkpoint.

    Args:
      peers: all workers; None for a process without other workers.
    """

    def __init__(self, peers: OpenPeers | None) -> None:
        self._peers = peers if peers is not None and peers.size > 1 else None
        self.rank, self.size = (0, 1) if self._peers is None else (self._peers.rank, self._peers.size)

    @property
    def is_chief(self) -> bool:
        """True on the worker that reads and writes files."""
        return self.rank == 0

    def channel(self, name: str) -> Any:
        """Another group of these workers; None for a process without other workers."""
        return None if self._peers is None else self._peers.channel(name)

    def exchange(self, what: str, make: Callable[[], Any], bytes_in_files: int = 0) -> list[Any]:
        """The results of `make` on all workers, JSON values, in worker order.

        Args:
          what: describes the exchange.
          make: returns this worker's contribution.
          bytes_in_files: how much a worker may have to read or write meanwhile.

        Raises:
          Exception: what `make` raised here, or an error that names the worker on which it raised.
        """
        if self._peers is None:
            return [make()]
        timeout = self._peers.group.timeout + bytes_in_files / _SLOWEST_BYTES
        call = CallDescription(f"checkpoint: {what}")
        return [note for note, _ in self._peers.exchange(call, lambda: (make(), ()), timeout=timeout)]

    def bytes_of_chief(self, content: bytes | None, size: int) -> bytes:
        """Send the bytes that the chief has to all workers.

        Args:
          content: the bytes on the chief, None on the others.
          size: their number.
        """
        if self._peers is None:
            assert content is not None
            return content
        timeout = self._peers.group.timeout + size / _SLOWEST_BYTES
        given = None if content is None else np.frombuffer(content, np.uint8)
        said = self._peers.said(CallDescription("checkpoint: send its file"))
        return self._peers.group.broadcast(given, 0, timeout=timeout, **said).tobytes()


def crew_of(strategies: Iterable[Any]) -> Crew:
    """The workers of the given strategies, or of the only strategy in this process that has several workers.

    Raises:
      FailedPreconditionError: several strategies have several workers.
    """
    found = [getattr(getattr(strategy, "_replicas", None), "peers", None) for strategy in strategies]
    by_id: dict[int, OpenPeers] = {id(peers): peers for peers in found if peers is not None}
    if len(by_id) > 1:
        raise FailedPreconditionError(
            f"Checkpoint: has variables or iterators of {len(by_id)} strategies of several workers; make a checkpoint for each"
        )
    return Crew(next(iter(by_id.values())) if by_id else only_peers())


def entered_strategy() -> Any:
    """The strategy of the innermost scope or `run`; None outside of all."""
    return modes.stack[-1].strategy if modes.stack else None


# ----------------------------------------------------------------------------
# Checkpoints: the values of variables and the positions of iterators in one file.
# ----------------------------------------------------------------------------


class Checkpoint:
    """Saves and restores variables, arrays, iterators, numbers and text together, each under a name.

    Keyword arguments become attributes; more may be set later. Each may be a variable, a NumPy array, a tensor, an iterator
    of a dataset, a number, text or a generator of random numbers. It may be an object with `state_dict` and
    `load_state_dict`, or with `get_state` and `set_state`. It may be a dict, list, tuple or object that holds such things, to
    any depth. An object that is reached by several paths is saved once. Attributes of objects that hold nothing of the kind
    are left alone.

    A checkpoint is one file, `<path>.npz`, that appears under its name when it is complete. With several workers, all of them
    make every call; the first one reads and writes the file, and the others need not see it.

    Args:
      root: an object or a dict whose parts are saved under their own names.
      **kwargs: what to save.

    Raises:
      ValueError: a name is taken by the checkpoint itself, or given twice; or the root has no parts with names, as a list, an
        array or an iterator.

    >>> import tempfile
    >>> import numpy as np
    >>> import distinput as di
    >>> iterator = iter(di.data.Dataset.range(5))
    >>> weights = np.zeros(2)
    >>> checkpoint = di.train.Checkpoint(weights=weights, iterator=iterator)
    >>> weights += next(iterator) + 1
    >>> path = checkpoint.save(f"{tempfile.mkdtemp()}/ckpt")
    >>> weights += next(iterator) + 1
    >>> _ = checkpoint.restore(path).assert_consumed()
    >>> weights.tolist(), int(next(iterator))
    ([1.0, 1.0], 1)

    Source: `tf.train.Checkpoint`.
    """

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        self._root = root
        self._strategy = entered_strategy()
        self._save_counter = SaveCounter()
        self._run_calls = 0
        # By id, iterators and the states to save for them; None: their present ones.
        self._positions: dict[int, tuple[Any, Any]] | None = None
        for name, value in kwargs.items():
            if name.startswith("_") or hasattr(type(self), name):
                raise ValueError(f"Checkpoint: the name {name!r} is taken by the checkpoint itself; choose another")
            setattr(self, name, value)
        check_root(root)
        for _ in self._checkpoint_children():  # which looks at their names
            pass

    @property
    def save_counter(self) -> SaveCounter:
        """The number of calls of `save`, a variable that is saved and restored with the rest.

        Source: `tf.train.Checkpoint.save_counter`.
        """
        return self._save_counter

    # ---- saving

    def save(self, file_prefix: str | os.PathLike[str], options: Any = None) -> str:
        """Save as `<file_prefix>-<number>`, where the number counts the calls, and note it as the latest of its folder.

        Args:
          file_prefix: a path or URL; folders are made.
          options: ignored.

        Returns:
          The path of the checkpoint, for `restore`.

        Raises:
          InvalidArgumentError: something cannot be saved; the message names it.
          FailedPreconditionError: the workers do not have the same things to save.
          RuntimeError: called inside `run`.

        Source: `tf.train.Checkpoint.save`.
        """
        del options
        self._save_counter.assign_add(1)
        path = f"{os.fspath(file_prefix)}-{int(self._save_counter)}"
        try:
            self._write(path, lambda: CheckpointIndex.note(path))
        except BaseException:
            self._save_counter.assign_sub(1)
            raise
        return path

    def write(self, file_prefix: str | os.PathLike[str], options: Any = None) -> str:
        """Save as `file_prefix`, without counting or noting it; `read` is the counterpart.

        Args:
          file_prefix: a path or URL; folders are made.
          options: ignored.

        Returns:
          The path of the checkpoint.

        Source: `tf.train.Checkpoint.write`.
        """
        del options
        path = os.fspath(file_prefix)
        self._write(path)
        return path

    def _write(self, path: str, then: Callable[[], Any] = lambda: None) -> Any:
        """Save as `path`; then the first worker calls `then`. All workers return its result, a JSON value."""
        _check_not_in_replica("save")
        objects = tracked(self._checkpoint_children())
        crew = self._crew(objects)
        _compare_names(crew, objects)
        aside = Aside()
        codes = [self._coded(each, aside) for each in objects]
        own = [code if each.kind.own else None for each, code in zip(objects, codes, strict=True)]
        every = crew.exchange("states", lambda: own)

        def write() -> Any:
            if not crew.is_chief:
                return None
            entries = {}
            for number, (each, code) in enumerate(zip(objects, codes, strict=True)):
                entry: dict[str, Any] = {"kind": each.kind.name}
                several = [states[number] for states in every] if each.kind.own else [code]
                entry |= {"value": several[0]} if all(s == several[0] for s in several) else {"values": several}
                if len(each.paths) > 1:
                    entry["also"] = each.paths[1:]
                entries[each.path] = entry
            folder, _ = split_path(file_of(path))
            make_folder(folder)
            header = {
                "workers": crew.size, "save_counter": int(self._save_counter), "run_calls": self._run_calls, "entries": entries,
            }  # fmt: skip
            write_checkpoint(path, header, aside.arrays)
            return then()

        return crew.exchange("write", write, sum(array.nbytes for array in aside.arrays.values()))[0]

    def _coded(self, each: Tracked, aside: Aside) -> Any:
        held = (self._positions or {}).get(id(each.value))
        state = each.kind.state(each.value) if held is None else held[1]
        return each.kind.code(state, aside, each.path)

    # ---- restoring

    def restore(
        self,
        save_path: str | os.PathLike[str] | None,
        options: Any = None,
        *,
        may_differ: str | Collection[str] = (),
    ) -> RestoreStatus | InitializationStatus:
        """Restore everything that has the same path in the program and in the checkpoint, at once.

        Variables, arrays and containers are restored in place, and so are iterators: the next element is the one that would
        have followed. Numbers and text are put where they were found, such as in `checkpoint.epoch`. If anything is wrong
        with the file, or a shape or dtype differs, nothing is changed.

        Args:
          save_path: what `save` returned, or `latest_checkpoint` found; None restores nothing.
          options: ignored.
          may_differ: what may have changed in the inputs, as for `Dataset.restore`.

        Returns:
          A status that names what found no counterpart.

        Raises:
          NotFoundError: there is no such checkpoint.
          DataLossError: the file is damaged.
          InvalidArgumentError: a shape or dtype differs.
          StateError: an iterator belongs to another dataset, or the number of workers differs where that matters.
          FailedPreconditionError: the workers do not restore the same checkpoint.

        Source: `tf.train.Checkpoint.restore`. TensorFlow also restores what is made later; here, make it before.
        """
        del options
        _check_not_in_replica("restore")
        path = None if save_path is None else os.fspath(save_path)
        found = tracked(self._checkpoint_children())
        crew = self._crew(found)
        file = _common_file(crew, path)
        if file is None:
            return InitializationStatus()
        with file:
            entries, header = checked_entries(file.header, file.path), file.header
            by_path = {name: first for first, entry in entries.items() for name in (first, *entry.get("also", ()))}
            pairs = [(each, next((by_path[path] for path in each.paths if path in by_path), None)) for each in found]
            matched = [(each, first, entries[first]) for each, first in pairs if first is not None]
            unused = sorted({*entries} - {first for _, first, _ in matched})
            unmatched = [each.path for each, first in pairs if first is None and not _is_filled_later(each, unused)]
            reading = RestoreContext(file.array, may_differ)

            def apply() -> None:
                saved = [(each, _own(entry, each, crew, file.path)) for each, _, entry in matched]
                for each, state in saved:
                    each.kind.check(each.value, state, each.path)
                    if not each.put and each.kind.is_replaced(each.value):
                        raise InvalidArgumentError(
                            f"restore: {each.path!r} can only be replaced, and is in something that cannot be changed; give "
                            "that to the checkpoint by a name, as in Checkpoint(state=state)"
                        )
                for each, state in sorted(saved, key=lambda pair: pair[0].kind.first):
                    value = each.kind.restore(each.value, state, reading, each.path)
                    if each.kind.is_replaced(each.value) and not _is_same(value, each.value):
                        for put in each.put:
                            put(value)
                self._save_counter.assign(header["save_counter"])
                self._run_calls = header["run_calls"]

            crew.exchange("restore", apply, size_of(file.path) if crew.is_chief else 0)
            return RestoreStatus(file.path, len(matched), unmatched, unused)

    def read(
        self, save_path: str | os.PathLike[str], options: Any = None, *, may_differ: str | Collection[str] = ()
    ) -> RestoreStatus:
        """Restore what `write` wrote; the same as `restore` otherwise.

        Args:
          save_path: what `write` returned.
          options: ignored.
          may_differ: as for `restore`.

        Source: `tf.train.Checkpoint.read`.
        """
        status = self.restore(os.fspath(save_path), options, may_differ=may_differ)
        assert isinstance(status, RestoreStatus)
        return status

    def sync(self) -> None:
        """Return at once: when `save` returns, the file is complete and on the disk.

        Source: `tf.train.Checkpoint.sync`.
        """

    # ---- parts

    def _root_children(self) -> Iterator[Child]:
        if isinstance(self._root, Mapping):
            for key, value in self._root.items():
                yield str(key), value, item_setter(self._root, key), True
        elif self._root is not None:
            yield from attribute_children(self._root)

    def _checkpoint_children(self) -> Iterator[Child]:
        """The parts; also called by a checkpoint that this one is a part of.

        Raises:
          InvalidArgumentError: two of them have one name, and are not the same.
        """
        of_root: dict[str, Child] = {}
        for child in self._root_children():
            if child[0] in of_root and isinstance(self._root, Mapping):
                raise InvalidArgumentError(f"Checkpoint: root has two keys that are the name {child[0]!r}")
            of_root[child[0]] = child
        for name, value in vars(self).items():
            if name.startswith("_"):
                continue
            put: Put | None = attribute_setter(self, name)
            if name in of_root:
                _, other, put_other, _ = of_root.pop(name)
                if not _is_same(value, other):
                    raise InvalidArgumentError(
                        f"Checkpoint: root has a {name!r} of its own, so the keyword {name!r} must be that or another"
                    )
                put = None if put_other is None else partial(_put_both, attribute_setter(self, name), put_other)
            yield name, value, put, True
        yield from of_root.values()

    def _crew(self, found: Collection[Tracked]) -> Crew:
        strategies = [getattr(each.value, "_strategy", None) for each in found]
        return crew_of([self._strategy, entered_strategy(), *strategies])

    def _crew_now(self) -> Crew:
        """The workers that save and restore together."""
        return self._crew(tracked(self._checkpoint_children()))

    def _managed_in(self, folder: str | os.PathLike[str], max_to_keep: int) -> "CheckpointManager[Checkpoint]":
        """A manager of this checkpoint."""
        return CheckpointManager(self, folder, max_to_keep)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        # A new iterator is saved as it was when it was set.
        if not name.startswith("_") and self._positions is not None:
            for each in tracked([(name, value, None, True)]):
                self._hold(each)

    def _hold_positions(self) -> None:
        """Save iterators at their present positions, even after more was taken from them, until `_release_positions`."""
        self._positions = {}
        for each in tracked(self._checkpoint_children()):
            self._hold(each)

    def _hold(self, each: Tracked) -> None:
        assert self._positions is not None
        if isinstance(each.value, Iterator) and id(each.value) not in self._positions:
            self._positions[id(each.value)] = (each.value, each.kind.state(each.value))

    def _release_positions(self) -> None:
        self._positions = None


def _check_not_in_replica(what: str) -> None:
    if modes.stack and modes.stack[-1].replica is not None:
        raise RuntimeError(
            f"Checkpoint.{what}: was called inside run, by one replica; call it outside, once for all of them"
        )


def _compare_names(crew: Crew, found: Collection[Tracked]) -> None:
    """Check that all workers have the same things to save.

    Raises:
      FailedPreconditionError: they do not.
    """
    mine = [[each.path, each.kind.name] for each in found]
    for worker, names in enumerate(crew.exchange("names", lambda: mine)):
        if names != mine:
            here = next((name for name in mine if name not in names), None)
            there = next((name for name in names if name not in mine), None)
            only = [(who, what) for who, what in ((crew.rank, here), (worker, there)) if what is not None]
            which = " and ".join(f"only worker {who} has {path!r} ({kind})" for who, (path, kind) in only)
            raise FailedPreconditionError(
                f"Checkpoint: all workers must save the same things: {which or 'their order differs'}; build the same "
                "checkpoint on all workers"
            )


def _put_both(one: Put, other: Put, value: Any) -> None:
    """Replace what has two places."""
    one(value)
    other(value)


def _is_filled_later(each: Tracked, unused: Collection[str]) -> bool:
    """True for an empty container that had parts when it was saved: these are named as unused."""
    empty = isinstance(each.value, list | dict) and not each.value
    return empty and any(name.startswith(f"{each.path}/") for name in unused)


def _is_same(value: Any, other: Any) -> bool:
    """True if putting one in the place of the other would change nothing."""
    return value is other or (isinstance(value, str | int | bytes) and type(value) is type(other) and value == other)


def _own(entry: Mapping[str, Any], each: Tracked, crew: Crew, path: str) -> Any:
    """The saved state for this worker."""
    if entry["kind"] != each.kind.name:
        raise StateError(
            f"restore: {each.path!r} is of kind {each.kind.name!r} in the program and {entry['kind']!r} in {path}"
        )
    if "value" in entry:
        return entry["value"]
    values = entry["values"]
    # A distributed iterator takes the positions of all workers.
    if each.kind.position and hasattr(each.value, "locate"):
        return values
    if len(values) != crew.size and not each.kind.position:
        raise StateError(
            f"restore: {each.path!r} was saved by {len(values)} workers, each of which had a value of its own, and cannot be "
            f"restored by {crew.size}; make it the same on all workers, or start as many"
        )
    return values[min(crew.rank, len(values) - 1)]  # an iterator says itself why it cannot continue elsewhere


def _common_file(crew: Crew, path: str | None) -> CheckpointFile | None:
    """The checkpoint that all workers are to restore, open and checked; None if they were given None.

    Raises:
      FailedPreconditionError: a worker was given another one, or sees another one under this name.
    """
    asked = crew.exchange("which", lambda: None if path is None else split_path(file_of(path))[1])
    for worker, name in enumerate(asked):
        if name != asked[0]:
            raise FailedPreconditionError(
                f"restore: all workers must restore the same checkpoint; worker {worker} was given {name}, worker 0 "
                f"{asked[0]}; CheckpointManager.restore_or_initialize lets worker 0 decide"
            )
    if path is None:
        return None
    files: list[CheckpointFile] = []

    def open_here() -> list[Any]:
        try:
            files.append(CheckpointFile(path, verified=is_whole(path)))
        except (NotFoundError, DataLossError):
            if crew.is_chief:
                raise
            return [None, 0]
        return [files[0].id, size_of(file_of(path))]

    try:
        ids = crew.exchange("open", open_here, _size_or_none(path))
        for worker, (found, _) in enumerate(ids):
            if found not in (ids[0][0], None):
                raise FailedPreconditionError(
                    f"restore: worker {worker} sees another checkpoint under the name {path} than worker 0; give all workers "
                    "the same folder, or the others an empty one"
                )
        if any(found is None for found, _ in ids):
            content = crew.bytes_of_chief(files[0].content() if crew.is_chief else None, ids[0][1])
            if not files:
                files.append(CheckpointFile(path, content))
    except BaseException:
        for file in files:
            file.close()
        raise
    return files[0]


def _size_or_none(path: str) -> int:
    try:
        return size_of(file_of(path))
    except OSError:
        return 0
