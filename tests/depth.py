# SPDX-License-Identifier: Apache-2.0
"""How long a search for counterexamples runs: a sample in `make test`, the whole of it in `make test-deep`."""

import os
from collections.abc import Iterable
from typing import Any

DEEP = os.environ.get("DISTINPUT_TESTS") == "deep"


def cases(sample: int, deep: int) -> int:
    """How many cases to try: `sample` in `make test`, `deep` in `make test-deep`."""
    return deep if DEEP else sample


def sampled(sample: Iterable[Any], more: Iterable[Any]) -> list[Any]:
    """The parameters of a test: `sample` in `make test`, those and `more` in `make test-deep`."""
    return [*sample, *(more if DEEP else ())]
