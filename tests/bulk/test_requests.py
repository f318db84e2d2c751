"""Small HTTP requests: the program at both ends, over loopback, and what is made of its words."""

import contextlib
import json
import shutil
import socket
import struct
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from weirlab.campaigns import request_program, tools
from weirlab.campaigns.hosts import ThisMachine, listening, output
from weirlab.campaigns.measurement import Request
from weirlab.campaigns.reading import read_requests
from weirlab.errors import TestbedError

PROGRAM = [sys.executable, "-I", "-S", request_program.__file__]
HERE = "127.0.0.1"


@pytest.fixture
def port():
    with socket.create_server((HERE, 0)) as probe:
        return probe.getsockname()[1]


def ask(port, *more, count=3, every="0.02", timeout="5"):
    words = ["ask", HERE, str(port), "--timeout", timeout, "--count", str(count), "--every", every, *more]
    return read_requests(output(ThisMachine(), [*PROGRAM, *words], 20))


def serving(port, *more, timeout="5"):
    words = ["serve", HERE, str(port), "--timeout", timeout, "--for", "20", *more]
    return listening(ThisMachine(), [*PROGRAM, *words], request_program.LISTENS, 20)


@contextlib.contextmanager
def silent_server(answer):
    """Takes connections, says what `answer` gives, and keeps them open until the end."""
    kept = []

    def serve(listener):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                kept.append(connection)
                connection.sendall(answer)

    with socket.create_server((HERE, 0)) as listener:
        thread = threading.Thread(target=partial(serve, listener), daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()
    for connection in kept:
        connection.close()


def test_each_request_tells_of_its_handshake_and_its_answer(port):
    with serving(port):
        told = ask(port, count=5, every="0.05")
    assert len(told) == 5
    for place, request in enumerate(told):
        assert 0.05 * place <= request.asked_s < 0.05 * place + 1
        assert request.handshake_s > 0
        assert request.answer_s > 0


def test_an_answer_that_does_not_come_in_time_is_a_loss_and_holds_up_no_other():
    with silent_server(b"") as port:
        told = ask(port, count=4, every="0.02", timeout="1.5")
    assert [request.answer_s for request in told] == [None] * 4
    assert all(request.handshake_s > 0 for request in told)
    assert told[-1].asked_s < 1.5


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 404 Not Found\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n"], ids=["missing", "ssh"]
)
def test_what_is_no_answer_is_a_failure(answer):
    with silent_server(answer) as port, pytest.raises(TestbedError, match="is no answer to a request"):
        ask(port)


def test_nobody_there_is_a_failure_with_the_address(port):
    with pytest.raises(TestbedError, match=f"{HERE} port {port}: Connection refused"):
        ask(port)


def test_a_server_that_cannot_listen_says_why(port):
    with (
        serving(port),
        pytest.raises(TestbedError, match=r"did not start to listen: .*Address already in use"),
        serving(port),
    ):
        pytest.fail("two servers listen")


def test_a_server_hangs_up_on_who_never_asks_and_on_who_asks_too_long(port):
    with serving(port, timeout="0.3"):
        with socket.create_connection((HERE, port), timeout=10) as idle:
            idle.sendall(b"GET /")
            assert idle.recv(10) == b""
        with socket.create_connection((HERE, port), timeout=10) as long:
            long.sendall(b"x" * 4096)
            assert long.recv(10) == b""
        assert ask(port, count=1)[0].answer_s is not None


@pytest.fixture(scope="module")
def certified():
    """Options of both ends for TLS, with a certificate of this address."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the program openssl")
    with tools._certified(HERE) as (certificate, key):
        yield ["--certificate", certificate], ["--certificate", certificate, "--private-key", key]
    assert not Path(key).exists()


def test_over_tls_its_handshake_is_told_beside_that_of_tcp(port, certified):
    client, server = certified
    with serving(port, *server):
        told = ask(port, *client, count=5)
    assert len(told) == 5
    for request in told:
        assert min(request.handshake_s, request.tls_s, request.answer_s) > 0


def test_without_tls_there_is_no_such_handshake(port):
    with serving(port):
        assert [request.tls_s for request in ask(port)] == [None] * 3


def test_a_server_that_is_not_the_certificates_holder_is_a_failure(port, certified):
    _, server = certified
    with (
        tools._certified(HERE) as (certificate, _),
        serving(port, *server),
        pytest.raises(TestbedError, match=f"{HERE} port {port}: .*verify failed"),
    ):
        ask(port, "--certificate", certificate)


def test_who_speaks_no_tls_or_hangs_up_keeps_nobody_else_from_an_answer(port, certified):
    client, server = certified
    with serving(port, *server):
        with socket.create_connection((HERE, port), timeout=10) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
        with socket.create_connection((HERE, port), timeout=10) as silent:
            assert ask(port, *client, count=1)[0].answer_s is not None
            silent.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert ask(port, *client, count=1)[0].answer_s is not None


def test_a_handshake_of_tls_that_does_not_come_in_time_is_a_loss(certified):
    client, _ = certified
    with silent_server(b"") as port:
        told = ask(port, *client, count=2, timeout="1")
    assert [(request.tls_s, request.answer_s) for request in told] == [(None, None)] * 2
    assert all(request.handshake_s > 0 for request in told)


def test_a_server_ends_by_itself(port):
    words = ["serve", HERE, str(port), "--timeout", "5", "--for", "0.2"]
    done = subprocess.run([*PROGRAM, *words], capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout == "listening\n"


@pytest.mark.parametrize("text", ["", "[{}]", '[{"asked_s": "soon", "handshake_s": 1, "answer_s": 1}]'])
def test_what_cannot_be_read_is_a_failure(text):
    with pytest.raises(TestbedError, match="requests: "):
        read_requests(text)


def test_a_request_without_an_answer_is_read_as_one():
    told = [{"asked_s": 0.5, "handshake_s": 0.01, "answer_s": None}]
    assert read_requests(json.dumps(told)) == (Request(0.5, 0.01, None),)
