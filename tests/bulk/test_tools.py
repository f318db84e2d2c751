"""What iperf3 and ping print, as numbers."""

import json
import shutil

import pytest

from weirlab.campaigns.hosts import ThisMachine, output
from weirlab.campaigns.reading import read_ping, read_transfer
from weirlab.campaigns.real import _address
from weirlab.errors import TestbedError

PING = """PING 198.18.0.2 (198.18.0.2) 56(84) bytes of data.
64 bytes from 198.18.0.2: icmp_seq=1 ttl=64 time=165 ms
64 bytes from 198.18.0.2: icmp_seq=3 ttl=64 time=23.4 ms
64 bytes from 198.18.0.2: icmp_seq=3 ttl=64 time=23.9 ms (DUP!)

--- 198.18.0.2 ping statistics ---
3 packets transmitted, 2 received, +1 duplicates, 33.3333% packet loss, time 2003ms
rtt min/avg/max/mdev = 23.400/94.223/165.046/70.823 ms
"""


@pytest.mark.skipif(shutil.which("ssh") is None, reason="needs the program ssh")
@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("me@far.example.net", "far.example.net"),
        ("ssh://me@far.example.net:2222", "far.example.net"),
        ("me@2001:db8::7", "2001:db8::7"),
        ("box", "192.0.2.9"),
    ],
)
def test_connections_go_where_ssh_would_go(host, address, tmp_path):
    config = tmp_path / "config"
    config.write_text("Host box\n  HostName 192.0.2.9\n  Port 2222\n  User me\n")
    assert _address(host, str(config)) == address


@pytest.mark.skipif(shutil.which("ssh") is None, reason="needs the program ssh")
def test_what_ssh_says_of_a_host_that_it_does_not_take_comes_with_its_name(tmp_path):
    with pytest.raises(TestbedError, match=r"^far: ssh ended with code \d+: .*no-config"):
        _address("far", str(tmp_path / "no-config"))


def test_words_in_another_encoding_are_read_as_far_as_they_go():
    assert output(ThisMachine(), ["printf", r"gr\374n 5 ms\n"], 10) == "gr\ufffdn 5 ms\n"


def transfer(**changes):
    stream = {
        "sender": {"retransmits": 3, "mean_rtt": 165_400, "max_snd_cwnd": 70_000},
        "receiver": {"bytes": 1_000_000, "seconds": 8.0},
    }
    cpu = {f"{side}_{part}": 1.5 for side in ("host", "remote") for part in ("total", "user", "system")}
    told = {
        "intervals": [
            {
                "streams": [
                    {"bits_per_second": rate / 2, "rtt": 165_000, "snd_cwnd": 14_480, "retransmits": i}
                    for i in range(2)
                ],
                "sum": {"bits_per_second": rate},
            }
            for rate in (1e6, 2e6)
        ],
        "end": {"streams": [stream, stream], "cpu_utilization_percent": cpu},
    }
    return json.dumps({**told, **changes})


def test_answers_are_counted_once_and_silence_is_loss():
    pings = read_ping(PING)
    assert pings.sent == 3
    assert pings.rtts_s == pytest.approx((0.165, 0.0234))
    assert (pings.min_s, pings.mean_s) == (pytest.approx(0.0234), pytest.approx(0.094223))


def test_no_answer_at_all_is_a_result():
    pings = read_ping(
        "\n--- 198.18.0.2 ping statistics ---\n4 packets transmitted, 0 received, 100% packet loss\n"
    )
    assert (pings.sent, pings.rtts_s, pings.mean_s) == (4, (), None)


def test_a_ping_that_could_not_start_is_a_failure():
    with pytest.raises(TestbedError, match="Network is unreachable"):
        read_ping("ping: connect: Network is unreachable")


def test_a_transfer_tells_of_each_stream():
    told = read_transfer(transfer())
    assert [stream.received_bytes for stream in told.streams] == [1_000_000, 1_000_000]
    assert told.streams[0].mean_rtt_s == pytest.approx(0.1654)
    assert told.intervals_bps == (1e6, 2e6)
    second = told.streams[1]
    assert second.rates_bps == (5e5, 1e6)
    assert second.rtts_s == pytest.approx((0.165, 0.165))
    assert second.cwnds_bytes == (14_480, 14_480)
    assert second.interval_retransmits == (1, 1)
    assert told.sender_cpu_percent == {"total": 1.5, "user": 1.5, "system": 1.5}


SERVER = """Accepted connection from 198.18.0.1, port 51466
[ ID] Interval           Transfer     Bitrate
[  5]   0.00-1.00   sec  1.25 MBytes  10485 Kbits/sec
[  8]   0.00-1.00   sec   107 KBytes   877 Kbits/sec
[SUM]   0.00-1.00   sec  1.36 MBytes  11362 Kbits/sec
- - - - - - - - - - - - - - - - - - - - - - - - -
[  5]   1.00-2.00   sec  0.00 Bytes  0.00 Kbits/sec
[  8]   1.00-2.00   sec  1.25 MBytes  10460 Kbits/sec
[SUM]   1.00-2.00   sec  1.25 MBytes  10460 Kbits/sec
- - - - - - - - - - - - - - - - - - - - - - - - -
[  5]   2.00-2.04   sec  47.1 KBytes  9646 Kbits/sec
[  8]   2.00-2.04   sec  47.1 KBytes  9646 Kbits/sec
- - - - - - - - - - - - - - - - - - - - - - - - -
[  5]   0.00-2.04   sec  1.30 MBytes  5345 Kbits/sec                  receiver
[  8]   0.00-2.04   sec  1.40 MBytes  5757 Kbits/sec                  receiver
"""


def test_goodput_of_single_seconds_is_what_the_receiver_printed():
    first, second = read_transfer(transfer(server_output_text=SERVER)).streams
    assert first.received_bps == pytest.approx((10_485e3, 0))
    assert second.received_bps == pytest.approx((877e3, 10_460e3))
    assert first.rates_bps == (5e5, 1e6)


@pytest.mark.parametrize("text", ["", SERVER.replace("[  8]", "[  5]"), SERVER.replace("Kbits", "Mbits")])
def test_a_receiver_that_does_not_tell_of_all_streams_tells_nothing(text):
    assert [stream.received_bps for stream in read_transfer(transfer(server_output_text=text)).streams] == [
        (),
        (),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (transfer(error="unable to connect"), "unable to connect"),
        (transfer(end={}), "cannot be read"),
        ("", "cannot be read"),
        ("[]", "cannot be read"),
    ],
)
def test_a_transfer_that_failed_says_why(text, message):
    with pytest.raises(TestbedError, match=message):
        read_transfer(text)
