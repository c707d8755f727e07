# SPDX-License-Identifier: Apache-2.0
"""Looking into a checkpoint without its program."""

from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import NotFoundError
from distinput.train import Checkpoint, list_variables, load_variable


def test_names_shapes_and_values(tmp_path: Any) -> None:
    iterator = iter(di.data.Dataset.range(5))
    next(iterator)
    checkpoint = Checkpoint(model={"w": di.Variable(np.ones((2, 3)))}, text=np.array([b"a"], object), n=3, it=iterator)
    path = checkpoint.save(tmp_path / "ckpt")
    for where in (path, tmp_path, path + ".npz"):
        assert list_variables(where) == [("it", []), ("model/w", [2, 3]), ("n", []), ("text", [1])]
    assert load_variable(path, "model/w").tolist() == [[1, 1, 1]] * 2
    assert load_variable(path, "n") == 3
    assert load_variable(path, "text").tolist() == [b"a"]
    assert list(di.data.Dataset.range(5).restore(load_variable(path, "it"))) == [1, 2, 3, 4]
    with pytest.raises(KeyError, match="has no 'w'; it has it, model/w, n, text"):
        load_variable(path, "w")


def test_nothing_to_look_into(tmp_path: Any) -> None:
    with pytest.raises(NotFoundError):
        list_variables(tmp_path)
