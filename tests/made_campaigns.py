"""A small campaign, and measurements of it that follow from what is asked for."""

from weirlab.campaigns import Measurement
from weirlab.campaigns.measurement import Pings, Request, Stream, Transfer

FILE = """weirlab: 1
name: small
testbed: {kind: netns, path: emulator}
network: {kind: path, ends: [a, b], link: {rate: 10 Mbit/s, delay: 1 ms}}
traffic:
  bulk:
    from: a
    to: b
    streams: 2
    source: {kind: bulk}
    transport: {kind: tcp, congestion_control: {kind: reno}}
  ping: {from: a, to: b, source: {kind: ping, every: 1 s}}
campaign:
  cycles: 3
  cycle: [{name: loaded, run: [bulk, ping], for: 20 s}, {name: unloaded, run: ping, for: 10 s}]
study: {factors: {traffic.bulk.streams: [1, 2]}}
"""
WITH_REQUESTS = (
    FILE.replace(
        "\ncampaign:",
        "\n  requests: {from: a, to: b, source: {kind: requests, every: 2 s}}\ncampaign:",
    )
    .replace("run: [bulk, ping], for: 20 s", "run: [bulk, ping, requests], for: 20 s")
    .replace("run: ping,", "run: [ping, requests],")
)
"""The same with small requests beside both."""


def measured(what, path, seed):
    """A measurement whose numbers follow from what is asked for."""
    streams = 0 if what.load is None else what.load.streams
    cpu = {"total": 2.0 * streams, "user": 0.0, "system": 2.0 * streams}
    # Round trips of the streams fall from 20 ms to 12 ms in the first two of six intervals.
    rtts = (0.020, 0.016, 0.012, 0.012, 0.012, 0.012)
    each = Stream(1_000_000 * streams, 8.0, 0, 0.01, 20_000, rtts_s=rtts)
    rtt = 0.010 + 0.002 * streams
    return Measurement(
        transfer=Transfer((each,) * streams, (1e6,), cpu, cpu) if streams else None,
        pings=Pings(4, (0.010, rtt), (0.010 + rtt) / 2, 0.010),
        began=0.0,
        seconds=what.duration_s,
        busy_cpus=0.5,
        foreign_cpus=0.0,
        degraded=(),
        lateness_p99_s=None,
        lost=0,
        dropped=seed % 2,
        requests=None if what.requests is None else requests(what.duration_s, 0.010 + 0.005 * streams),
    )


def requests(duration_s, rtt_s):
    """Requests every 2 s: early ones three times slower than the round trip, the last lost, those in the last
    four seconds answered after it.
    """
    times = range(0, round(duration_s), 2)
    early = [Request(t, 3 * rtt_s, 3 * rtt_s) for t in times if t < duration_s - 4]
    late = [Request(t, rtt_s, 2 * rtt_s) for t in times if t >= duration_s - 4]
    return (*early, *late[:-1], Request(late[-1].asked_s, rtt_s, None))


class StopsAfter:
    """Measures so many times, then raises."""

    def __init__(self, count, error):
        self.left, self.error, self.places = count, error, []

    def __call__(self, what, path, seed):
        if self.left == 0:
            raise self.error
        self.left -= 1
        self.places.append(seed)
        return measured(what, path, seed)
