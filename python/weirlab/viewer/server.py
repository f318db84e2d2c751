"""`weir view`: what answers the requests for pages of results below a directory.

One file: each route is a method, and all of them share what is opened.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

import polars as pl
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from weirlab.errors import InputError, WeirlabError
from weirlab.plots.style import LIGHT
from weirlab.results import finite
from weirlab.viewer.exports import COMPARED, differences, document, named_rows, quantities
from weirlab.viewer.following import State
from weirlab.viewer.grid import Answer, Column, Grid, Query, answered, grid_of, query_of
from weirlab.viewer.guard import Guard, deed_token
from weirlab.viewer.index import Index
from weirlab.viewer.opened import Opened, UnknownError
from weirlab.viewer.pages import Pages, framed, quoted
from weirlab.viewer.watching import Watcher
from weirlab.working import stop

_LISTED = (
    Column("path", "result"),
    Column("name", "scenario", facet=True),
    Column("kind", "kind", facet=True),
    Column("status", "status", facet=True),
    Column("started", "started (UTC)"),
    Column("seconds", "duration", kind="seconds"),
    Column("remark", "remark", is_last=True),
    Column("changes", "set", is_last=True),
    Column("replicates", "replicates", kind="number", shown=False),
    Column("version", "version", facet=True, shown=False),
    Column("host", "host", facet=True, shown=False),
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


class Viewer:
    """The pages. `app` answers requests that have passed the guard."""

    def __init__(self, root: Path, *, token: str, port: int, cache: Path | None = None) -> None:
        self.index = Index(root, cache=cache)
        self.watcher = Watcher(self.index)
        self.opened = Opened(self.index)
        self.is_ending: Callable[[], bool] = lambda: False
        self._deed = deed_token(token)
        self.pages = Pages(self.index)
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
        nothing = (
            "Nothing here matches."
            if index.frame.height
            else "There are no results below this directory yet."
        )

        def of_rows(rows: pl.DataFrame) -> dict[str, object]:
            known = rows.select("path", "kind", "status").rows()
            choices = [
                path if kind in COMPARED and status != "running" else "" for path, kind, status in known
            ]
            return {"choices": choices, "row_links": [f"/result/{quoted(path)}" for path, *_ in known]}

        return self._grid(
            Grid(index.frame, _LISTED, text="text", values=index.values, order=("started", True)),
            _pairs(request),
            request.path_params.get("form", "html"),
            "results",
            of_rows,
            noun="result",
            more="" if index.is_complete else "; still reading the directory",
            title="Results",
            lead=str(index.root),
            here="/",
            exports="/results",
            nothing=nothing,
            generation=index.generation,
            example="loss > 1 %, seconds > 10",
        )

    def _result(self, request: Request) -> Response:
        path, form = self._named(request.path_params["path"])
        if form == "html":
            if not self.index.finds(path) and self._may_come(path):
                reply = self.pages.note(
                    path, "Starting …", ["Nothing is kept there yet; this page looks again."], status=202
                )
                reply.headers["Refresh"] = "1"
                return reply
            self.index.look_at(path)
        directory = self.opened.directory(path)
        kind = self.index.kind_of(path)
        if form == "json":
            return JSONResponse(finite(document(directory, path)))
        if form == "csv":
            return _csv(quantities(directory), path)
        if kind == "store":
            return RedirectResponse(f"/data/{quoted(path)}", 303)
        if kind == "damaged":
            raise InputError(f"{path}: manifest.json cannot be read; the result is damaged")
        if kind in ("stability", "rank"):
            return self._written(directory, path)
        status = self.index.status_of(path)
        if status == "running" and "report" not in request.query_params:
            return self._live(path, kind)
        if not (directory / "manifest.json").exists():
            return self.pages.note(
                path,
                f"There is no report of this {kind} yet",
                [f"It has kept nothing until now: a {kind} is written when it ends."],
                status=404,
            )
        page = self.opened.page(path, self.pages.bar(path), self.pages.bar_style())
        return self.pages.drawing(path) if page is None else framed(page)

    def _live(self, path: str, kind: str) -> Response:
        place = quoted(path)
        return self.pages.page(
            "live.html.j2",
            title=self.pages.title(path),
            kind=kind,
            path=path,
            state=self._state_of(path),
            state_address=f"/state/{place}",
            events_address=f"/events?{urlencode({'path': path})}",
            stop_address=f"/stop/{place}",
            report_address=f"/result/{place}?report=1",
            deed=self._deed,
            stop_words=_STOPS.get(kind, "Stop and keep what is finished"),
            has_report=kind in _REPORTED,
            light=LIGHT,
            crumbs=self.pages.crumbs(path),
            forms=[("JSON", f"/state/{place}.json"), ("CSV", f"/state/{place}.csv")],
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
        here = f"/data/{quoted(path)}"
        return self._grid(
            grid,
            _pairs(request),
            form,
            name,
            fixed=("table",),
            noun="row",
            title=f"{name}: {self.pages.title(path)}",
            here=here,
            plain=urlencode({"table": name}),
            nothing="No row matches." if frame.height else "This table has no rows.",
            example=next(
                (f"{column.title} > 0" for column in reversed(grid.columns) if column.kind == "number"), ""
            ),
            links=[(each, f"{here}?{urlencode({'table': each})}") for each in names if each != name]
            if is_store
            else [],
            crumbs=[
                *self.pages.crumbs(path)[:-1],
                (path, f"/result/{quoted(path)}"),
                ("tables", here),
                (name, ""),
            ],
        )

    def _tables_of(
        self, path: str, directory: Path, names: Sequence[str], form: str, pairs: Sequence[tuple[str, str]]
    ) -> Response:
        rows = [(name, _height(directory / "tables" / f"{name}.parquet")) for name in names]
        if form == "json":
            return JSONResponse({"tables": [{"table": name, "rows": many} for name, many in rows]})
        if form == "csv":
            return _csv(pl.DataFrame(rows, schema=["table", "rows"], orient="row"), f"{path}-tables")
        here = f"/data/{quoted(path)}"
        frame = pl.DataFrame(rows, schema={"table": pl.String, "rows": pl.Int64}, orient="row")
        frame = frame.sort(pl.col("rows").fill_null(1) == 0, "table")
        grid = Grid(frame, (Column("table", "table"), Column("rows", "rows", kind="number")))
        return self._grid(
            grid,
            pairs,
            "html",
            "",
            lambda rows: {"row_links": [f"{here}?{urlencode({'table': name})}" for name in rows["table"]]},
            noun="table",
            title=f"Tables of {self.pages.title(path)}",
            here=here,
            nothing="No table matches.",
            example="rows > 0",
            crumbs=[*self.pages.crumbs(path)[:-1], (path, f"/result/{quoted(path)}"), ("tables", "")],
            forms=[("JSON", f"{here}.json"), ("CSV", f"{here}.csv")],
        )

    def _grid(
        self,
        grid: Grid,
        pairs: Sequence[tuple[str, str]],
        form: str,
        name: str,
        of_rows: Callable[[pl.DataFrame], dict[str, object]] = lambda _: {},
        *,
        noun: str,
        here: str,
        exports: str = "",
        fixed: Sequence[str] = (),
        more: str = "",
        **words: object,
    ) -> Response:
        """What is asked of a grid, as a page, or as a file called `name`. `of_rows` gives what the page needs
        for each row that is shown; `words` are those of the page that are its own."""
        query = query_of(pairs, grid, fixed)
        try:
            answer, fault = answered(grid, query), ""
        except InputError as error:
            answer, fault = None, str(error)
        if form in ("json", "csv"):
            return _exported(answer, fault, form, name)
        known: dict[str, Any] = {
            "lead": "",
            "plain": "",
            "generation": 0,
            "forms": _forms(exports or here, query),
        }
        counted = "" if answer is None else _count(answer, noun)
        own = {} if answer is None else of_rows(answer.rows)
        about = {"here": here, "query": query, "answer": answer, "fault": fault, "count": counted + more}
        return self.pages.page("grid.html.j2", **known | about | own | words)

    def _compare(self, request: Request) -> Response:
        paths = [_plain(path) for path in request.query_params.getlist("r")]
        if not _LEAST_COMPARED <= len(paths) <= _MOST_COMPARED or len(set(paths)) < len(paths):
            raise InputError(
                f"{len(paths)} results: choose {_LEAST_COMPARED} to {_MOST_COMPARED} of one kind"
            )
        form = request.path_params.get("form", "html")
        if form in ("json", "csv"):
            documents = differences([self.opened.directory(path) for path in paths])
            return (
                JSONResponse(finite({"differences": documents}))
                if form == "json"
                else _csv(pl.DataFrame(documents, infer_schema_length=None), "comparison")
            )
        pairs = urlencode([("r", path or ".") for path in paths])
        bar = self.pages.render(
            "bar.html.j2",
            crumbs=[("comparison", "")],
            forms=[("JSON", f"/compare.json?{pairs}"), ("CSV", f"/compare.csv?{pairs}")],
        )
        page = self.opened.comparison(paths, bar, self.pages.bar_style())
        return self.pages.drawing("the comparison") if page is None else framed(page)

    def _written(self, directory: Path, path: str) -> Response:
        """A page that was written with its result, which has nothing else. Its scripts run only where they
        are those of this version."""
        text = (directory / "report.html").read_text(encoding="utf-8", errors="replace")
        head = f"<style>{self.pages.bar_style()}</style>"
        return framed(
            text.replace("</head>", f"{head}</head>", 1).replace("<body>", f"<body>{self.pages.bar(path)}", 1)
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
        return RedirectResponse(f"/result/{quoted(path)}", 303)

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
        if name not in self.pages.static:
            raise HTTPException(404)
        content, _, kind = self.pages.static[name]
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
        return self.pages.page(
            "note.html.j2",
            title="Not found" if status == 404 else "This cannot be shown",
            lines=[*text.splitlines(), *notes],
            status=status,
        )

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
            return self._kept(str(file), (about.st_mtime_ns, about.st_size), lambda: named_rows(file))
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


def _height(file: Path) -> int | None:
    """The rows of a table; None where it cannot be read."""
    try:
        return int(pl.scan_parquet(file).select(pl.len()).collect().item())
    except (pl.exceptions.PolarsError, OSError):
        return None


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


def _forms(here: str, query: Query) -> list[tuple[str, str]]:
    address = query.address(page=query.page)
    behind = f"?{address}" if address else ""
    return [("JSON", f"{here}.json{behind}"), ("CSV", f"{here}.csv{behind}")]


def _pairs(request: Request) -> list[tuple[str, str]]:
    return [(str(key), str(value)) for key, value in request.query_params.multi_items()]


def _plain(path: str) -> str:
    return "" if path in (".", "") else path


def _note_bug(error: BaseException) -> None:
    import os
    import sys
    import traceback

    sys.stderr.write(f"weir view: {type(error).__name__}: {error}\n")
    if os.environ.get("WEIRLAB_DEBUG"):
        traceback.print_exception(error)
