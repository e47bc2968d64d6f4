"""What cutoffs of scores keep and drop, as curves of an SVG."""

import html
from collections.abc import Mapping, Sequence

__all__ = ["cutoff_chart"]

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 440, 240, 34, 120, 12, 34
_COLOURS = ("#2c5d8f", "#b3541e", "#6b8e23")
_STYLE = (
    ".chart{font:11px system-ui,sans-serif;fill:#5c6678}"
    ".chart polyline{fill:none;stroke-width:2.5}.chart .grid{stroke:#8883}"
)


def cutoff_chart(cutoffs: Sequence[float], curves: Mapping[str, Sequence[float]]) -> str:
    """The chart as an SVG element that carries its style.

    Parameters
    ----------
    cutoffs : ascending, in [0, 1]
    curves : name -> a share in [0, 1] for each cutoff; three at most
    """
    grid = "".join(
        f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{_y(share):.1f}" y2="{_y(share):.1f}"/>'
        f'<text x="{_LEFT - 6}" y="{_y(share) + 4:.1f}" text-anchor="end">{share:g}</text>'
        for share in (0, 0.25, 0.5, 0.75, 1)
    )
    axis = "".join(
        f'<text x="{_x(cutoff):.1f}" y="{_HEIGHT - 18}" text-anchor="middle">{cutoff:g}</text>' for cutoff in cutoffs
    )
    drawn = "".join(
        f'<polyline stroke="{colour}" points="{_points(cutoffs, shares)}"/>'
        f'<text x="{_WIDTH - _RIGHT + 8}" y="{_TOP + 12 + 18 * place}" style="fill:{colour}">{html.escape(name)}</text>'
        for place, ((name, shares), colour) in enumerate(zip(curves.items(), _COLOURS, strict=False))
    )
    title = f'<text x="{_x(0.5):.1f}" y="{_HEIGHT - 3}" text-anchor="middle">cutoff</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="Shares of results that are kept and dropped at each cutoff">'
        f"<style>{_STYLE}</style>{grid}{axis}{drawn}{title}</svg>"
    )


def _points(cutoffs: Sequence[float], shares: Sequence[float]) -> str:
    return " ".join(f"{_x(cutoff):.1f},{_y(share):.1f}" for cutoff, share in zip(cutoffs, shares, strict=True))


def _x(cutoff: float) -> float:
    return _LEFT + cutoff * (_WIDTH - _LEFT - _RIGHT)


def _y(share: float) -> float:
    return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)
