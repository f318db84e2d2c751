"""One-way delays that a TRex server measured with the frames of a packet group.

The server gives an HdrHistogram in its text form (field ``hdrh``, microseconds). Source: HdrHistogram,
"V2 encoding" of AbstractHistogram.encodeIntoByteBuffer, and the layout of its counts array.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from weirlab.errors import TestbedError

_COMPRESSED = 0x1C849304
_PLAIN = 0x1C849303
_COOKIE_MASK = ~0xF0 & 0xFFFFFFFF
"""The second lowest digit of a cookie holds the word size, which version 2 does not use."""
_HEADER = struct.Struct(">IIIIqqd")
"""Cookie, length of the counts, normalising offset, significant digits, lowest and highest value, ratio."""
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}


@dataclass(frozen=True)
class Delays:
    """Counts of delays, in bins of limited relative width."""

    counts: Mapping[tuple[int, int], int]
    """By lowest and highest delay of the bin [us], bins without delays left out."""

    @classmethod
    def decode(cls, text: str) -> Delays:
        """Read a histogram in its text form. Raises TestbedError when it is damaged."""
        try:
            packed = base64.b64decode(text, validate=True)
            cookie, length = struct.unpack_from(">II", packed)
            if cookie & _COOKIE_MASK != _COMPRESSED:
                raise ValueError(f"cookie {cookie:#x}")
            plain = zlib.decompress(packed[8 : 8 + length])
            cookie, size, offset, digits, lowest, _, _ = _HEADER.unpack_from(plain)
            if cookie & _COOKIE_MASK != _PLAIN or offset or not 0 <= digits <= 5 or lowest < 1:
                raise ValueError(f"cookie {cookie:#x}, offset {offset}, {digits} digits, lowest {lowest}")
            counts = _counts(plain[_HEADER.size : _HEADER.size + size])
            return cls({_bin(index, digits, lowest): count for index, count in counts})
        except (binascii.Error, struct.error, zlib.error, ValueError, IndexError) as error:
            raise TestbedError(f"TRex sent a histogram of delays that is damaged: {error}") from error

    @classmethod
    def merged(cls, several: Sequence[Delays]) -> Delays:
        """All delays of several histograms."""
        counts: dict[tuple[int, int], int] = {}
        for delays in several:
            for limits, count in delays.counts.items():
                counts[limits] = counts.get(limits, 0) + count
        return cls(counts)

    @property
    def total(self) -> int:
        """How many delays there are."""
        return sum(self.counts.values())

    def percentiles(self) -> dict[str, float]:
        """``min p50 p90 p99 p99.9 max`` [s]: the highest delay of the bin that holds the percentile, for the
        minimum the lowest. Empty without delays."""
        if not self.counts:
            return {}
        bins = sorted(self.counts)
        values = {"min": bins[0][0] * 1e-6, "max": bins[-1][1] * 1e-6}
        for name, quantile in _QUANTILES.items():
            rank = max(1, math.ceil(quantile * self.total))
            for limits in bins:
                rank -= self.counts[limits]
                if rank <= 0:
                    values[name] = limits[1] * 1e-6
                    break
        return values


def _counts(packed: bytes) -> Iterator[tuple[int, int]]:
    """Place and count of every bin that is not empty. A negative number stands for a run of empty bins."""
    place = index = 0
    while place < len(packed):
        value = shift = 0
        while True:
            byte = packed[place]
            place += 1
            if shift == 56:
                value |= byte << shift
                break
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                break
        number = (value >> 1) ^ -(value & 1)
        if number < 0:
            index -= number
        else:
            if number:
                yield index, number
            index += 1


def _bin(index: int, digits: int, lowest: int) -> tuple[int, int]:
    """Lowest and highest value of a bin. The first ``sub`` bins are one unit wide, then the width doubles
    every ``sub / 2`` bins."""
    half = max(1, math.ceil(math.log2(2 * 10**digits))) - 1
    unit = lowest.bit_length() - 1
    bucket = (index >> half) - 1
    sub = (index & ((1 << half) - 1)) + (1 << half)
    if bucket < 0:
        bucket, sub = 0, sub - (1 << half)
    low = sub << (bucket + unit)
    return low, low + (1 << (bucket + unit)) - 1
