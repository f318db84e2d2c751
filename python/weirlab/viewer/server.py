"""`weir view`: the pages of results below a directory, for the browser of whoever started it."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import hmac
import json
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlencode

import polars as pl
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from weirlab.errors import InputError, WeirlabError
from weirlab.plots.style import DARK, LIGHT
from weirlab.records import dimensions
from weirlab.report.page import content_policy, jinja2, style_sheet
from weirlab.results import Manifest, finite, read_json
from weirlab.viewer.grid import Answer, Column, Grid, Query, answered, grid_of, query_of
from weirlab.viewer.guard import Guard, deed_token, new_token
from weirlab.viewer.index import Index, cache_for
from weirlab.viewer.live import State
from weirlab.viewer.opened import Opened, UnknownError
from weirlab.viewer.watching import Watcher
from weirlab.working import stop

_HERE = resources.files("weirlab.viewer")
_COMPARED = ("run", "study", "search", "campaign")
_LISTED = (
    Column("path", "result"),
    Column("name", "scenario", facet=True),
    Column("kind", "kind", facet=True),
    Column("status", "status", facet=True),
    Column("started", "started (UTC)"),
    Column("seconds", "duration", kind="seconds"),
    Column("changes", "set", is_last=True),
    Column("replicates", "replicates", kind="number", shown=False),
    Column("version", "version", facet=True, shown=False),
    Column("host", "host", facet=True, shown=False),
    Column("remark", "remark", shown=False),
)
_REPORTED = ("study", "search", "search-study", "campaign")
"""Kinds that have a report of what is there while they grow."""
_STOPS = {
    "run": "Stop and keep finished replicates",
    "path": "Stop and keep what was measured",
    "rapid": "Stop and keep what was measured",
    "trace": "Stop; nothing is kept",
    "reproduce": "Stop; only finished measurements of real stacks are kept",
}
_LEAST_COMPARED, _MOST_COMPARED = 2, 20
_MOST_BODY = 10_000
_BEAT_S = 15.0
_CLOSED_S = 20.0
"""Without a page that listens, after which a viewer ends that was started for some work."""


class Viewer:
    """The pages. `app` answers requests that have passed the guard."""

    def __init__(self, root: Path, *, token: str, port: int, cache: Path | None = None) -> None:
        self.index = Index(root, cache=cache)
        self.watcher = Watcher(self.index)
        self.opened = Opened(self.index)
        self.is_ending: Callable[[], bool] = lambda: False
        self._deed = deed_token(token)
        self._static = _static_files()
        self._tables: dict[str, tuple[object, pl.DataFrame]] = {}
        routes = [
            Route("/", self._answering(self._listing), methods=["GET"]),
            Route("/results.{form:str}", self._answering(self._listing), methods=["GET"]),
            Route("/result/{path:path}", self._answering(self._result), methods=["GET"]),
            Route("/data/{path:path}", self._answering(self._data), methods=["GET"]),
            Route("/state/{path:path}", self._answering(self._state), methods=["GET"]),
            Route("/compare", self._answering(self._compare), methods=["GET"]),
            Route("/compare.{form:str}", self._answering(self._compare), methods=["GET"]),
            Route("/events", self._events, methods=["GET"]),
            Route("/static/{name:str}", self._file, methods=["GET"]),
            Route("/stop/{path:path}", self._stop, methods=["POST"]),
        ]
        handlers = {HTTPException: self._refused}
        self.app = Guard(Starlette(routes=routes, exception_handlers=handlers), port=port, token=token)

    # --- pages

    def _listing(self, request: Request) -> Response:
        index = self.index
        grid = Grid(index.frame, _LISTED, text="text", values=index.values, order=("started", True))
        pairs = _pairs(request)
        query, answer, fault = _asked(grid, pairs)
        form = request.path_params.get("form", "html")
        if form in ("json", "csv"):
            return _exported(answer, fault, form, "results")
        count = "" if answer is None else _count(answer, "result")
        if not index.is_complete:
            count += "; still reading the directory"
        choices = row_links = None
        if answer is not None:
            rows = answer.rows.select("path", "kind", "status").rows()
            choices = [
                path if kind in _COMPARED and status != "running" else "" for path, kind, status in rows
            ]
            row_links = [f"/result/{_quoted(path)}" for path, *_ in rows]
        return self._page(
            "grid.html.j2",
            title="Results",
            lead=str(index.root),
            here="/",
            query=query,
            answer=answer,
            fault=fault,
            count=count,
            plain="",
            nothing="Nothing here matches."
            if index.frame.height
            else "There are no results below this directory yet.",
            generation=index.generation,
            example="loss > 1 %, seconds > 10",
            choices=choices,
            row_links=row_links,
            forms=_forms("/results", query.address(page=query.page)),
        )

    def _result(self, request: Request) -> Response:
        path, form = self._named(request.path_params["path"])
        if form == "html":
            if not self.index.finds(path) and self._may_come(path):
                reply = self._note(
                    path, "Starting …", ["Nothing is kept there yet; this page looks again."], status=202
                )
                reply.headers["Refresh"] = "1"
                return reply
            self.index.look_at(path)
        directory = self.opened.directory(path)
        kind = self.index.kind_of(path)
        if form == "json":
            return JSONResponse(finite(_document(directory, path)))
        if form == "csv":
            return _csv(_quantities(directory), path)
        if kind == "store":
            return RedirectResponse(f"/data/{_quoted(path)}", 303)
        if kind == "damaged":
            raise InputError(f"{path}: manifest.json cannot be read; the result is damaged")
        if kind in ("stability", "rank"):
            return self._written(directory, path)
        status = self.index.status_of(path)
        if status == "running" and "report" not in request.query_params:
            return self._live(path, kind)
        if not (directory / "manifest.json").exists():
            return self._note(
                path,
                f"There is no report of this {kind} yet",
                [f"It has kept nothing until now: a {kind} is written when it ends."],
                status=404,
            )
        page = self.opened.page(path, self._bar(path), self._bar_style())
        return self._drawing(path) if page is None else _framed(page)

    def _live(self, path: str, kind: str) -> Response:
        quoted = _quoted(path)
        return self._page(
            "live.html.j2",
            title=self._title(path),
            kind=kind,
            path=path,
            state=self._state_of(path),
            state_address=f"/state/{quoted}",
            events_address=f"/events?{urlencode({'path': path})}",
            stop_address=f"/stop/{quoted}",
            report_address=f"/result/{quoted}?report=1",
            deed=self._deed,
            stop_words=_STOPS.get(kind, "Stop and keep what is finished"),
            has_report=kind in _REPORTED,
            light=LIGHT,
            crumbs=self._crumbs(path),
            forms=[("JSON", f"/state/{quoted}.json"), ("CSV", f"/state/{quoted}.csv")],
        )

    def _state(self, request: Request) -> Response:
        path, form = self._named(request.path_params["path"])
        state = self._state_of(path)
        if form == "csv":
            table = state["table"]
            columns = {
                title: [row[place] for row in table["rows"]] for place, title in enumerate(table["columns"])
            }
            return _csv(pl.DataFrame(columns), path)
        return JSONResponse(finite(state))

    def _state_of(self, path: str) -> State:
        lock, live = self.opened.live(path)
        with lock:
            state = live.state()
        if not state["goes_on"]:
            self.index.look_at(path)
            if path in self.index:  # else its last words are all that is left
                self.opened.forget_live(path)
        return state

    def _data(self, request: Request) -> Response:
        path, form = self._named(request.path_params["path"])
        directory = self.opened.directory(path)
        is_store = self.index.kind_of(path) == "store"
        names = (
            ["studies", "runs"]
            if is_store
            else sorted(f.stem for f in (directory / "tables").glob("*.parquet"))
        )
        if not names:
            raise UnknownError(f"{path}: this result has no tables")
        name = request.query_params.get("table", "studies" if is_store else "")
        if name not in names:
            if name:
                raise UnknownError(f"{path}: there is no table '{name}'; there are {', '.join(names)}")
            return self._tables_of(path, directory, names, form, _pairs(request))
        frame = (
            self._stored(path, directory, name)
            if is_store
            else self._table(directory / "tables" / f"{name}.parquet")
        )
        grid = grid_of(frame)
        pairs = _pairs(request)
        query, answer, fault = _asked(grid, pairs, fixed=("table",))
        if form in ("json", "csv"):
            return _exported(answer, fault, form, name)
        here = f"/data/{_quoted(path)}"
        return self._page(
            "grid.html.j2",
            title=f"{name}: {self._title(path)}",
            lead="",
            here=here,
            query=query,
            answer=answer,
            fault=fault,
            count="" if answer is None else _count(answer, "row"),
            plain=urlencode({"table": name}),
            nothing="No row matches." if frame.height else "This table has no rows.",
            generation=0,
            example="events > 1000",
            choices=None,
            row_links=None,
            links=[(each, f"{here}?{urlencode({'table': each})}") for each in names if each != name]
            if is_store
            else [],
            crumbs=[
                *self._crumbs(path)[:-1],
                (path, f"/result/{_quoted(path)}"),
                ("tables", here),
                (name, ""),
            ],
            forms=_forms(here, query.address(page=query.page)),
        )

    def _tables_of(
        self, path: str, directory: Path, names: Sequence[str], form: str, pairs: Sequence[tuple[str, str]]
    ) -> Response:
        rows = []
        for name in names:
            try:
                rows.append(
                    (
                        name,
                        pl.scan_parquet(directory / "tables" / f"{name}.parquet")
                        .select(pl.len())
                        .collect()
                        .item(),
                    )
                )
            except (pl.exceptions.PolarsError, OSError):
                rows.append((name, None))
        if form == "json":
            return JSONResponse({"tables": [{"table": name, "rows": many} for name, many in rows]})
        if form == "csv":
            return _csv(pl.DataFrame(rows, schema=["table", "rows"], orient="row"), f"{path}-tables")
        here = f"/data/{_quoted(path)}"
        frame = pl.DataFrame(rows, schema={"table": pl.String, "rows": pl.Int64}, orient="row")
        frame = frame.sort(pl.col("rows").fill_null(1) == 0, "table")
        grid = Grid(frame, (Column("table", "table"), Column("rows", "rows", kind="number")))
        query, answer, fault = _asked(grid, pairs)
        crumbs = [*self._crumbs(path)[:-1], (path, f"/result/{_quoted(path)}"), ("tables", "")]
        return self._page(
            "grid.html.j2",
            title=f"Tables of {self._title(path)}",
            lead="",
            here=here,
            query=query,
            answer=answer,
            fault=fault,
            count="" if answer is None else _count(answer, "table"),
            plain="",
            nothing="No table matches.",
            generation=0,
            example="rows > 0",
            row_links=[
                f"{here}?{urlencode({'table': name})}"
                for name in ([] if answer is None else answer.rows.get_column("table"))
            ],
            crumbs=crumbs,
            forms=[("JSON", f"{here}.json"), ("CSV", f"{here}.csv")],
        )

    def _compare(self, request: Request) -> Response:
        paths = [_plain(path) for path in request.query_params.getlist("r")]
        if not _LEAST_COMPARED <= len(paths) <= _MOST_COMPARED or len(set(paths)) < len(paths):
            raise InputError(
                f"{len(paths)} results: choose {_LEAST_COMPARED} to {_MOST_COMPARED} of one kind"
            )
        form = request.path_params.get("form", "html")
        if form in ("json", "csv"):
            documents = _differences([self.opened.directory(path) for path in paths])
            return (
                JSONResponse(finite({"differences": documents}))
                if form == "json"
                else _csv(pl.DataFrame(documents, infer_schema_length=None), "comparison")
            )
        pairs = urlencode([("r", path or ".") for path in paths])
        bar = self._render(
            "bar.html.j2",
            crumbs=[("comparison", "")],
            forms=[("JSON", f"/compare.json?{pairs}"), ("CSV", f"/compare.csv?{pairs}")],
        )
        page = self.opened.comparison(paths, bar, self._bar_style())
        return self._drawing("the comparison") if page is None else _framed(page)

    def _written(self, directory: Path, path: str) -> Response:
        """A page that was written with its result, which has nothing else. Its scripts run only where they
        are those of this version."""
        text = (directory / "report.html").read_text(encoding="utf-8", errors="replace")
        head = f"<style>{self._bar_style()}</style>"
        return _framed(
            text.replace("</head>", f"{head}</head>", 1).replace("<body>", f"<body>{self._bar(path)}", 1)
        )

    # --- what is no page

    async def _stop(self, request: Request) -> Response:
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > _MOST_BODY:
                raise HTTPException(413)
        given = parse_qs(body.decode("utf-8", "replace")).get("token", [""])
        if not hmac.compare_digest(given[0].encode("utf-8", "surrogateescape"), self._deed.encode()):
            return await self._failed(
                request, WeirlabError("the page is of another viewer; load it again"), 403
            )
        path = _plain(request.path_params["path"])
        try:
            await run_in_threadpool(lambda: stop(self.opened.directory(path)))
        except WeirlabError as error:
            return await self._failed(request, error, 404 if isinstance(error, UnknownError) else 409)
        if "application/json" in request.headers.get("accept", ""):
            return JSONResponse({"stopped": path})
        return RedirectResponse(f"/result/{_quoted(path)}", 303)

    async def _events(self, request: Request) -> Response:
        path = request.query_params.get("path")
        if path is not None:
            path = _plain(path)
            if not await run_in_threadpool(self.index.finds, path):
                return JSONResponse({"error": f"{path}: there is no such result"}, 404)

        async def news() -> AsyncIterator[str]:
            with self.watcher.listening(path) as queue:
                yield f"retry: 1000\n\nevent: index\ndata: {self.index.generation}\n\n"
                spoke = time.monotonic()
                while not self.is_ending():
                    try:
                        name, text = await asyncio.wait_for(queue.get(), 0.5)
                    except TimeoutError:
                        if time.monotonic() - spoke < _BEAT_S:
                            continue
                        name, text = "beat", ""
                    spoke = time.monotonic()
                    yield f"event: {name}\ndata: {json.dumps(text) if name == 'result' else text}\n\n"

        return StreamingResponse(news(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    async def _file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._static:
            raise HTTPException(404)
        content, _, kind = self._static[name]
        return Response(
            content, media_type=kind, headers={"Cache-Control": "private, max-age=31536000, immutable"}
        )

    # --- how pages are made

    def _answering(self, answer: Callable[[Request], Response]) -> Callable[[Request], object]:
        """What answers in a thread, and turns what goes wrong into a page."""

        async def answering(request: Request) -> Response:
            try:
                return await run_in_threadpool(answer, request)
            except UnknownError as error:
                return await self._failed(request, error, 404)
            except (WeirlabError, OSError) as error:
                return await self._failed(request, error, 422)
            except Exception as error:
                _note_bug(error)
                bug = WeirlabError(f"this is a bug in weirlab: {type(error).__name__}: {error}")
                return await self._failed(request, bug, 500)

        return answering

    async def _refused(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        words = {404: "there is no such page", 405: "this needs another method than " + request.method}
        return await self._failed(request, WeirlabError(words.get(status, "that is not answered")), status)

    async def _failed(self, request: Request, error: Exception, status: int) -> Response:
        text = str(error)
        wants_json = "application/json" in request.headers.get("accept", "")
        if (
            wants_json
            or request.url.path.endswith((".json", ".csv"))
            or request.url.path.startswith("/state/")
        ):
            return JSONResponse({"error": text}, status)
        notes = [str(note) for note in getattr(error, "__notes__", [])]
        return self._page(
            "note.html.j2",
            title="Not found" if status == 404 else "This cannot be shown",
            lines=[*text.splitlines(), *notes],
            status=status,
        )

    def _note(self, path: str, title: str, lines: Sequence[str], *, status: int = 200) -> Response:
        return self._page("note.html.j2", title=title, lines=lines, crumbs=self._crumbs(path), status=status)

    def _drawing(self, path: str) -> Response:
        reply = self._page(
            "note.html.j2",
            title="Being drawn …",
            lines=[
                f"The report of {path or 'this result'} is being drawn; this page loads it when it is ready."
            ],
            status=202,
        )
        reply.headers["Refresh"] = "1"
        return reply

    def _page(self, template: str, *, status: int = 200, **words: object) -> Response:
        nonce = secrets.token_urlsafe(16)
        policy = (
            f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'self'; connect-src 'self'; "
            "img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        )
        text = self._render(template, nonce=nonce, **words)
        return Response(
            text, status, {"Content-Security-Policy": policy}, media_type="text/html; charset=utf-8"
        )

    def _render(self, template: str, **words: Any) -> str:
        known: dict[str, object] = {
            "crumbs": [],
            "forms": [],
            "links": [],
            "choices": None,
            "row_links": None,
        }
        scripts = {name: f"/static/{name}?{digest}" for name, (_, digest, _) in self._static.items()}
        return str(
            _templates()
            .get_template(template)
            .render(known | {"scripts": scripts, "style": scripts["viewer.css"]} | words)
        )

    def _bar(self, path: str) -> str:
        quoted = _quoted(path)
        forms = [("Tables", f"/data/{quoted}")] if (self.index.root / path / "tables").is_dir() else []
        forms += [("JSON", f"/result/{quoted}.json"), ("CSV", f"/result/{quoted}.csv")]
        return self._render("bar.html.j2", crumbs=self._crumbs(path), forms=forms)

    @staticmethod
    @functools.cache
    def _bar_style() -> str:
        lines = (_HERE / "static" / "viewer.css").read_text(encoding="utf-8").splitlines()
        return "\n".join(line for line in lines if line.startswith(".bar"))

    def _crumbs(self, path: str) -> list[tuple[str, str]]:
        parts = path.split("/") if path else ["."]
        above = ["/".join(parts[: place + 1]) for place in range(len(parts) - 1)]
        known = [
            (part, f"/result/{_quoted(full)}" if full in self.index else "")
            for part, full in zip(parts, above, strict=False)
        ]
        return [*known, (parts[-1], "")]

    def _title(self, path: str) -> str:
        return path.rpartition("/")[2] or self.index.root.name

    def _named(self, text: str) -> tuple[str, str]:
        """A result, and the form in which it is asked for."""
        path = _plain(text)
        if "\0" in path:
            raise UnknownError("there is no result of such a name")
        for form in ("json", "csv"):
            stem = path.removesuffix(f".{form}")
            if stem != path and not self.index.finds(path) and self.index.finds(_plain(stem)):
                return _plain(stem), form
        return path, "html"

    def _may_come(self, path: str) -> bool:
        """Whether there is an empty directory, in which a result is about to be kept."""
        place = self.index.root / path
        inside = (
            place.resolve().is_relative_to(self.index.root) and place.is_dir() and ".." not in path.split("/")
        )
        return inside and not any(place.iterdir())

    def _table(self, file: Path) -> pl.DataFrame:
        try:
            about = file.stat()
            return self._kept(str(file), (about.st_mtime_ns, about.st_size), lambda: _named_rows(file))
        except (OSError, pl.exceptions.PolarsError) as error:
            raise InputError(f"{file.name}: not a table that can be read: {error}") from error

    def _stored(self, path: str, directory: Path, name: str) -> pl.DataFrame:
        from weirlab.store import Store
        from weirlab.studies.stored import asked

        mark = self.opened.mark(path)
        return self._kept(
            f"{directory}/{name}",
            mark,
            lambda: asked(Store.open(directory), f"SELECT * FROM {name}", stale=True),
        )

    def _kept(self, name: str, mark: object, make: Callable[[], pl.DataFrame]) -> pl.DataFrame:
        """A table, read once while it stays the same; the last few are kept."""
        if name in self._tables and self._tables[name][0] == mark:
            return self._tables[name][1]
        frame = make()
        self._tables[name] = (mark, frame)
        while len(self._tables) > 4:
            self._tables.pop(next(iter(self._tables)))
        return frame


def serve(
    root: Path,
    *,
    port: int = 0,
    page: str = "",
    ready: Callable[[str], None],
    needed: Callable[[], bool] | None = None,
) -> None:
    """Serve results on loopback until Ctrl-C.

    Args:
        root: The directory below which they lie.
        port: 0: any that is free.
        page: The result that the address leads to; empty: the list.
        ready: Called with the address, with the token, when the server listens.
        needed: Asked whether the work for which the viewer was started goes on. When it does not, and no page
            is open any more, the server ends.

    Raises:
        InputError: There is no such directory, or the port is taken.
    """
    root = root.resolve()
    if not root.is_dir():
        raise InputError(f"{root}: no such directory")
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
    except OSError as error:
        listening.close()
        raise InputError(f"port {port} of 127.0.0.1 cannot be used: {error.strerror}") from error
    token = new_token()
    number = listening.getsockname()[1]
    viewer = Viewer(root, token=token, port=number, cache=cache_for(root))
    config = uvicorn.Config(
        viewer.app,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=2,
        limit_concurrency=200,
    )
    server = uvicorn.Server(config)
    viewer.is_ending = lambda: server.should_exit
    viewer.watcher.start()

    async def work() -> None:
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        place = f"result/{_quoted(page)}" if page else ""
        ready(f"http://127.0.0.1:{number}/{place}?{urlencode({'token': token})}")
        while not serving.done():
            await asyncio.wait([serving], timeout=1.0)
            if needed is not None and _is_left(viewer, needed):
                server.should_exit = True
        await serving

    try:
        asyncio.run(work())
    finally:
        viewer.watcher.end()
        viewer.opened.close()
        viewer.watcher.join(5)
        listening.close()


def _is_left(viewer: Viewer, needed: Callable[[], bool]) -> bool:
    if needed():
        viewer.watcher.left_at = time.monotonic()
        return False
    return viewer.watcher.ears == 0 and time.monotonic() - viewer.watcher.left_at > _CLOSED_S


def _named_rows(file: Path) -> pl.DataFrame:
    """A table, with the names of what its ids stand for next to these."""
    frame = pl.read_parquet(file)
    for key, dimension in dimensions().items():
        names = file.with_name(f"{dimension}.parquet")
        if key in frame.columns and file != names and names.exists():
            known = pl.read_parquet(names).select(key, pl.col("name").alias(f"{key}_name"))
            frame = frame.join(known, on=key, how="left", maintain_order="left")
            place = frame.columns.index(key) + 1
            others = [name for name in frame.columns if name != f"{key}_name"]
            frame = frame.select(*others[:place], f"{key}_name", *others[place:])
    return frame


def _asked(
    grid: Grid, pairs: Sequence[tuple[str, str]], fixed: Sequence[str] = ()
) -> tuple[Query, Answer | None, str]:
    """What is asked, the answer, and why there is none."""
    query = query_of(pairs, grid, fixed)
    try:
        return query, answered(grid, query), ""
    except InputError as error:
        return query, None, str(error)


def _exported(answer: Answer | None, fault: str, form: str, name: str) -> Response:
    if answer is None:
        return JSONResponse({"error": fault}, 422)
    if form == "json":
        return JSONResponse(finite(_jsonable(answer.document())))
    return Response(answer.csv(), headers=_as_file(name), media_type="text/csv; charset=utf-8")


def _jsonable(document: dict[str, object]) -> dict[str, object]:
    loaded: dict[str, object] = json.loads(json.dumps(document, default=str))
    return loaded


def _csv(frame: pl.DataFrame, name: str) -> Response:
    return Response(frame.write_csv(), headers=_as_file(name), media_type="text/csv; charset=utf-8")


def _as_file(name: str) -> dict[str, str]:
    stem = "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in name).strip("-")
    return {"Content-Disposition": f'inline; filename="{stem or "table"}.csv"'}


def _count(answer: Answer, noun: str) -> str:
    nouns = noun if answer.total == 1 else f"{noun}s"
    if answer.matching == answer.total:
        return f"{answer.total:,} {nouns}"
    return f"{answer.matching:,} of {answer.total:,} {nouns}"


def _forms(here: str, address: str) -> list[tuple[str, str]]:
    behind = f"?{address}" if address else ""
    return [("JSON", f"{here}.json{behind}"), ("CSV", f"{here}.csv{behind}")]


def _pairs(request: Request) -> list[tuple[str, str]]:
    return [(str(key), str(value)) for key, value in request.query_params.multi_items()]


def _document(directory: Path, path: str) -> dict[str, object]:
    """What is known of a result, as JSON values."""
    found: dict[str, object] = {"path": path}
    for key, name in (("manifest", "manifest.json"), ("result", "result.json")):
        found[key] = read_json(directory / name) if (directory / name).exists() else None
    found["tables"] = sorted(file.stem for file in (directory / "tables").glob("*.parquet"))
    return found


def _quantities(directory: Path) -> pl.DataFrame:
    """The quantities of a result that can be compared."""
    from weirlab.comparisons import compared
    from weirlab.stats import mean_interval

    kind = Manifest.read(directory).kind
    if kind not in _COMPARED:
        raise UnknownError(
            f"{directory.name}: a {kind} has no list of quantities; its tables are offered as CSV"
        )
    rows = []
    for each in compared([directory])[0].quantities:
        low, high = each.bounds or (None, None)
        interval = mean_interval(list(each.values.values())) if each.bounds is None else None
        mean = (
            (low + high) / 2 if low is not None and high is not None else interval.mean if interval else None
        )
        if interval is not None:
            low, high = interval.low, interval.high
        rows.append((each.name, each.at, each.unit, mean, low, high, len(each.values)))
    schema = {
        "quantity": pl.String,
        "at": pl.String,
        "unit": pl.String,
        "mean": pl.Float64,
        "low": pl.Float64,
        "high": pl.Float64,
        "values": pl.Int64,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def _differences(places: Sequence[Path]) -> list[dict[str, object]]:
    from weirlab.comparisons import compared
    from weirlab.report.compare import changes, difference_document

    return [difference_document(*each) for each in changes(compared(places))]


def _framed(page: str) -> Response:
    policy = f"{content_policy()}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    return Response(page, headers={"Content-Security-Policy": policy}, media_type="text/html; charset=utf-8")


def _plain(path: str) -> str:
    return "" if path in (".", "") else path


def _quoted(path: str) -> str:
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


def _note_bug(error: BaseException) -> None:
    import os
    import sys
    import traceback

    sys.stderr.write(f"weir view: {type(error).__name__}: {error}\n")
    if os.environ.get("WEIRLAB_DEBUG"):
        traceback.print_exception(error)
