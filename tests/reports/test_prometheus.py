# SPDX-License-Identifier: Apache-2.0
"""The text for Prometheus is read back by a reader of its format, whatever the names are."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.data.stats import Stats
from distinput.reports.metrics import prometheus_text
from tests.reports.test_figures import STATS

NAME = "[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (\S+)")


def read(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Samples by name and labels, as the format has it; anything else fails."""
    assert text == "" or text.endswith("\n")
    types: dict[str, str] = {}
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for line in text.split("\n")[:-1]:
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types, "a family is in one place"
            types[name] = kind
        elif not line.startswith("# HELP "):
            sample = SAMPLE.fullmatch(line)
            assert sample, line
            assert list(types)[-1] == sample[1], "samples follow the type of their family"
            assert (types[sample[1]] == "counter") == sample[1].endswith("_total")
            labels = {name: re.sub(r"\\(.)", _meant, value) for name, value in re.findall(LABEL, sample[2] or "")}
            key = sample[1], frozenset(labels.items())
            assert key not in found
            found[key] = float(sample[7])
    return found


def _meant(escaped: re.Match[str]) -> str:
    return "\n" if escaped[1] == "n" else escaped[1]


@given(st.dictionaries(st.text(min_size=1, max_size=12), st.just(STATS), max_size=3), st.text(max_size=8))
def test_names_are_read_back(named: dict[str, Stats], op: str) -> None:
    strange = Stats({f"0:{op}": STATS["0:range"]}, f"0:{op}", "", 0.0)
    found = read(prometheus_text({**named, "strange": strange}))
    datasets = {dict(labels)["dataset"] for _, labels in found}
    assert datasets == {*named, "strange"}
    assert (
        "distinput_step_elements_total",
        frozenset({("dataset", "strange"), ("step", f"0:{op}"), *_op(op)}),
    ) in found


def _op(op: str) -> set[tuple[str, str]]:
    name = f"0:{op}".split(":")[1]
    return {("op", name)} if name else set()


def test_values_are_those_of_the_pass() -> None:
    dataset = di.data.Dataset.range(6).batch(2)
    assert prometheus_text(dataset) == ""
    list(dataset)
    found = read(prometheus_text(dataset))
    elements = {dict(labels)["step"]: value for (name, labels), value in found.items() if "elements" in name}
    assert elements == {"0:range": 6, "1:batch": 3}
    seconds = {dict(labels)["step"]: value for (name, labels), value in found.items() if "busy_seconds_total" in name}
    assert seconds == {step: told["busy"] for step, told in dataset.stats().items()}


def test_prometheus_own_reader_takes_it() -> None:
    parser = pytest.importorskip("prometheus_client.parser", reason="Prometheus' client is not installed")
    families = {family.name: family for family in parser.text_string_to_metric_families(prometheus_text({"a": STATS}))}
    assert families["distinput_step_elements"].type == "counter"
    assert families["distinput_step_workers"].samples[0].value == 2
