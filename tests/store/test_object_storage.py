"""The store in object storage, against a server that honours create-if-absent."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress

import pytest
from polars.testing import assert_frame_equal

from weirlab.errors import InputError, WeirlabError
from weirlab.scenario import loads
from weirlab.store import Store
from weirlab.store.places import place_of
from weirlab.studies import run_study

pytest.importorskip("obstore")
pytest.importorskip("moto.server")

SCENARIO = """
weirlab: 1
name: small
network: {kind: star, hosts: 3, link: {rate: 1 Gbit/s, delay: 1 us}}
traffic:
  a: {from: "host-[0-1]", to: host-2, source: {kind: poisson, load: 30 %, frame_size: 1000 B}}
run: {duration: 1 ms, seed: 7}
measure: {loss: {kind: loss-ratio, of: a}}
study: {replicates: 2, factors: {traffic.a.source.load: [20 %, 45 %, 60 %]}}
"""


@pytest.fixture(scope="module")
def bucket():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    settings = {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": address,
        "AWS_ALLOW_HTTP": "true",
    }
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        give_up = time.monotonic() + 60
        while time.monotonic() < give_up:
            with suppress(OSError):
                urllib.request.urlopen(
                    urllib.request.Request(f"{address}/weir", method="PUT"), timeout=5
                ).close()
                break
            time.sleep(0.1)
        yield "s3://weir/lab"
    finally:
        server.terminate()
        server.wait()
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def test_an_object_is_made_once_and_never_changed(bucket):
    place = place_of(bucket + "/once")
    assert place.put_new("a/b", b"first")
    assert not place.put_new("a/b", b"second")
    assert place.get("a/b") == b"first"
    assert place.sizes("a/") == {"a/b": 5}
    place.delete("a/b")
    place.delete("a/b")
    with pytest.raises(FileNotFoundError):
        place.get("a/b")


def test_what_is_no_store_is_refused(bucket):
    with pytest.raises(InputError, match="no store of results"):
        Store.open(bucket + "/nothing")


def test_a_refusal_of_the_storage_says_what_to_set(bucket, monkeypatch):
    with pytest.raises(
        WeirlabError, match=r"s3://other/lab/a: cannot be written: .*; is there such a bucket\?"
    ):
        place_of("s3://other/lab").put_new("a", b"")
    monkeypatch.delenv("AWS_ALLOW_HTTP")
    with pytest.raises(WeirlabError, match=r"cannot be read: .*; for an endpoint with http:// set AWS_ALLOW"):
        place_of(bucket + "/plain").get("a")


def test_a_study_in_object_storage_finds_what_it_finds_in_a_directory(bucket, tmp_path):
    scenario = loads(SCENARIO)
    there = run_study(scenario, directory=tmp_path / "there", store=bucket + "/store", on="local:2")
    here = run_study(scenario, directory=tmp_path / "here")
    assert_frame_equal(there.measures, here.measures)
    for name in ("points", "runs", "measures"):
        one, other = (tmp_path / place / "tables" / f"{name}.parquet" for place in ("there", "here"))
        assert one.read_bytes() == other.read_bytes()
    store = Store.open(bucket + "/store")
    assert store.digest(store.documents("plans")[0]) == Store.open(tmp_path / "here" / "store").digest(
        store.documents("plans")[0]
    )
    assert store.compact()[1] == 1
    again = run_study(scenario, directory=tmp_path / "again", store=bucket + "/store")
    assert again.kept == 3
