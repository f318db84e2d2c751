"""Sphinx configuration: Markdown pages as they stand in docs/."""

import runpy
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert

for page in ("commands", "tables", "catalogue"):
    runpy.run_path(str(Path(__file__).parent.parent / f"scripts/generate_{page}.py"), run_name="__main__")

project = "Weirlab"
author = "The Weirlab developers"
copyright = "The Weirlab developers, Apache-2.0"  # noqa: A001 - the name that Sphinx reads
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_preserve_defaults = True
autodoc_class_signature = "separated"
autodoc_default_options = {"undoc-members": False, "exclude-members": "__init__, __new__"}
source_suffix = {".md": "markdown"}
exclude_patterns = ["site"]
html_theme = "furo"
html_title = "Weirlab"
html_static_path = ["static"]
html_css_files = ["weirlab.css"]
myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]
html_math_renderer = "mathml"
suppress_warnings = ["myst.xref_missing"]  # marks written as HTML; scripts/check_links.py knows them


def inline_formula(writer, node):
    """Formulas are written as MathML, which browsers draw without a script or a font from elsewhere."""
    writer.body.append(convert(node.astext(), display="inline"))
    raise nodes.SkipNode


def formula(writer, node):
    """A formula in a line of its own."""
    writer.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app):
    """Register the renderer of formulas."""
    app.add_html_math_renderer("mathml", (inline_formula, None), (formula, None))
