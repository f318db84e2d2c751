"""What requests met during a transfer, and the responsiveness that follows from it and the transfer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weirlab.campaigns.measurement import Measurement, Request, Transfer
from weirlab.stats import Responsiveness, foreign_per_minute, responsiveness, trimmed_mean

_DISTANCE = 4
"""Intervals of 1 s at the end of a measurement that count.

Source: IPPM responsiveness, section 4.4 (MAD, ID)
"""


@dataclass(frozen=True)
class Answered:
    """Requests that were answered."""

    handshakes_s: tuple[float, ...]
    answers_s: tuple[float, ...]
    tls_s: tuple[float, ...] | None = None
    """Handshakes of TLS; None where there were none."""

    @property
    def handshake_s(self) -> float:
        """Trimmed mean."""
        return trimmed_mean(self.handshakes_s)

    @property
    def answer_s(self) -> float:
        """Trimmed mean."""
        return trimmed_mean(self.answers_s)

    @property
    def tls_handshake_s(self) -> float | None:
        """Trimmed mean; None without TLS."""
        return None if self.tls_s is None else trimmed_mean(self.tls_s)

    @property
    def per_minute(self) -> float:
        """Round trips per minute on connections of their own."""
        return foreign_per_minute(tcp_s=self.handshakes_s, tls_s=self.tls_s, http_s=self.answers_s)


def answered(measured: Measurement | None, duration_s: float) -> Answered | None:
    """The requests that were answered: those during a transfer in its last four seconds, those without one at
    any time; None without any. What comes later than `duration_s` does not count.

    Source: IPPM responsiveness, section 4.3
    """
    if measured is None or measured.requests is None:
        return None
    since_s = duration_s - _DISTANCE if measured.loaded else 0.0
    reported = [
        (request.handshake_s, request.answer_s, request.tls_s)
        for request in measured.requests
        if request.handshake_s is not None
        and request.answer_s is not None
        and since_s
        < request.asked_s + request.handshake_s + (request.tls_s or 0.0) + request.answer_s
        <= duration_s
    ]
    if not reported:
        return None
    greeted = tuple(tls for *_, tls in reported if tls is not None)
    return Answered(tuple(each[0] for each in reported), tuple(each[1] for each in reported), greeted or None)


def requests_lost(requests: Sequence[Request]) -> float:
    """Share that was not answered in time."""
    return sum(request.answer_s is None for request in requests) / len(requests)


def last_rtts(transfer: Transfer) -> list[float]:
    """The round-trip times that TCP estimated in the last intervals of all streams alike [s]: they stand in
    for requests within the connections that carry the load, where these take none.

    Source: IPPM responsiveness, section 4.3
    """
    return [rtt for stream in transfer.streams for rtt in stream.rtts_s[-_DISTANCE:] if rtt > 0]


def loaded_responsiveness(measured: Measurement, duration_s: float) -> Responsiveness | None:
    """RPM of a transfer during which there were requests; None when either part is missing."""
    foreign = answered(measured, duration_s)
    rtts = last_rtts(measured.transfer) if measured.transfer is not None else []
    if foreign is None or not rtts:
        return None
    return responsiveness(
        tcp_s=foreign.handshakes_s, tls_s=foreign.tls_s, http_s=foreign.answers_s, loaded_http_s=rtts
    )
