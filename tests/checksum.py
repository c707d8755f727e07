# SPDX-License-Identifier: Apache-2.0
"""CRC32C by its definition, a bit at a time: what the tests compare everything faster with."""

__all__ = ["crc32c_of_bits", "masked_checksum"]


def crc32c_of_bits(data: bytes) -> int:
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ 0x82F63B78 * (register & 1)
    return register ^ 0xFFFFFFFF


def masked_checksum(data: bytes) -> bytes:
    """The four bytes that follow `data` in a TFRecord file."""
    plain = crc32c_of_bits(data)
    return (((plain >> 15 | plain << 17) + 0xA282EAD8) & 0xFFFFFFFF).to_bytes(4, "little")
