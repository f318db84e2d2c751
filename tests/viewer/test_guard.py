"""Who may ask the viewer, and for what."""

import json
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

PAGES = [
    "/",
    "/result/low",
    "/data/low",
    "/data/low?table=flows",
    "/compare?r=low&r=high",
    "/results.json",
    "/events",
]


@pytest.mark.parametrize("path", PAGES)
def test_nobody_gets_anything_without_the_token(viewer, path):
    for token in ("", "wrong", viewer.token[:-1], viewer.token + "x", "ä"):
        if token == "ä":
            status, _, content = viewer.ask(path, token="", Cookie="weirlab-1=\xe4; ;;=")
        else:
            status, _, content = viewer.ask(path, token=token)
        assert status == 403
        assert "low" not in content


def test_a_wrong_token_in_the_address_gives_no_cookie(viewer):
    status, headers, _ = viewer.ask("/?token=wrong", token="")
    assert status == 403
    assert "set-cookie" not in {name.lower() for name in headers}


def test_the_address_that_is_printed_becomes_a_cookie_that_scripts_cannot_read(viewer):
    status, headers, _ = viewer.ask(f"/data/low?table=flows&token={viewer.token}", token="")
    assert (status, headers["location"]) == (303, "/data/low?table=flows")
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite" in cookie
    status, _, content = viewer.ask("/", token="", Cookie=cookie.partition(";")[0])
    assert status == 200
    assert viewer.token not in content


def test_the_way_in_leads_to_no_other_host(viewer):
    _, headers, _ = viewer.ask(f"//evil.example/?token={viewer.token}", token="")
    assert headers["location"].startswith("/evil.example")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1", "localhost", ""]
)
def test_a_foreign_host_name_is_refused_even_with_the_token(viewer, host):
    status, _, content = viewer.ask("/", Host=host)
    assert status == 400
    assert "low" not in content


def test_the_name_localhost_is_its_own(viewer):
    assert viewer.ask("/", Host=f"localhost:{urlsplit(viewer.base).port}")[0] == 200


@pytest.mark.parametrize("path", [*PAGES[:-1], "/nothing", "/static/viewer.js", "/result/damaged"])
def test_every_reply_has_a_strict_policy(viewer, path):
    _, headers, _ = viewer.ask(path)
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe-eval" not in policy
    assert "'unsafe-inline'" not in re.sub(r"style-src 'unsafe-inline'", "", policy)
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers


def test_scripts_have_another_nonce_each_time(viewer):
    first, second = (
        re.findall(r"nonce-([\w-]+)", viewer.ask("/")[1]["content-security-policy"]) for _ in range(2)
    )
    assert first
    assert first != second


@pytest.mark.parametrize(
    "path",
    [
        "/result/../../etc/passwd",
        "/result/..%2f..%2fetc%2fpasswd",
        "/result/%2e%2e/%2e%2e/etc",
        "/result//etc",
        "/result/%2Fetc",
        "/result/low/../../..",
        "/result/low/tables",
        "/result/no%20result",
        "/result/low%00",
        "/data/..%2f..?table=x",
        "/data/low?table=..%2f..%2fmanifest",
        "/data/low?table=/etc/passwd",
        "/state/../low",
        "/static/..%2fserver.py",
        "/static/%2e%2e%2fserver.py",
        "/compare?r=low&r=..%2f..",
    ],
)
def test_no_address_leaves_the_results(viewer, path):
    status, _, content = viewer.ask(path)
    assert status in (202, 404, 422)
    assert not any(word in content for word in ("root:", "Traceback", "import"))


