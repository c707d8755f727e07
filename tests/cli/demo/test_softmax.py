# SPDX-License-Identifier: Apache-2.0
"""The model of the demo."""

import numpy as np
import pytest

from distinput.cli.demo.program import Softmax


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
