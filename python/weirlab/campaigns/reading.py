"""What iperf3, ping and the requests print, read."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NotRequired, TypedDict

from pydantic import TypeAdapter, ValidationError

from weirlab.campaigns.measurement import Pings, Request, Stream, Transfer
from weirlab.errors import TestbedError


def read_transfer(text: str, *, reverse: bool = False) -> Transfer:
    """What iperf3 printed as JSON; `reverse`: where its server was the sender. Raises TestbedError when it
    reports a failure, or nothing that can be read.
    """
    try:
        answer = json.loads(text)
        if "error" in answer:
            raise TestbedError(f"iperf3: {answer['error']}")
        end = answer["end"]
        cpu = end["cpu_utilization_percent"]
        parts = {"total": "total", "user": "user", "system": "system"}
        sender, receiver = ("remote", "host") if reverse else ("host", "remote")
        count = len(end["streams"])
        received = _received(str(answer.get("server_output_text", "")), count, len(answer["intervals"]))
        if reverse:  # its own intervals are those of the receiver
            received = [
                tuple(
                    float(interval["streams"][place]["bits_per_second"]) for interval in answer["intervals"]
                )
                for place in range(count)
            ]
        return Transfer(
            streams=tuple(
                _stream(each, [interval["streams"][place] for interval in answer["intervals"]], rates)
                for place, (each, rates) in enumerate(zip(end["streams"], received, strict=True))
            ),
            intervals_bps=tuple(float(each["sum"]["bits_per_second"]) for each in answer["intervals"]),
            sender_cpu_percent={name: float(cpu[f"{sender}_{part}"]) for name, part in parts.items()},
            receiver_cpu_percent={name: float(cpu[f"{receiver}_{part}"]) for name, part in parts.items()},
        )
    except (ValueError, LookupError, TypeError) as error:
        raise TestbedError(
            f"iperf3 printed what cannot be read ({error!r}): {text.strip()[-200:]}"
        ) from error


_INTERVAL = re.compile(
    r"^\[ *(\d+)\] +([\d.]+)-([\d.]+) +sec +[\d.]+ \w*Bytes +([\d.]+) Kbits/sec *$", re.MULTILINE
)


"""A stream in an interval, as a receiving iperf3 prints it; sums and totals have further words."""


_LEAST_OF_SECOND = 0.5


"""What remains after the last whole second is no interval of its own."""


def _received(text: str, streams: int, intervals: int) -> list[tuple[float, ...]]:
    """Goodput [bit/s] of each stream in each second, as its receiver printed it; empty ones where it did not
    print so many streams and seconds."""
    rates: dict[str, list[float]] = {}
    for stream, start, end, kbps in _INTERVAL.findall(text):
        if float(end) - float(start) >= _LEAST_OF_SECOND:
            rates.setdefault(stream, []).append(1000 * float(kbps))
    answer = [tuple(each[:intervals]) for each in rates.values()]
    if len(answer) != streams or any(len(each) < intervals - 1 for each in answer):
        return [()] * streams
    return answer


class _Counts(TypedDict, total=False):
    """What iperf3 counts of a stream, at one end or in an interval."""

    bytes: int
    seconds: float
    bits_per_second: float
    retransmits: int
    mean_rtt: int
    rtt: int
    max_snd_cwnd: int
    snd_cwnd: int
    packets: int
    lost_packets: int
    jitter_ms: float


class _Stream(TypedDict):
    sender: _Counts
    receiver: _Counts
    udp: NotRequired[_Counts]


def _stream(each: _Stream, intervals: Sequence[_Counts], received_bps: tuple[float, ...]) -> Stream:
    if "udp" in each:
        return _datagram_stream(each["udp"], intervals, received_bps)
    sender, receiver = each["sender"], each["receiver"]
    rtt_us = sender.get("mean_rtt") or None  # 0: of a sender that is not here
    return Stream(
        received_bytes=int(receiver["bytes"]),
        seconds=float(receiver["seconds"]),
        retransmits=sender.get("retransmits"),
        mean_rtt_s=None if rtt_us is None else rtt_us / 1e6,
        max_cwnd_bytes=sender.get("max_snd_cwnd") or None,
        rates_bps=tuple(float(interval["bits_per_second"]) for interval in intervals),
        received_bps=received_bps,
        rtts_s=tuple(interval["rtt"] / 1e6 for interval in intervals if "rtt" in interval),
        cwnds_bytes=tuple(interval["snd_cwnd"] for interval in intervals if "snd_cwnd" in interval),
        interval_retransmits=tuple(
            interval["retransmits"] for interval in intervals if "retransmits" in interval
        ),
    )


def _datagram_stream(
    answer: _Counts, intervals: Sequence[_Counts], received_bps: tuple[float, ...]
) -> Stream:
    """UDP: iperf3 reports what was sent, and how much of it the receiver missed."""
    sent, lost = int(answer["packets"]), max(0, int(answer["lost_packets"]))
    share = (sent - lost) / sent if sent else 0.0
    return Stream(
        received_bytes=round(int(answer["bytes"]) * share),
        seconds=float(answer["seconds"]),
        retransmits=None,
        mean_rtt_s=None,
        max_cwnd_bytes=None,
        rates_bps=tuple(float(interval["bits_per_second"]) for interval in intervals),
        received_bps=received_bps,
        datagrams=sent,
        lost_datagrams=lost,
        jitter_s=float(answer["jitter_ms"]) / 1000,
    )


def read_ping(text: str) -> Pings:
    """What ping printed. Raises TestbedError when there is no summary in it."""
    counts = re.search(r"^(\d+) packets transmitted, (\d+) received", text, re.MULTILINE)
    if counts is None:
        raise TestbedError(f"ping: {text.strip()[-200:] or 'no summary'}")
    # A second answer to one request is no further measurement.
    answers = re.findall(r"icmp_seq=\d+ ttl=\d+ time=([\d.]+) ms(?! \(DUP)", text)
    spread = re.search(r"^rtt min/avg/max/mdev = ([\d.]+)/([\d.]+)/", text, re.MULTILINE)
    return Pings(
        sent=int(counts[1]),
        rtts_s=tuple(float(time_ms) / 1000 for time_ms in answers),
        min_s=None if spread is None else float(spread[1]) / 1000,
        mean_s=None if spread is None else float(spread[2]) / 1000,
    )


_REQUESTS = TypeAdapter(tuple[Request, ...])


def read_requests(text: str) -> tuple[Request, ...]:
    """What the requests printed. Raises TestbedError when it cannot be read."""
    try:
        return _REQUESTS.validate_json(text)
    except ValidationError as error:
        raise TestbedError(f"requests: {text.strip()[-200:] or 'no word'}") from error
