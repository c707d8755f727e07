# SPDX-License-Identifier: Apache-2.0
"""The place of a worker in a job: its rank, the `host:port` of rank 0, and the address by which others reach it."""

import ipaddress
import socket

__all__ = ["check_rank_and_size", "is_loopback", "local_address", "split_address"]


def check_rank_and_size(found_by: str, given: tuple[int | None, int | None], found: tuple[int, int]) -> None:
    """Raise if the rank and size that the caller passes are not those of the engine.

    Raises:
      ValueError: they differ.

    >>> check_rank_and_size("engine 'mpi': mpiexec started this process", (None, 2), (1, 3))
    Traceback (most recent call last):
    ValueError: engine 'mpi': mpiexec started this process with size 3, got size 2; leave it out
    """
    for what, mine, its in zip(("rank", "size"), given, found, strict=True):
        if mine is not None and mine != its:
            raise ValueError(f"{found_by} with {what} {its}, got {what} {mine}; leave it out")


def is_loopback(host: str) -> bool:
    """True for a name or an address that only processes of this machine reach.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("host0")
    (True, True, True, False, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def split_address(address: str) -> tuple[str, int]:
    """Host and port.

    Raises:
      ValueError: it is not `host:port`.

    >>> split_address("worker-0.example:2222"), split_address("[::1]:80")
    (('worker-0.example', 2222), ('::1', 80))
    """
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"the address of rank 0 must be host:port, got {address!r}")
    return host, int(port)


def local_address(host: str, port: int) -> str | None:
    """The address of this machine that a host sees, None if there is no route to the host; nothing is sent."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(place)
            return str(probe.getsockname()[0])
    except OSError:
        return None
