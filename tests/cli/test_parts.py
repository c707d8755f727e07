# SPDX-License-Identifier: Apache-2.0
"""The parts of the demo, one by one."""

import hashlib
import io
import sys
from importlib import resources

import numpy as np
import pytest

from distinput.cli.digits import load_digits
from distinput.cli.progress import Progress
from distinput.cli.report import Report, differences
from distinput.cli.softmax import Softmax


def test_the_digits_are_those_of_the_repository() -> None:
    digits = load_digits()
    assert np.bincount(digits.label).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert (digits.image.shape, digits.image.min(), digits.image.max()) == ((1797, 64), 0, 16)
    assert digits.id.tolist() == list(range(1797))


def test_the_page_beside_the_digits_names_the_file_it_describes() -> None:
    folder = resources.files("distinput.cli.digits")
    digest = hashlib.sha256(folder.joinpath("digits.csv.gz").read_bytes()).hexdigest()
    page = folder.joinpath("README.md").read_text(encoding="utf-8")
    assert digest in page
    assert "LICENSE-scikit-learn.txt" in page
    assert folder.joinpath("LICENSE-scikit-learn.txt").is_file()


def test_the_gradient_is_that_of_the_loss() -> None:
    random = np.random.default_rng(0)
    images, labels = random.random((5, 4)), np.array([0, 1, 2, 1, 0])
    model = Softmax(4, 3)
    model.parameters["weights"] += random.random((4, 3))
    gradients = model.gradients(images, labels)
    for name, gradient in gradients.items():
        for place in np.ndindex(gradient.shape):
            losses = []
            for step in (1e-5, -2e-5):
                model.parameters[name][place] += step
                losses.append(model.scores(images, labels)["loss"].sum())
            model.parameters[name][place] += 1e-5
            assert (losses[0] - losses[1]) / 2e-5 == pytest.approx(gradient[place], rel=1e-6, abs=1e-8)


def test_no_images_are_no_gradient_and_no_scores() -> None:
    model = Softmax(4, 3)
    none = np.empty((0, 4)), np.empty(0, np.int64)
    assert not model.gradients(*none)["weights"].any()
    assert {name: value.shape for name, value in model.scores(*none).items()} == {"loss": (0,), "correct": (0,)}


@pytest.mark.parametrize(
    "delivered, says",
    [
        ([2, 1, 3], ""),
        ([1, 2], "1 missing (id 3)"),
        ([], "3 missing (id 1, ...)"),
        ([1, 2, 3, 3], "1 repeated (id 3)"),
        ([1, 2, 3, 9], "1 unexpected (id 9)"),
    ],
)
def test_differences(delivered: list[int], says: str) -> None:
    assert differences(delivered, np.array([1, 2, 3])) == says


def test_a_failed_check_fails_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report()
    report.check("one", "", "fine")
    assert report.conclude(1.0)
    report.check("two", "it is not", "fine")
    assert not report.conclude(1.0)
    assert "1 of 2 checks FAILED: two." in capsys.readouterr().out


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def bar(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress(2, "training") as progress:
        progress.step("loss 1")
        progress.step("loss 0")
    return stream.getvalue()


def test_progress_says_nothing_where_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bar(monkeypatch, io.StringIO()) == ""


def test_progress_without_tqdm_is_one_line_that_vanishes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    shown = bar(monkeypatch, Terminal())
    assert "training: step 2 of 2, loss 0" in shown
    assert "\n" not in shown
    assert shown.endswith("\r\033[K")


def test_progress_with_tqdm_is_its_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tqdm", reason="tqdm is an extra")
    shown = bar(monkeypatch, Terminal())
    assert "training:   0%" in shown
    assert "\n" not in shown
