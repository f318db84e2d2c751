"""Not in the text: the same paths with the congestion control that came later."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from weirlab.campaigns import PointSummary
from weirlab.reproductions.bulk.work import CONTROLS, RANDOM, Data
from weirlab.reproductions.verdicts import Claim

_ALIKE = 0.25
"""The greatest difference that counts as none."""
_CUBIC = {
    False: "two large windows fall less behind with CUBIC",
    True: "CUBIC does as Reno over a short path",
}
"""What is said of CUBIC, by whether the path is the short one."""


def claims(data: Data) -> Iterator[Claim]:
    """In simulated time, and where it was measured on Linux."""
    for how, reno in (("simulated", data.simulated), ("Linux", data.live)):
        later = {
            called: data.since[how, called] for called in CONTROLS.values() if (how, called) in data.since
        }
        if later and RANDOM in reno:
            yield from _compared(how, {"Reno": reno, **later})


def _compared(how: str, found: Mapping[str, Mapping[str, list[PointSummary]]]) -> Iterator[Claim]:
    """On the paths that were measured with all."""
    for site in found["CUBIC"]:
        ratios = {
            called: sites[site][1].goodput_bps / sites[site][0].goodput_bps for called, sites in found.items()
        }
        two = _carried(found, site)
        yield Claim(
            statement=f"Since 2000: {site}, {_CUBIC[site == 'Caltech']} ({how}; not in the text).",
            holds=abs(ratios["CUBIC"] / ratios["Reno"] - 1) <= _ALIKE
            if site == "Caltech"
            else ratios["CUBIC"] < ratios["Reno"],
            evidence=f"eight small over two large: {ratios['Reno']:.2f} with Reno, {ratios['CUBIC']:.2f} "
            f"with CUBIC; two large carry {two['Reno']:.1f} and {two['CUBIC']:.1f} Mbit/s",
        )
        yield Claim(
            statement=f"Since 2000: {site}, with BBR streams and windows are nearly the same ({how}; not "
            "in the text).",
            holds=ratios["BBR"] <= 1 + _ALIKE,
            evidence=f"eight small over two large: {ratios['BBR']:.2f}; two large carry {two['BBR']:.1f} "
            f"Mbit/s, mean loaded RTT {1e3 * found['BBR'][site][0].loaded_mean_s:.1f} ms, with Reno "
            f"{1e3 * found['Reno'][site][0].loaded_mean_s:.1f}",
        )


def _carried(found: Mapping[str, Mapping[str, list[PointSummary]]], site: str) -> dict[str, float]:
    """Of two large windows, Mbit/s by congestion control."""
    return {called: sites[site][0].goodput_bps / 1e6 for called, sites in found.items()}
