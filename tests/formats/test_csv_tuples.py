# SPDX-License-Identifier: Apache-2.0
"""Tuples of CSV, beside the recorded answers of TensorFlow."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.formats import text_records
from distinput.formats.csv_tuples import CsvTuples, FieldError
from distinput.formats.text_table import BadRecordError
from distinput.testing import check_format
from tests.depth import cases

ANSWERS = json.loads((Path(__file__).parent / "csv_answers.json").read_text())
OPTIONS: dict[str, Any] = {"i": di.int32, "s": di.string, "S": ["d"], "I": [7]}


def plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("latin1")
    return repr(float(value)) if isinstance(value, np.floating) else int(value)


def answer(path: Path, content: str, defaults: list[Any], **options: Any) -> tuple[list[Any], str | None]:
    path.write_bytes(content.encode("latin1"))
    found: list[Any] = []
    try:
        found.extend([plain(value) for value in row] for row in di.data.CsvDataset(str(path), defaults, **options))
    except InvalidArgumentError as error:
        return found, str(error)
    return found, None


def same(found: tuple[list[Any], str | None], rows: list[Any], error: str | None) -> None:
    assert found[0] == rows
    assert (found[1] is None) == (error is None), (found, error)
    said = "" if error is None else error.removeprefix("InvalidArgumentError: ")
    if said.startswith(("Field", "Expect ")) and "valid" not in said:
        assert said in str(found[1])


@pytest.mark.parametrize("case", ANSWERS["records"], ids=lambda case: case[0])
def test_records(case: list[Any], tmp_path: Path) -> None:
    _, content, defaults, options, rows, error = case
    same(answer(tmp_path / "a.csv", content, [OPTIONS[kind] for kind in defaults], **options), rows, error)


@pytest.mark.parametrize("kind", ["int32", "int64", "float32", "float64", "string"])
def test_fields_are_those_of_tensorflow(kind: str, tmp_path: Path) -> None:
    mine = [case for case in ANSWERS["fields"] if case[0] == kind]
    for _, way, field, rows, error in mine:
        dtype = di.string if kind == "string" else np.dtype(kind)
        default = dtype if way == "required" else "dflt" if kind == "string" else np.array([7], kind)
        found = answer(tmp_path / "a.csv", field + ",z\n", [default, di.string])
        assert (field, found[0], found[1] is None) == (field, rows, error is None)


def test_the_quick_way_gives_the_same_as_the_exact_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    fields = ["1", "-5", "", '"7"', " 8", "NA"]
    lines = [",".join(random.choice(fields, 3)) + ',"a""b"' + random.choice(["\n", "\r\n"]) for _ in range(300)]
    path = tmp_path / "a.csv"
    path.write_text("".join(lines), newline="")
    made = CsvTuples(("int32", "float32", "object", "object"), (0, 0.5, b"none", None), na_value="NA")
    quick = [row for block, _ in made.read(str(path)) for row in block.elements()]
    monkeypatch.setattr(CsvTuples, "_is_plain", lambda self, data: False)
    assert [row for block, _ in made.read(str(path)) for row in block.elements()] == quick
    assert len(quick) == 300


FIELDS = [
    "1",
    "-5",
    "",
    '"7"',
    " 8",
    "007",
    "0x10",
    "2.5",
    "1e5",
    "+1",
    "-0",
    "123456789012345678901",
    "nan",
    "a",
    '"',
    '""',
]
FIELDS += ['"a\nb"', '"a\r\nb"', '"a\rb"', '"a""b"', "a\rb", "\ufeff1", '"a"b', "\r"]


@st.composite
def tuples(draw: Any) -> tuple[CsvTuples, bytes]:
    width = draw(st.integers(1, 3))
    types = draw(
        st.lists(st.sampled_from(["int32", "int64", "float32", "float64", "object"]), min_size=width, max_size=width)
    )
    defaults = [draw(st.sampled_from([None, b"", b"none"] if kind == "object" else [None, 7])) for kind in types]
    extra = draw(st.sampled_from([0, 0, 1]))
    strange, lines = draw(st.sampled_from([False, False, True])), []
    for _ in range(draw(st.integers(1, 5))):
        fields = draw(
            st.lists(st.sampled_from(FIELDS if strange else FIELDS[:2]), min_size=width + extra, max_size=width + extra)
        )
        lines.append(",".join(fields) + draw(st.sampled_from(["\n", "\n", "\r\n", "\n\n" if strange else "\n"])))
    chosen = {"chosen": tuple(range(extra, width + extra))} if extra else {}
    excluded = {"excluded": (0,)} if extra and draw(st.booleans()) else None
    made = CsvTuples(
        tuple(types), tuple(defaults), quoted=draw(st.sampled_from([True, True, False])), **(excluded or chosen)
    )
    return made, "".join(lines).encode()


def test_plain_tuples_are_those_read_one_by_one() -> None:
    plain = []

    @settings(max_examples=cases(200, 8000), deadline=None, derandomize=True, database=None)
    @given(tuples())
    def compare(given: tuple[CsvTuples, bytes]) -> None:
        made, content = given
        data = np.frombuffer(content, np.uint8)
        count = made.scan(data, 0, len(data), len(data))[0]
        found = None
        with suppress(FieldError, BadRecordError):
            found = made._plain_columns(data, count)
        plain.append(found is not None)
        if found is not None:
            for column, expected in zip(found, made._by_record(data, count).columns, strict=True):
                assert column.dtype == expected.dtype
                one, other = column.whole(), expected.whole()  # type: ignore[attr-defined]
                assert one.tolist() == other.tolist() if one.dtype == object else one.tobytes() == other.tobytes()

    compare()
    assert sum(plain) > len(plain) / 4


def test_the_laws_of_formats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_records, "FIRST_BYTES", 40)
    monkeypatch.setattr(text_records, "CHUNK_BYTES", 40)

    def write(folder: Path) -> list[Path]:
        (folder / "a").write_bytes(b'x,y\n1,a\n2,"b\n""c"""\r\n,\n3,d\r4,e\n5,f\n')
        (folder / "b").write_bytes(b"x,y\n")
        (folder / "c").write_bytes(b"x,y\n9,z")
        return [folder / name for name in "abc"]

    made = CsvTuples(("int64", "object"), (0, b"-"), header=True)
    expected = [[(1, b"a"), (2, b'b\n"c"'), (0, b"-"), (3, b"d"), (4, b"e"), (5, b"f")], [], [(9, b"z")]]
    assert "parts" in check_format(made, write, expected, leave_out=["dataset"])


