"""The viewer: results in a browser, listed, opened, compared and watched while they grow. Needs the extra
`weirlab[view]`.

Importing this package imports neither a server nor pages.
"""

from __future__ import annotations

from importlib import import_module

from weirlab.errors import MissingCapability

__all__ = ["require_packages"]


def require_packages() -> None:
    """Raise MissingCapability, which says how to get them, unless all packages that it needs are there."""
    from weirlab.report import require_packages as require_report

    for name in ("starlette", "uvicorn"):
        try:
            import_module(name)
        except ImportError as error:
            raise MissingCapability(
                f"the viewer needs {name.capitalize()}, which is not installed. In a checkout of Weirlab:  "
                "pip install '.[view]'"
            ) from error
    require_report()
