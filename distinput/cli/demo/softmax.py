# SPDX-License-Identifier: Apache-2.0
"""Softmax regression in plain NumPy. Its methods accept any number of images, including none.

The results for an image have the same bits whatever other images are in the batch, so they do not depend on how a batch
is divided: products are summed pixel by pixel, in an order that a matrix product does not guarantee.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["Softmax"]

Array = np.ndarray[Any, np.dtype[Any]]


class Softmax:
    """The probabilities of the classes are softmax(image @ weights + bias).

    Args:
      pixels: the number of pixels of an image.
      classes: the number of classes.
    """

    def __init__(self, pixels: int, classes: int) -> None:
        self.parameters = {"weights": np.zeros((pixels, classes)), "bias": np.zeros(classes)}
        self._momentum = {name: np.zeros_like(value) for name, value in self.parameters.items()}

    def scores(self, images: Array, labels: Array) -> dict[str, Array]:
        """The loss of each image, [n], and whether its class was predicted, [n] of 0 and 1."""
        log_probabilities = self._log_probabilities(images)
        return {
            "loss": -log_probabilities[np.arange(len(labels)), labels],
            "correct": (log_probabilities.argmax(axis=1) == labels).astype(np.int64),
        }

    def gradients(self, images: Array, labels: Array) -> dict[str, Array]:
        """The gradient of the loss, summed over the images: sums of replicas can be added, means cannot."""
        errors = self._errors(images, labels)
        return {"weights": images.T @ errors, "bias": errors.sum(axis=0)}

    def gradient_rows(self, images: Array, labels: Array) -> dict[str, Array]:
        """The gradient of the loss of each image: [n, pixels, classes] and [n, classes]."""
        errors = self._errors(images, labels)
        return {"weights": images[:, :, np.newaxis] * errors[:, np.newaxis, :], "bias": errors}

    def update(self, gradients: dict[str, Array], rate: float = 0.5, momentum: float = 0.9) -> None:
        """One step of gradient descent with momentum."""
        for name, gradient in gradients.items():
            self._momentum[name] = momentum * self._momentum[name] + gradient
            self.parameters[name] -= rate * self._momentum[name]

    def saved(self) -> dict[str, dict[str, Any]]:
        """All that is needed to continue learning, as JSON without rounding."""
        every = {"parameters": self.parameters, "momentum": self._momentum}
        return {what: {name: array.tolist() for name, array in arrays.items()} for what, arrays in every.items()}

    def load(self, saved: Mapping[str, Mapping[str, Any]]) -> None:
        """Continue from a result of `saved`."""
        self.parameters = {name: np.array(value) for name, value in saved["parameters"].items()}
        self._momentum = {name: np.array(value) for name, value in saved["momentum"].items()}

    def _errors(self, images: Array, labels: Array) -> Array:
        errors: Array = np.exp(self._log_probabilities(images))  # [n, classes]
        errors[np.arange(len(labels)), labels] -= 1
        return errors

    def _log_probabilities(self, images: Array) -> Array:
        weights, bias = self.parameters["weights"], self.parameters["bias"]
        logits = (images[:, :, np.newaxis] * weights).sum(axis=1) + bias  # [n, pixels, classes] -> [n, classes]
        logits -= logits.max(axis=1, keepdims=True)
        log_probabilities: Array = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return log_probabilities
