# SPDX-License-Identifier: Apache-2.0
"""What tests of commands over files share."""

import json
from typing import Any

import pytest

from distinput.cli import main


def told(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> Any:
    """What a command says as JSON; a list of values if it says several lines."""
    assert main([*words, "--json"]) == status
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return lines[0] if len(lines) == 1 else lines


def shown(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    """What a command says to people."""
    assert main(list(words)) == status
    return capsys.readouterr().out
