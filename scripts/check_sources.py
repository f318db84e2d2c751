"""Check that every source named beside a formula stands in docs/sources.md.

Collects the lines ``Source: KEY ...`` from code and fails on a key that docs/sources.md does not list. A key
is what stands before the first comma or semicolon, such as ``RFC 9971`` or ``Jain 1984``.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINE = re.compile(r"\bSource: (?P<text>.+)")
LISTED = re.compile(r"^- \*\*(?P<key>[^*]+)\*\*", re.MULTILINE)


def main() -> int:
    known = set(LISTED.findall((ROOT / "docs/sources.md").read_text(encoding="utf-8")))
    unknown: list[str] = []
    used: dict[str, int] = {}
    files = [*ROOT.glob("crates/*/src/**/*.rs"), *ROOT.glob("python/**/*.py")]
    for file in sorted(files):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
            if (found := LINE.search(line)) is None:
                continue
            for text in found["text"].split(";"):
                key = text.split(",")[0].strip().rstrip(".")
                if key in known:
                    used[key] = used.get(key, 0) + 1
                else:
                    unknown.append(f"{file.relative_to(ROOT)}:{number}: '{key}' is not in docs/sources.md")
    for line in unknown:
        print(line, file=sys.stderr)
    print(f"{sum(used.values())} formulas name {len(used)} of {len(known)} sources")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
