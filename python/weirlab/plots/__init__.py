"""Plots of runs, searches and studies, drawn with Altair. Needs the extra `weirlab[report]`."""

from weirlab.plots.search import loss_plots, progress_plots
from weirlab.plots.series import connection_plots, delay_plots, delivery_plots, limiter_plots, port_plots
from weirlab.plots.style import Plot

__all__ = [
    "Plot",
    "connection_plots",
    "delay_plots",
    "delivery_plots",
    "limiter_plots",
    "loss_plots",
    "port_plots",
    "progress_plots",
]
