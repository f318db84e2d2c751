"""A way from an emulated path to a network: here a namespace of its own, an Internet with one host."""

from __future__ import annotations

import http.server
import os
import shlex
import shutil
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from weirlab.errors import MissingCapability
from weirlab.testbed.namespaces import Namespace
from weirlab.testbed.way_out import RESOLVER

pytestmark = pytest.mark.live

HOME, HOST, NAME = "192.0.2.77", "192.0.2.78", "host.example"
OTHER = "203.0.113.77"
"""A second address of the machine."""
BODY = b"far away"


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def nameservers() -> list[str]:
    words = [line.split() for line in Path("/etc/resolv.conf").read_text(encoding="utf-8").splitlines()]
    return [each[1] for each in words if len(each) > 1 and each[0] == "nameserver"]


def answered(question: bytes) -> bytes:
    """The answer of a resolver that knows one name and says nothing of any other. RFC 1035, section 4."""
    name = b"".join(bytes([len(part)]) + part.encode() for part in NAME.split(".")) + b"\0"
    end = question.index(b"\0", 12) + 5
    is_known = question[12:end].lower().startswith(name) and question[end - 4 : end - 2] == b"\0\1"
    head = question[:2] + struct.pack("!HHHHH", 0x8180, 1, int(is_known), 0, 0)
    record = b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 60, 4) + socket.inet_aton(HOST)
    return head + question[12:end] + (record if is_known else b"")


def with_address(namespace: Namespace, device: str, address: str, prefix: int) -> None:
    from pyroute2 import IPRoute

    def work() -> None:
        with IPRoute() as route:
            (index,) = route.link_lookup(ifname=device)
            route.addr("add", index=index, address=address, prefixlen=prefix)
            route.link("set", index=index, state="up")

    namespace.inside(work)


