"""Results of every kind, a viewer of them in a process of its own, and its pages in a browser."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import parse_qs, quote, urlsplit

import pytest

import weirlab
from browsing import CHROMIUM
from made_campaigns import FILE as CAMPAIGN, measured
from weirlab.campaigns import run_campaign
from weirlab.scenario import loads

RUN = """
weirlab: 1
name: small
network: {kind: star, hosts: 3, link: {rate: 1 Gbit/s, delay: 1 us}}
queues: {out: {at: "switch-0->*", kind: drop-tail, limit: 30 kB}}
traffic:
  a: {from: "host-[0-1]", to: host-2, source: {kind: poisson, load: 60 %, frame_size: 1000 B}}
run: {duration: 2 ms}
record: {out: {queue: switch-0->host-2, every: 100 us}}
measure: {loss: {kind: loss-ratio, of: a}}
"""
STUDY = (
    RUN
    + """
study: {replicates: 2, factors: {traffic.a.source.load: [30 %, 45 %, 60 %], queues.out.limit: [10 kB, 30 kB]}}
"""
)
SEARCH = """
weirlab: 1
name: knee
testbed: {kind: sim, device: {kind: knee, capacity: 1 Mframe/s}}
traffic: {offered: {from: sender, to: receiver, source: {kind: constant, frame_size: 64 B}}}
search:
  vary: traffic.offered.source.rate
  between: 10 kframe/s .. 3 Mframe/s
  goals: {NDR: {loss: 0 %}, PDR: {loss: 0.5 %}}
  trial: {duration: 10 s}
"""


@dataclass
class Viewer:
    """A viewer that listens."""

    address: str
    """With the token."""
    process: subprocess.Popen[str]

    @property
    def base(self) -> str:
        parts = urlsplit(self.address)
        return f"http://{parts.netloc}"

    @property
    def token(self) -> str:
        return parse_qs(urlsplit(self.address).query)["token"][0]

    def ask(self, path, *, method="GET", token=None, body=None, **headers):
        """Status, headers and content of a reply; the right token is sent unless another one is given."""
        connection = http.client.HTTPConnection(urlsplit(self.address).netloc, timeout=300)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if token != "":
            sent["Authorization"] = f"Bearer {token or self.token}"
        try:
            connection.request(method, path, body=body, headers=sent)
            reply = connection.getresponse()
            return reply.status, dict(reply.getheaders()), reply.read().decode()
        finally:
            connection.close()

    def json(self, path):
        """The document at an address."""
        status, _, content = self.ask(path)
        assert status == 200, content
        return json.loads(content)

    def wait_for(self, results):
        """Until so many results are listed."""
        while self.json("/results.json")["total"] < results:
            pass
        return self

    def url(self, path):
        """An address that a browser opens."""
        return f"{self.base}{path}{'&' if '?' in path else '?'}token={quote(self.token)}"


@contextmanager
def served(root, **environment):
    """A viewer of a directory."""
    command = [sys.executable, "-m", "weirlab", "view", str(root)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), process.stderr.read()
        yield Viewer(address, process)
    finally:
        process.terminate()
        _, said = process.communicate(timeout=300)
        assert "bug" not in said, said
        assert "Traceback" not in said, said


@pytest.fixture
def serve():
    return served


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """Ten results of all kinds, two of them deeper down."""
    root = tmp_path_factory.mktemp("viewed")
    weirlab.run(loads(RUN), replicates=3, out=root / "low")
    weirlab.run(loads(RUN), replicates=3, assign={"traffic.a.source.load": "55 %"}, out=root / "high")
    weirlab.run(loads(RUN), seed=9, replicates=2, out=root / "deep" / "down" / "other seed")
    weirlab.study(loads(STUDY), out=root / "study", store=root / "store")
    weirlab.search(loads(SEARCH), out=root / "search")
    weirlab.search(loads(SEARCH), assign={"search.trial.duration": "5 s"}, out=root / "deep" / "search")
    campaign = root / "campaign"
    campaign.mkdir()
    run_campaign(loads(CAMPAIGN), campaign, measure=measured)
    subprocess.run(
        [sys.executable, "-m", "weirlab", "stability", "bcn", "--out", str(root / "margins")],
        check=True,
        capture_output=True,
    )
    damaged = root / "damaged"
    damaged.mkdir()
    (damaged / "manifest.json").write_text("{")
    (root / "no result").mkdir()
    return root


@pytest.fixture(scope="session")
def viewer(results):
    with served(results) as made:
        yield made.wait_for(10)


@pytest.fixture(scope="module")
def chromium():
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


def _is_end(text):
    """Whether a page complains that its viewer has ended, as it does when a test has."""
    return "ERR_CONNECTION_REFUSED" in text


@pytest.fixture
def browse(chromium):
    """Opens a page of a viewer, as the user who started it; nothing but the viewer may be asked, and nothing
    complained of."""

    def opened(viewer, path, width=1280, scheme="light", scripts=True):
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=scripts
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.on("console", lambda message: _is_end(message.text) or amiss.append(message.text))
        page.on("pageerror", lambda error: amiss.append(str(error)))
        page.on(
            "request",
            lambda request: request.url.startswith((viewer.base, "data:")) or amiss.append(request.url),
        )
        page.goto(viewer.url(path))
        assert "token" not in page.url
        while page.title().startswith("Being drawn") or page.locator("main").count() == 0:
            page.wait_for_timeout(100)
        page.wait_for_load_state()
        return page

    amiss, contexts = [], []
    yield opened
    for context in contexts:
        context.close()
    assert amiss == []