def test_no_link_is_followed_out_of_the_directory(tmp_path, results, serve):
    root = tmp_path / "shown"
    root.mkdir()
    (root / "linked").symlink_to(results / "low")
    for name in ("tables-linked", "file-linked"):
        (root / name).mkdir()
        for file in ("manifest.json", "scenario.yaml", "result.json"):
            (root / name / file).write_bytes((results / "low" / file).read_bytes())
    (root / "tables-linked" / "tables").symlink_to(results / "low" / "tables")
    secret = tmp_path / "secret.yaml"
    secret.write_text("weirlab: 1\nname: a-secret\n")
    (root / "file-linked" / "scenario.yaml").unlink()
    (root / "file-linked" / "scenario.yaml").symlink_to(secret)
    (root / "manifest-linked").mkdir()
    (root / "manifest-linked" / "manifest.json").symlink_to(results / "low" / "manifest.json")
    with serve(root) as viewer:
        viewer.wait_for(2)
        assert {row["path"] for row in viewer.json("/results.json")["rows"]} == {
            "tables-linked",
            "file-linked",
        }
        for path in ("/result/linked", "/result/manifest-linked"):
            assert viewer.ask(path)[0] == 404
        for path in ("/result/tables-linked", "/data/tables-linked?table=flows", "/result/file-linked"):
            status, _, content = viewer.ask(path)
            assert status == 422
            assert "which is not followed" in content
            assert "a-secret" not in content


def test_a_store_outside_is_not_read(tmp_path, results, serve):
    root = tmp_path / "shown"
    (root / "study").mkdir(parents=True)
    for file in ("manifest.json", "scenario.yaml", "study.json"):
        (root / "study" / file).write_bytes((results / "study" / file).read_bytes())
    with serve(root) as viewer:
        viewer.wait_for(1)
        status, _, content = viewer.ask("/state/study")
        assert status == 422
        assert "outside of" in json.loads(content)["error"]


def test_nothing_is_changed_by_a_get(viewer):
    status, _, content = viewer.ask("/stop/low")
    assert status == 405
    assert "another method" in content


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        ("", {}, 403),
        ("token=wrong", {}, 403),
        ("token={token}", {}, 403),
        ("token={deed}", {"Origin": "http://evil.example"}, 403),
        ("token={deed}", {"Origin": "null"}, 403),
        ("token={deed}", {"Sec_Fetch_Site": "cross-site"}, 403),
        ("token={deed}", {"Sec_Fetch_Site": "same-site"}, 403),
        ("token={deed}", {}, 409),
        ("token=" + "x" * 20_000, {}, 413),
    ],
)
def test_work_is_stopped_only_by_a_page_of_the_viewer(viewer, body, headers, status):
    from weirlab.viewer.guard import deed_token

    body = body.format(token=viewer.token, deed=deed_token(viewer.token))
    found, _, content = viewer.ask(
        "/stop/low", method="POST", body=body, Accept="application/json", **headers
    )
    assert found == status
    if status == 409:
        assert "nothing works there" in json.loads(content)["error"]


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_refused(viewer, method):
    assert viewer.ask("/", method=method)[0] == 405


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/result/damaged", "manifest.json cannot be read"),
        ("/result/nothing", "there is no such result"),
        ("/compare?r=low", "1 results: choose 2 to 20"),
        ("/compare?r=low&r=search", "compare results of one kind"),
        ("/?page=x", "a number from 1 is wanted"),
        ("/?where=nonsense", "write a column"),
        ("/?where=unknown+%3E+1", "there is no &#39;unknown&#39; here"),
        ("/?sort=unknown", "there is no such column"),
        ("/elsewhere", "there is no such page"),
    ],
)
def test_mistakes_are_pages_that_say_what_is_wrong(viewer, path, words):
    status, headers, content = viewer.ask(path)
    assert headers["content-type"].startswith("text/html")
    assert words in content
    assert "Traceback" not in content
    assert status in (200, 404, 422)


def test_it_listens_on_loopback_alone(viewer):
    port = f":{urlsplit(viewer.base).port:04X}"
    listening = []
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        if table.exists():
            rows = [line.split() for line in table.read_text().splitlines()[1:]]
            listening += [row[1] for row in rows if row[3] == "0A" and row[1].endswith(port)]
    assert set(listening) <= {f"0100007F{port}"}
