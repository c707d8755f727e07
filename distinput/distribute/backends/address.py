# SPDX-License-Identifier: Apache-2.0
"""`host:port`, and which address of this machine others reach it by."""

import socket

__all__ = ["own_address", "split_address"]


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


def own_address(host: str, port: int) -> str | None:
    """The address from which this machine speaks to a host, None when there is no way to it; nothing is sent."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(place)
            return str(probe.getsockname()[0])
    except OSError:
        return None
