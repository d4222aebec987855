"""CRC-32C (Castagnoli), which TensorBoard's event files carry for every record.

One byte of all records of about one length at a time, in numpy: a log of a million scalars takes seconds, where a
loop over bytes takes minutes.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

POLYNOMIAL = 0x82F63B78
MASK_DELTA = 0xA282EAD8
BATCH_BYTES = 1 << 24


def _table() -> NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(POLYNOMIAL), table >> 1).astype(np.uint32)
    return table


TABLE = _table()


def masked_crc32c(records: Sequence[bytes]) -> NDArray[np.uint32]:
    """(N,) the checksums, rotated and shifted as TFRecord files store them."""
    crc = np.empty(len(records), dtype=np.uint32)
    lengths = np.array([len(record) for record in records], dtype=np.int64)
    order = np.argsort(lengths, kind="stable")
    begin = 0
    while begin < len(order):
        # Sorted by length, a batch wastes little on padding and stays within BATCH_BYTES.
        end = begin + 1
        while end < len(order) and lengths[order[end]] * (end + 1 - begin) <= BATCH_BYTES:
            if lengths[order[end]] > 2 * lengths[order[begin]] + 64:
                break
            end += 1
        chosen = order[begin:end]
        crc[chosen] = _batch([records[index] for index in chosen], lengths[chosen])
        begin = end
    rotated = (crc >> np.uint32(15)) | (crc << np.uint32(17))
    return (rotated + np.uint32(MASK_DELTA)).astype(np.uint32)


def _batch(records: Sequence[bytes], lengths: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Checksums of records sorted by length."""
    longest = int(lengths[-1]) if len(lengths) else 0
    padded = np.frombuffer(b"".join(record.ljust(longest, b"\0") for record in records), dtype=np.uint8)
    bytes_NL = padded.reshape(len(records), longest)
    crc = np.full(len(records), 0xFFFFFFFF, dtype=np.uint32)
    for place in range(longest):
        still = int(np.searchsorted(lengths, place, side="right"))
        part = crc[still:]
        crc[still:] = TABLE[(part ^ bytes_NL[still:, place]) & 0xFF] ^ (part >> np.uint32(8))
    return crc ^ np.uint32(0xFFFFFFFF)
