# SPDX-License-Identifier: Apache-2.0
"""Settings that JAX keeps for each thread, on other threads."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

jax = pytest.importorskip("jax")
from distinput.distribute.devices.jax import _MANAGERS, JaxSettings  # noqa: E402 - needs JAX

OTHERS: dict[str, Any] = {
    "jax_default_matmul_precision": "float32",
    "jax_default_prng_impl": "rbg",
    "jax_numpy_dtype_promotion": "strict",
    "jax_numpy_rank_promotion": "raise",
    "jax_transfer_guard_device_to_device": "log",
    "jax_transfer_guard_device_to_host": "log",
    "jax_transfer_guard_host_to_device": "log",
}


@pytest.mark.parametrize("name", sorted(_MANAGERS))
def test_a_setting_holds_on_the_other_thread_while_it_is_entered(name: str) -> None:
    before = getattr(jax.config, name)
    other = OTHERS.get(name, not before)
    with _MANAGERS[name](other):
        settings = JaxSettings()

    def look() -> tuple[Any, Any, Any]:
        first = getattr(jax.config, name)
        inside = settings.bind(lambda: getattr(jax.config, name))()
        return first, inside, getattr(jax.config, name)

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(look).result() == (before, other, before)
    assert getattr(jax.config, name) == before