@pytest.mark.parametrize(
    "options, says",
    [
        ({"record_defaults": []}, "a default for each of at least one field, got 0 types"),
        ({"record_defaults": [di.int8]}, "a field must be int32, int64, float32, float64 or text, got int8"),
        ({"record_defaults": [0, 1e300]}, "the default of field 1 is too large for float32"),
        ({"record_defaults": [[1, 2]]}, r"a dtype or a single value for each field, field 0 has \[1, 2\]"),
        ({"record_defaults": [1], "select_cols": [0, 1]}, "select_cols must have a field for each of 1 defaults"),
        ({"record_defaults": [1, 1], "select_cols": [1, 0]}, "select_cols must be strictly increasing, got"),
        ({"record_defaults": [1], "select_cols": [-1]}, "select_cols must not be negative, got"),
        ({"record_defaults": [1], "select_cols": [0], "exclude_cols": [1]}, "either select_cols or exclude_cols"),
        ({"record_defaults": [1], "field_delim": ",,"}, "field_delim must be a single character of one byte, got ',,'"),
        ({"record_defaults": [1], "schema": {"a": int}}, "schema is for dicts; leave record_defaults out"),
        ({"select_cols": [1]}, "select_cols is for tuples; name columns with columns="),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        di.data.CsvDataset("a.csv", **options)


def test_fields_are_named(tmp_path: Path) -> None:
    a, b = tmp_path / "a.csv", tmp_path / "b.csv"
    a.write_text("\ufeffx,y,z\n1,2,3\n", "utf-8")
    b.write_text("x,y,z\n4,5,6\n", "utf-8")
    files = [str(a), str(b)]
    assert di.data.CsvDataset(files, [0, 0], header=True, select_cols=["x", "z"]).to_list() == [(1, 3), (4, 6)]
    assert di.data.CsvDataset(files, [0, 0], header=True, exclude_cols=["y"]).to_list() == [(1, 3), (4, 6)]
    with pytest.raises(InvalidArgumentError, match="header=True"):
        di.data.CsvDataset(files, [0], select_cols=["x"])
    with pytest.raises(InvalidArgumentError, match="there is no column 'w'; the columns are x, y, z"):
        di.data.CsvDataset(files, [0], header=True, select_cols=["w"]).to_list()
    with pytest.raises(InvalidArgumentError, match="strictly increasing"):
        di.data.CsvDataset(files, [0, 0], header=True, select_cols=["z", "x"]).to_list()
    b.write_text("z,y,x\n4,5,6\n", "utf-8")
    with pytest.raises(InvalidArgumentError, match=r"b\.csv: its header has the columns z, y, x"):
        di.data.CsvDataset(files, [0], header=True, select_cols=["x"]).to_list()


def test_numbers_that_python_does_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("0x1p5000\n-0x1p5000\n0x1p200\n")
    assert di.data.CsvDataset(str(path), [di.float32]).to_list() == [(np.inf,), (-np.inf,), (np.inf,)]
    path.write_text(f"{'0' * 5000}7\n{'1' * 5000}\n")
    rows = iter(di.data.CsvDataset(str(path), [di.int64]))
    assert next(rows) == (7,)
    with pytest.raises(InvalidArgumentError, match="line 2: Field 0 in record is not a valid int64"):
        next(rows)
