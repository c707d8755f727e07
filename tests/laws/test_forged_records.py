# SPDX-License-Identifier: Apache-2.0
"""What a folder says of itself may be a stranger's: whatever it says, nothing outside of the folder is changed or removed.

Manifests, journals, records and headers of checkpoints, indices and the like are made for real, and then forged.
"""

import contextlib
import json
import random
import shutil
import warnings
import zipfile
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

import distinput as di
from distinput.errors import DistinputError
from distinput.kernels.protobuf import varint_bytes
from distinput.lineage.history import MAGIC, read_varint
from distinput.train.checkpoint_file import write_checkpoint
from distinput.values.spec_json import check_word
from distinput.writers.manifest import WrittenFiles
from tests.depth import cases
from tests.laws.forging import forged

TIMES = cases(25, 400)
PRECIOUS = b"precious\n"


@dataclass(frozen=True)
class Kind:
    """A kind of folder with a record.

    Args:
      make: makes the folder.
      record: the name of the file in it that is forged.
      use: uses the folder; what is forged is found then.
    """

    make: Callable[[Path], Any]
    record: str
    use: Callable[[Path], Any]


def numbers(count: int = 6) -> "di.data.Dataset[Any]":
    return di.data.Dataset.range(count)


def rows() -> "di.data.Dataset[Any]":
    return numbers().map(lambda x: {"x": x, "text": b"some text that is longer than twelve bytes"})


def written(name: str, dataset: Callable[[], Any]) -> Kind:
    def make(folder: Path) -> None:
        dataset().write(str(folder), name, shards=2)

    def use(folder: Path) -> None:
        di.data.FileDataset(str(folder)).to_list()
        di.io.verify_files(str(folder))
        dataset().write(str(folder), name, overwrite=True)

    return Kind(make, MANIFEST, use)


MANIFEST = "distinput-manifest.json"
JOURNAL = ".writing.distinput-unfinished/journal.json"


def write_rows(folder: Path) -> None:
    rows().write(str(folder), "parquet", shard_rows=2, overwrite=True)


def interrupted(folder: Path) -> None:
    """Two writers: the second one is stopped before it has published."""
    write_rows(folder)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(WrittenFiles, "save", _stop)
        with pytest.raises(KeyboardInterrupt):
            write_rows(folder)


