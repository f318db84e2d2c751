"""The viewer: results in a browser, listed, opened, compared and watched while they grow. Needs the extra
`weirlab[view]`.

Importing this package imports neither a server nor pages.
"""

from __future__ import annotations

from weirlab.foreign import optional


def require_packages() -> None:
    """Raise MissingCapability, which says how to get them, unless all packages that it needs are there."""
    from weirlab.report import require_packages as require_report

    for name in ("starlette", "uvicorn"):
        optional(name, who="the viewer needs", package=name.capitalize(), extra="view")
    require_report()
