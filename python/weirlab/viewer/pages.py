"""How pages of the viewer are made: their templates, styles and scripts, and what may be loaded by them."""

from __future__ import annotations

import functools
import hashlib
import secrets
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from weirlab.plots.style import DARK, LIGHT
from weirlab.report.page import content_policy, jinja2, style_sheet
from weirlab.viewer.index import Index

_HERE = resources.files("weirlab.viewer")


class Pages:
    """Pages around the results of an index."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self.static = _static_files()
        """Content, digest and type of each file that pages load."""

    def note(self, path: str, title: str, lines: Sequence[str], *, status: int = 200) -> Response:
        return self.page("note.html.j2", title=title, lines=lines, crumbs=self.crumbs(path), status=status)

    def drawing(self, path: str) -> Response:
        reply = self.page(
            "note.html.j2",
            title="Being drawn …",
            lines=[
                f"The report of {path or 'this result'} is being drawn; this page loads it when it is ready."
            ],
            status=202,
        )
        reply.headers["Refresh"] = "1"
        return reply

    def page(self, template: str, *, status: int = 200, **words: object) -> Response:
        nonce = secrets.token_urlsafe(16)
        policy = (
            f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'self'; connect-src 'self'; "
            "img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        )
        text = self.render(template, nonce=nonce, **words)
        return Response(
            text, status, {"Content-Security-Policy": policy}, media_type="text/html; charset=utf-8"
        )

    def render(self, template: str, **words: Any) -> str:
        known: dict[str, object] = {
            "crumbs": [],
            "forms": [],
            "links": [],
            "choices": None,
            "row_links": None,
        }
        scripts = {name: f"/static/{name}?{digest}" for name, (_, digest, _) in self.static.items()}
        return str(
            _templates()
            .get_template(template)
            .render(known | {"scripts": scripts, "style": scripts["viewer.css"]} | words)
        )

    def bar(self, path: str) -> str:
        place = quoted(path)
        forms = [("Tables", f"/data/{place}")] if (self._index.root / path / "tables").is_dir() else []
        forms += [("JSON", f"/result/{place}.json"), ("CSV", f"/result/{place}.csv")]
        return self.render("bar.html.j2", crumbs=self.crumbs(path), forms=forms)

    @staticmethod
    @functools.cache
    def bar_style() -> str:
        lines = (_HERE / "static" / "viewer.css").read_text(encoding="utf-8").splitlines()
        return "\n".join(line for line in lines if line.startswith(".bar"))

    def crumbs(self, path: str) -> list[tuple[str, str]]:
        parts = path.split("/") if path else ["."]
        above = ["/".join(parts[: place + 1]) for place in range(len(parts) - 1)]
        known = [
            (part, f"/result/{quoted(full)}" if full in self._index else "")
            for part, full in zip(parts, above, strict=False)
        ]
        return [*known, (parts[-1], "")]

    def title(self, path: str) -> str:
        return path.rpartition("/")[2] or self._index.root.name


def framed(page: str) -> Response:
    policy = f"{content_policy()}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    return Response(page, headers={"Content-Security-Policy": policy}, media_type="text/html; charset=utf-8")


def quoted(path: str) -> str:
    return quote(path or ".")


@functools.cache
def _templates() -> Any:
    templates = jinja2()
    texts = {
        entry.name: entry.read_text(encoding="utf-8")
        for entry in (_HERE / "templates").iterdir()
        if entry.name.endswith(".j2")
    }
    return templates.Environment(
        loader=templates.DictLoader(texts),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=templates.StrictUndefined,
    )


def _static_files() -> Mapping[str, tuple[bytes, str, str]]:
    """Content, digest and type of each file that pages load."""

    def colors(roles: Mapping[str, str]) -> str:
        return " ".join(f"--w-{role}: {color};" for role, color in roles.items())

    own = _HERE / "static"
    style = (
        f":root {{ {colors(LIGHT)} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {colors(DARK)} }} }}\n"
        + style_sheet()
        + (own / "viewer.css").read_text(encoding="utf-8")
    )
    found = {"viewer.css": (style.encode(), "text/css; charset=utf-8")}
    for name, place in (
        ("viewer.js", own),
        ("live.js", own),
        ("vega.js", resources.files("weirlab.report") / "static"),
    ):
        found[name] = ((place / name).read_bytes(), "text/javascript; charset=utf-8")
    return {
        name: (content, hashlib.sha256(content).hexdigest()[:16], kind)
        for name, (content, kind) in found.items()
    }