@pytest.fixture
def home():
    """A namespace with a default route to another one, where a host has a page and a resolver."""
    if shutil.which("slirp4netns") is None:
        pytest.skip("needs slirp4netns")
    resolver = next(iter(nameservers()), "127.0.0.1")
    if resolver.startswith("127.") or ":" in resolver:
        pytest.skip("the resolver of this machine is not one that a namespace can stand for")
    try:
        home, internet = Namespace(), Namespace()
    except MissingCapability as lack:
        pytest.skip(str(lack))
    from pyroute2 import IPRoute

    def connect() -> None:
        with IPRoute() as route:
            peer = {"ifname": "home", "net_ns_fd": internet.fd}
            route.link("add", ifname="uplink", kind="veth", peer=peer)

    home.inside(connect)
    for namespace in (home, internet):
        with_address(namespace, "lo", "127.0.0.1", 8)
    with_address(home, "uplink", HOME, 24)
    with_address(internet, "home", HOST, 24)
    with_address(internet, "lo", resolver, 32)

    def go_out() -> None:
        with IPRoute() as route:
            route.route("add", dst="default", gateway=HOST)

    home.inside(go_out)
    page = internet.inside(lambda: http.server.ThreadingHTTPServer((HOST, 80), Page))
    names = internet.inside(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    names.bind((resolver, 53))

    def resolve() -> None:
        while question := names.recvfrom(512):
            if not question[0]:
                return
            names.sendto(answered(question[0]), question[1])

    threads = [threading.Thread(target=work, daemon=True) for work in (page.serve_forever, resolve)]
    for thread in threads:
        thread.start()
    yield home
    page.shutdown()
    page.server_close()
    ender = internet.inside(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    ender.sendto(b"", (resolver, 53))
    for thread in threads:
        thread.join(20)
    names.close()
    ender.close()
    home.close()
    internet.close()


PROGRAM = f"""
import time, urllib.request, socket
print(open('/etc/resolv.conf').read().strip())
began = time.monotonic()
print(socket.gethostbyname('{NAME}'), time.monotonic() - began)
print(urllib.request.urlopen('http://{NAME}/', timeout=20).read().decode())
"""


ATTEMPTS = f"""
import os, socket, sys
with open(sys.argv[1] + ".new", "w") as file:
    for address in ("{HOST}", "{HOME}", "{OTHER}", "127.0.0.1", "10.0.2.2"):
        try:
            socket.create_connection((address, 80), 5).close()
        except OSError as error:
            print(address, type(error).__name__, file=file)
        else:
            print(address, "reached", file=file)
os.rename(sys.argv[1] + ".new", sys.argv[1])
"""
LOW_PORTS = 1 << 10
"""CAP_NET_BIND_SERVICE. Source: Linux, capabilities(7)"""
CAPABILITIES = """
import contextlib, os, pathlib
for place in pathlib.Path("/proc").glob("[0-9]*"):
    with contextlib.suppress(OSError):  # processes of others end while this looks
        words = (place / "cmdline").read_bytes().split(b"\\0")
        status = dict(line.split(":", 1) for line in (place / "status").read_text().splitlines())
        if words[0].endswith(b"slirp4netns") and int(status["PPid"]) == os.getppid():
            print(status["CapEff"].strip())
"""


def emulate(namespace, *words):
    command = [sys.executable, "-m", "weirlab", "emulate", *words]
    return namespace.inside(lambda: subprocess.run(command, capture_output=True, text=True, timeout=60))


def test_a_name_is_resolved_and_its_page_fetched_through_the_path(home):
    done = emulate(home, "--delay", "60ms", "--internet", "--", sys.executable, "-c", PROGRAM)
    assert done.returncode == 0, done.stderr
    resolver, resolved, page = done.stdout.splitlines()
    assert resolver == f"nameserver {RESOLVER}"
    address, seconds = resolved.split()
    assert address == HOST
    assert float(seconds) >= 0.12, "question and answer cross the path"
    assert page == BODY.decode()


@pytest.mark.parametrize("end", ["near", "far"])
def test_programs_of_this_machine_itself_are_not_reached(home, end, tmp_path):
    with_address(home, "uplink", OTHER, 32)
    server = home.inside(lambda: http.server.ThreadingHTTPServer(("0.0.0.0", 80), Page))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    file = tmp_path / "answers"
    command = [sys.executable, "-c", ATTEMPTS, str(file)]
    wait = f"for i in $(seq 400); do test -e {file} && exit; sleep 0.1; done"
    ends = ["--", *command] if end == "near" else ["--far", shlex.join(command), "--", "sh", "-c", wait]
    try:
        emulate(home, "--delay", "1ms", "--internet", *ends)
    finally:
        server.shutdown()
        server.server_close()
        thread.join(20)
    answers = dict(line.split() for line in file.read_text().splitlines())
    assert answers.pop(HOST) == "reached"
    assert set(answers) == {HOME, OTHER, "127.0.0.1", "10.0.2.2"}
    assert "reached" not in answers.values(), answers


def test_slirp4netns_keeps_no_capability_that_it_does_not_need(home):
    helped = subprocess.run(["slirp4netns", "--help"], capture_output=True, text=True, check=False)
    if "--enable-sandbox" not in helped.stdout + helped.stderr:
        pytest.skip("needs a slirp4netns that has a sandbox")
    done = emulate(home, "--delay", "1ms", "--internet", "--", sys.executable, "-c", CAPABILITIES)
    assert done.returncode == 0, done.stderr
    assert [int(word, 16) & ~LOW_PORTS for word in done.stdout.split()] == [0]


def test_nothing_is_left_of_it_when_the_command_is_killed(home, tmp_path):
    waits = ["sh", "-c", "echo started; exec sleep 60"]
    command = [sys.executable, "-m", "weirlab", "emulate", "--delay", "1ms", "--internet", "--", *waits]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    victim = home.inside(lambda: subprocess.Popen(command, env=environment, stdout=subprocess.PIPE))
    with victim:
        assert victim.stdout.readline() == b"started\n"
        victim.kill()
    assert list(tmp_path.iterdir()) == []


def test_without_a_way_out_of_the_machine_it_says_so(home):
    alone = Namespace()
    done = emulate(alone, "--delay", "1ms", "--internet", "--", "true")
    alone.close()
    assert done.returncode != 0
    assert "no way out itself" in done.stderr


def test_paths_without_it_reach_nothing(home):
    program = f"import socket; socket.create_connection(('{HOST}', 80), 2)"
    done = emulate(home, "--delay", "1ms", "--", sys.executable, "-c", program)
    assert done.returncode != 0
    assert "unreachable" in done.stderr
