# SPDX-License-Identifier: Apache-2.0
"""Softmax regression in plain NumPy. Its methods take any number of images, none included."""

from typing import Any

import numpy as np

__all__ = ["Softmax"]

Array = np.ndarray[Any, np.dtype[Any]]


class Softmax:
    """The probabilities of the classes are softmax(image @ weights + bias).

    Args:
      pixels: numbers in an image.
      classes: how many classes there are.
    """

    def __init__(self, pixels: int, classes: int) -> None:
        self.parameters = {"weights": np.zeros((pixels, classes)), "bias": np.zeros(classes)}
        self._momentum = {name: np.zeros_like(value) for name, value in self.parameters.items()}

    def scores(self, images: Array, labels: Array) -> dict[str, Array]:
        """The loss of each image, [n], and whether its class was found, [n] of 0 and 1."""
        log_probabilities = self._log_probabilities(images)
        return {
            "loss": -log_probabilities[np.arange(len(labels)), labels],
            "correct": (log_probabilities.argmax(axis=1) == labels).astype(np.int64),
        }

    def gradients(self, images: Array, labels: Array) -> dict[str, Array]:
        """The gradient of the loss, summed over the images: sums of replicas add up, means would not."""
        errors = np.exp(self._log_probabilities(images))  # [n, classes]
        errors[np.arange(len(labels)), labels] -= 1
        return {"weights": images.T @ errors, "bias": errors.sum(axis=0)}

    def update(self, gradients: dict[str, Array], rate: float = 0.5, momentum: float = 0.9) -> None:
        """One step of gradient descent with momentum."""
        for name, gradient in gradients.items():
            self._momentum[name] = momentum * self._momentum[name] + gradient
            self.parameters[name] -= rate * self._momentum[name]

    def _log_probabilities(self, images: Array) -> Array:
        logits = images @ self.parameters["weights"] + self.parameters["bias"]  # [n, classes]
        logits -= logits.max(axis=1, keepdims=True)
        log_probabilities: Array = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return log_probabilities
