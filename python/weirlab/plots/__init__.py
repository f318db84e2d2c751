"""Plots of runs, searches and studies, drawn with Altair. Needs the extra `weirlab[report]`.

Names are in the modules, so that a plot of a trace does not load the models of a scenario.
"""
