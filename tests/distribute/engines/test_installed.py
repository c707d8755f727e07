# SPDX-License-Identifier: Apache-2.0
"""Why an engine can be used here, or cannot."""

from importlib import metadata

import pytest

from distinput.distribute.engines import too_old, why_unavailable


@pytest.fixture
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    monkeypatch.setattr(metadata, "version", lambda _: "99.1")


@pytest.mark.parametrize(
    "version, says",
    [
        ("2.5.1+cpu", "torch 2.5.1+cpu is installed, 2.6 or newer is needed"),
        ("1.13", "torch 1.13 is installed, 2.6 or newer is needed"),
        ("2.6.0", ""),
        ("2.10.0a1", ""),
        ("10.0", ""),
    ],
)
def test_versions_are_compared_as_numbers(version: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda _: version)
    assert too_old("torch") == says


def test_a_package_without_a_version_is_not_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", unknown)
    assert too_old("mpi") == ""


@pytest.mark.parametrize("engine, package", [("jax", "jax"), ("mpi", "mpi4py"), ("torch", "torch")])
def test_what_is_missing_comes_with_its_cure(engine: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert why_unavailable(engine, {}) == f"{package} is not installed (`pip install 'distinput[{engine}]'`)"


@pytest.mark.usefixtures("_installed")
def test_mpi_needs_mpiexec_and_jax_a_coordinator() -> None:
    assert why_unavailable("torch", {}) == ""
    assert why_unavailable("mpi", {"PMI_SIZE": "2"}) == ""
    assert "mpiexec did not start this process" in why_unavailable("mpi", {})
    assert "call jax.distributed.initialize first" in why_unavailable("jax", {"PMI_SIZE": "2"})


@pytest.mark.usefixtures("_installed")
def test_an_old_version_comes_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda _: "3.0")
    says = "mpi4py 3.0 is installed, 4.1 or newer is needed (`pip install -U 'distinput[mpi]'`)"
    assert why_unavailable("mpi", {"PMI_SIZE": "2"}) == says
