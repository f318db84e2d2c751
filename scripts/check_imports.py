"""Check that the files of weir-sim import each other in no circle.

Reads the `use` lines of every file, tests excepted. A file may name what its own parent holds: the parts of
a module are one unit; everything else points one way. Prints each circle with the imports that make it.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "crates" / "weir-sim" / "src"
USE = re.compile(
    r"^\s*(?:pub(?:\([^)]*\))? )?use (?P<path>\w+(?:::\w+)*)(?:::\{(?P<names>[^}]*)\})?", re.MULTILINE
)

Graph = dict[str, set[str]]


def name_of(file: Path) -> str:
    """The path of a module as code writes it, without `crate`."""
    parts = file.relative_to(ROOT).with_suffix("").parts
    return "::".join(parts[:-1] if parts[-1] == "mod" else parts)


def imports(files: dict[str, Path]) -> Graph:
    """Which module imports which."""
    graph: Graph = {}
    for module, file in files.items():
        text = file.read_text(encoding="utf-8").split("#[cfg(test)]")[0]
        own = [] if module == "lib" else module.split("::")
        graph[module] = set()
        for found in USE.finditer(text):
            path = found["path"].split("::")
            base = own
            if path[0] == "crate":
                base, path = [], path[1:]
            while path and path[0] in ("super", "self"):
                base = base[:-1] if path[0] == "super" else base
                path = path[1:]
            for name in re.findall(r"\w+(?:::\w+)*", found["names"] or "") or [""]:
                whole = [*base, *path, *name.split("::")]
                prefixes = ("::".join(whole[:length]) for length in range(len(whole), 0, -1))
                target = next((prefix for prefix in prefixes if prefix in files), None)
                if target not in (None, module) and not module.startswith(f"{target}::"):
                    graph[module].add(str(target))
    return graph


def circles(graph: Graph) -> list[set[str]]:
    """Sets of modules each of which leads to all others (Tarjan's strongly connected components)."""
    found: list[set[str]] = []
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []

    def visit(module: str) -> None:
        order[module] = low[module] = len(order)
        stack.append(module)
        for other in graph[module]:
            if other not in order:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], order[other])
        if low[module] == order[module]:
            place = stack.index(module)
            component = set(stack[place:])
            del stack[place:]
            if len(component) > 1:
                found.append(component)

    for module in graph:
        if module not in order:
            visit(module)
    return found


def main() -> int:
    files = {name_of(file): file for file in sorted(ROOT.rglob("*.rs"))}
    graph = imports(files)
    found = circles(graph)
    for circle in found:
        print("these modules of weir-sim import each other in a circle:", file=sys.stderr)
        for module in sorted(circle):
            print(f"  {module} -> {', '.join(sorted(graph[module] & circle))}", file=sys.stderr)
    if not found:
        print(f"{len(files)} modules of weir-sim import each other in no circle")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
