"""What the report of the reproduction of fabrics shows besides verdicts: ours over published, by source."""

from __future__ import annotations

from weirlab.plots.reproduction import ratio_plots
from weirlab.plots.style import Plot
from weirlab.report.page import Section, figure
from weirlab.reproductions import Findings


def sections(findings: Findings) -> tuple[list[Section], list[Section], list[Plot]]:
    """The plots before the claims."""
    plots = ratio_plots(findings.rows)
    return [Section("Published and ours", [figure(plot) for plot in plots])] if plots else [], [], plots