def _stop(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def manager(folder: Path) -> di.train.CheckpointManager:
    return di.train.CheckpointManager(di.train.Checkpoint(x=np.zeros(2)), str(folder), max_to_keep=2)


def checkpoints(folder: Path) -> None:
    kept = manager(folder)
    for _ in range(3):
        kept.save()


def use_checkpoints(folder: Path) -> None:
    kept = manager(folder)
    kept.restore_or_initialize()
    di.train.latest_checkpoint(str(folder))
    for _ in range(3):
        kept.save()


def listed(folder: Path) -> None:
    folder.mkdir()
    (folder / "a.txt").write_text("1\n2\n")
    di.data.experimental.write_manifest(str(folder / "files.json"), str(folder / "a.txt"))


def use_listed(folder: Path) -> None:
    list(di.data.experimental.read_manifest(str(folder / "files.json")))


def save(folder: Path) -> None:
    rows().save(str(folder))


def use_saved(folder: Path) -> None:
    list(di.data.Dataset.load(str(folder)))
    save(folder)


def kept(keep: Callable[[Path], "di.data.Dataset[Any]"], record: str) -> Kind:
    return Kind(lambda folder: list(keep(folder)), record, lambda folder: list(keep(folder)))


KINDS = {
    "arrow": written("arrow", rows),
    "cache": kept(lambda folder: numbers().cache(str(folder)), MANIFEST),
    "checkpoints": Kind(checkpoints, "checkpoint", use_checkpoints),
    "csv": written("csv", rows),
    "elements": written("elements", rows),
    "journal": Kind(interrupted, JOURNAL, write_rows),
    "jsonl": written("jsonl", rows),
    "listed": Kind(listed, "files.json", use_listed),
    "npy": written("npy", numbers),
    "parquet": written("parquet", rows),
    "saved": Kind(save, MANIFEST, use_saved),
    "snapshot": kept(lambda folder: numbers().snapshot(str(folder)), f"*/{MANIFEST}"),
    "tar": written("tar", lambda: numbers().map(lambda x: {"__key__": b"%d" % int(x), "cls": x})),
    "text": written("text", lambda: numbers().map(lambda x: b"%d" % int(x))),
    "tfrecord": written("tfrecord", lambda: numbers().map(lambda x: b"%d" % int(x))),
}


@pytest.fixture
def strangers(tmp_path: Path) -> Iterator[Path]:
    """A folder beside precious files, which stay as they are."""
    precious = ["victim", "victim.npz", "victim.parquet", "victim.txt"]
    for name in precious:
        (tmp_path / name).write_bytes(PRECIOUS)
    inside = tmp_path / "strangers"
    yield inside
    assert sorted(path.name for path in tmp_path.iterdir() if path != inside and path.name != "made") == precious
    assert all((tmp_path / name).read_bytes() == PRECIOUS for name in precious)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_forged_record_reaches_nothing_outside(name: str, tmp_path: Path, strangers: Path) -> None:
    kind = KINDS[name]
    made = tmp_path / "made"
    kind.make(made)
    record = json.loads(next(made.glob(kind.record)).read_bytes())
    for number in range(TIMES):
        changed = forged(record, [record], random.Random(f"{name} {number}"))
        if kind.record == JOURNAL and isinstance(changed, dict):
            with contextlib.suppress(TypeError, ValueError, RecursionError):
                changed["check"] = check_word({name: value for name, value in changed.items() if name != "check"})
        try:
            text = json.dumps(changed)
        except (TypeError, ValueError, RecursionError):  # not even JSON
            continue
        shutil.rmtree(strangers, ignore_errors=True)
        shutil.copytree(made, strangers)
        next(strangers.glob(kind.record)).write_text(text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                kind.use(strangers)
            except (DistinputError, OSError):
                pass
            except Exception as error:
                raise AssertionError(f"{name} {number}: {text[:3000]}") from error


def things() -> dict[str, Any]:
    iterator = iter(di.data.Dataset.range(9).shuffle(9, seed=1))
    next(iterator)
    texts = np.array(["ab", b"c", None], object)
    return {
        "a": np.zeros(4), "b": di.Variable(2.0), "c": {"k": [1, 2.5, "t", b"x", None, (1,)]}, "d": texts, "i": iterator,
        "n": 5, "s": np.float32(3), "z": 1 + 2j, "q": np.zeros((2, 3), np.int16), "f": deque([1], 3), "g": {"k": {(1, "x")}},
        "r": np.random.default_rng(1), "t": np.array(["a", "b"], np.dtypes.StringDType()),
    }  # fmt: skip


def test_a_forged_description_of_a_checkpoint_is_damage_or_does_not_fit(tmp_path: Path) -> None:
    """With the right check word, as whoever forges it would write it."""
    di.train.Checkpoint(**things()).write(str(tmp_path / "ckpt"))
    with zipfile.ZipFile(tmp_path / "ckpt.npz") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(members.pop("checkpoint.json"))
    kept = {name: header[name] for name in ("arrays", "format", "version", "id")}
    path = str(tmp_path / "forged")
    for number in range(TIMES):
        made = forged(header, [header], random.Random(f"checkpoint {number}"))
        try:
            made = json.loads(json.dumps({**made, **kept}))
        except (TypeError, ValueError, RecursionError):
            continue
        del made["check"]
        with zipfile.ZipFile(f"{path}.npz", "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
            archive.writestr("checkpoint.json", json.dumps({**made, "check": check_word(made)}))
        for use in (lambda: di.train.Checkpoint(**things()).restore(path).expect_partial(), lambda: looked_at(path)):
            with contextlib.suppress(di.errors.DistinputError):
                use()


def looked_at(path: str) -> None:
    for name, _ in di.train.list_variables(path):
        try:
            di.train.load_variable(path, name)
        except TypeError as error:
            assert "import the package that defines it first" in str(error)  # noqa: PT017


MIRRORED = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
SEEN: dict[str, Callable[[], Any]] = {
    "counted": lambda: numbers(10).global_shuffle(seed=3),
    "filtered": lambda: numbers(20).filter(lambda x: x % 3 != 0).shuffle(4, seed=1),
    "flat": lambda: numbers(20).flat_map(lambda x: di.data.Dataset.range(x % 3)),
}


@pytest.mark.parametrize("file", ["worker-0.ledger", "worker-0.losses"])
@pytest.mark.parametrize("name", SEEN)
def test_a_forged_entry_of_a_ledger_is_damage(name: str, file: str, tmp_path: Path) -> None:
    """With the right check, as whoever forges it would write it."""
    dataset = MIRRORED.experimental_distribute_dataset(SEEN[name]().batch(4))
    with di.train.Ledger(tmp_path) as ledger, iter(dataset) as iterator:
        for step in ledger.follow(iterator):
            ledger.note(iterator.step - 1, MIRRORED.run(lambda x: x * 1.0, args=(step,)))
    bodies = bodies_of((tmp_path / file).read_bytes())
    for number in range(TIMES):
        chance = random.Random(f"{name} {file} {number}")
        at = chance.randrange(len(bodies))
        try:
            changed = forged_entry(bodies[at], chance)
        except (TypeError, ValueError, RecursionError):  # no JSON
            continue
        (tmp_path / file).write_bytes(ledger_of([*bodies[:at], changed, *bodies[at + 1 :]]))
        try:
            look_at_ledger(di.train.Ledger(tmp_path), dataset)
        except di.errors.DistinputError:
            pass
        except Exception as error:
            raise AssertionError(f"{number}: {changed[:3000]!r}") from error


def bodies_of(data: bytes) -> list[bytes]:
    bodies, position = [], len(MAGIC)
    while position < len(data):
        found = read_varint(data, position)
        assert found is not None
        bodies.append(data[found[1] : found[1] + found[0]])
        position = found[1] + found[0] + 2
    return bodies


def ledger_of(bodies: list[bytes]) -> bytes:
    return MAGIC + b"".join([varint_bytes(len(b)) + b + crc32(b).to_bytes(4, "little")[:2] for b in bodies])


def forged_entry(body: bytes, chance: random.Random) -> bytes:
    if body[:1] in b"BF" and chance.random() < 0.7:
        told = json.loads(body[1:])
        return body[:1] + json.dumps(forged(told, [told], chance)).encode()
    made = bytearray(body)
    made[chance.randrange(len(made))] = chance.choice(b"BCFNS{}[]09\0\xff")
    return bytes(made[: chance.randint(1, len(made))]) + chance.randbytes(chance.choice((0, 0, 1, 8)))


def look_at_ledger(ledger: di.train.Ledger, dataset: Any) -> None:
    for number in range(len(ledger)):
        for look in (ledger.replay, ledger.locate):
            with contextlib.suppress(di.errors.UnimplementedError):
                look(dataset, number)
    ledger.worst(dataset, 3)
    ledger.spike(dataset, -1)


def test_an_array_that_is_not_as_it_is_described_is_damage(tmp_path: Path) -> None:
    """It may be many times as large."""
    path = str(tmp_path / "ckpt")
    array = {"kind": "array", "value": {"dtype": "<f8", "shape": [4], "array": "x"}}
    header = {"workers": 1, "save_counter": 0, "run_calls": 0, "entries": {"x": array}}
    write_checkpoint(path, header, {"x": np.zeros(9)})
    x = np.zeros(4)
    with pytest.raises(
        di.errors.DataLossError, match=r"is said to have dtype float64 and shape \[4\], and has float64 and \[9\]"
    ):
        di.train.Checkpoint(x=x).restore(path)
    with pytest.raises(di.errors.DataLossError, match="is said to have"):
        di.train.load_variable(path, "x")
