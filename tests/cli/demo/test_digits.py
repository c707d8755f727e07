# SPDX-License-Identifier: Apache-2.0
"""The images that come with the demo."""

import hashlib
from importlib import resources

import numpy as np

from distinput.cli.demo.program import load_digits


def test_the_digits_are_those_of_the_repository() -> None:
    digits = load_digits()
    assert np.bincount(digits.label).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert (digits.image.shape, digits.image.min(), digits.image.max()) == ((1797, 64), 0, 16)
    assert digits.id.tolist() == list(range(1797))


def test_the_page_beside_the_digits_names_the_file_it_describes() -> None:
    folder = resources.files("distinput.cli.demo").joinpath("digits")
    digest = hashlib.sha256(folder.joinpath("digits.csv.gz").read_bytes()).hexdigest()
    page = folder.joinpath("README.md").read_text(encoding="utf-8")
    assert digest in page
    assert "LICENSE-scikit-learn.txt" in page
    assert folder.joinpath("LICENSE-scikit-learn.txt").is_file()
