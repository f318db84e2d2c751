"""Check the links of the built documentation and of all Markdown files.

    python scripts/check_links.py docs/site

Of the built pages: each local link leads to a file that exists, and its anchor to an element of that page;
each picture exists; and each page is at most three clicks from the first one, by links of the text alone.
Of Markdown files: each relative link leads to a file, and its anchor to a heading or a mark. External links
are not fetched: each is https, has a host, and does not end in the punctuation of a sentence.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
CLICKS = 3
UNLISTED = {"search.html", "genindex.html", "py-modindex.html"}
"""Pages that Sphinx makes, which no text links to."""
LINK = re.compile(r"(?<!`)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
CODE = re.compile(r"^(?P<mark>```+|~~~+).*?^(?P=mark)\s*$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


class Page(HTMLParser):
    """Ids and links of a built page; `text` has the links of its article."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.text: list[str] = []
        self._article = 0
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        self._article += tag == "article"
        target = values.get("href" if tag == "a" else "src" if tag == "img" else "")
        if target:
            self.links.append(target)
            if self._article and tag == "a":
                self.text.append(target)

    def handle_endtag(self, tag: str) -> None:
        self._article -= tag == "article"


def malformed(target: str) -> str | None:
    """What is wrong with an external link, if anything."""
    parts = urlsplit(target)
    if parts.scheme in ("mailto", "data"):
        return None
    if parts.scheme != "https":
        return "is not https"
    if "." not in parts.netloc:
        return "has no host"
    return "ends in punctuation" if target[-1] in ".,;:" else None


def faults_of_site(site: Path) -> Iterator[str]:
    pages = {file.resolve(): Page(file) for file in sorted(site.rglob("*.html"))}
    reached: dict[Path, set[Path]] = {}
    for file, page in pages.items():
        reached[file] = set()
        where = file.relative_to(site.resolve())
        for target in dict.fromkeys(page.links):
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                if fault := malformed(target):
                    yield f"{where}: {target}: {fault}"
                continue
            other = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if not other.exists():
                yield f"{where}: {target}: there is no such file"
            elif parts.fragment and other in pages and unquote(parts.fragment) not in pages[other].ids:
                yield f"{where}: {target}: no element has this id"
            if target in page.text and other in pages:
                reached[file].add(other)
    first = (site / "index.html").resolve()
    near = {first}
    for _ in range(CLICKS):
        near |= {other for file in near for other in reached[file]}
    for file in pages.keys() - near:
        if file.name not in UNLISTED and "_modules" not in file.parts:
            yield f"{file.relative_to(site.resolve())}: more than {CLICKS} clicks from the first page"


def headings(file: Path) -> set[str]:
    """Anchors that GitHub makes of the headings of a file, and those written by hand."""
    text = file.read_text(encoding="utf-8")
    slugs = {
        re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")
        for title in re.findall(r"^#+ +(.*)$", text, re.MULTILINE)
    }
    return slugs | set(re.findall(r'<a id="([^"]+)">', text))


def faults_of_markdown(file: Path) -> Iterator[str]:
    for found in LINK.finditer(CODE.sub("", file.read_text(encoding="utf-8"))):
        target = found["target"]
        parts = urlsplit(target)
        fault = None
        if parts.scheme:
            fault = malformed(target)
        else:
            other = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if not other.exists():
                fault = "there is no such file"
            elif parts.fragment and other.suffix == ".md" and parts.fragment not in headings(other):
                fault = "no heading has this anchor"
        if fault:
            yield f"{file.relative_to(ROOT)}: {target}: {fault}"


def main() -> int:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    made = (ROOT / "docs").glob("*.md")  # some are generated, and not listed
    files = sorted({*(ROOT / name for name in listed.stdout.split()), *made})
    found = [fault for file in files for fault in faults_of_markdown(file)]
    for site in sys.argv[1:]:
        found += faults_of_site(Path(site))
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
