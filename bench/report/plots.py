"""Bars and curves as plain SVG: no script and no font of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape, unescape
from math import log10

WIDTH, LEFT, RIGHT, ROW, BAR = 860, 330, 90, 24, 15
COLOURS = {"theirs": "#8a8f98", "ours": "#2f7d4f", "unseen": "#9ccfae", "peer": "#c7782b"}
EDGE, HIGH = 60, 260  # of a picture of curves
LINES = ("#2f7d4f", "#2b6cc7", "#c7782b", "#8a4fbf", "#b3261e", "#5d6470")


@dataclass(frozen=True, slots=True)
class Bar:
    """`kind` is a key of COLOURS; `mark`, where given, is the least that is possible."""

    name: str
    value: float
    shown: str
    kind: str
    mark: float | None = None


def bars(title: str, given: Sequence[Bar]) -> str:
    """One bar below the other; on a logarithmic scale where the values lie far apart, and then it says so."""
    values = [v for b in given for v in (b.value, b.mark) if v]
    scale = _Scale.over(values)
    height = ROW * len(given) + 44
    parts = _head(f"{title}{scale.said}", height)
    for i, bar in enumerate(given):
        y = 26 + ROW * i
        end = scale.x(bar.value)
        parts.append(f'<text x="{LEFT - 8}" y="{y + 12}" text-anchor="end">{escape(_short(bar.name))}</text>')
        parts.append(
            f'<rect x="{LEFT}" y="{y}" width="{max(1.0, end - LEFT):.1f}" height="{BAR}" fill="{COLOURS[bar.kind]}"/>'
        )
        parts.append(f'<text x="{max(end, LEFT + 1) + 5:.1f}" y="{y + 12}">{escape(bar.shown)}</text>')
        if bar.mark:
            x = scale.x(bar.mark)
            parts.append(
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y - 3}" y2="{y + BAR + 3}" stroke="#b3261e" stroke-width="2"/>'
            )
    parts.append(f'<line x1="{LEFT}" x2="{LEFT}" y1="20" y2="{height - 16}" stroke="#444"/></svg>')
    return "\n".join(parts)


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve; each point has a place on the axis, a share, and optionally a second share that is drawn pale."""

    name: str  # curves of one name have one colour
    points: Sequence[tuple[float, ...]]


def curves(title: str, given: Sequence[Curve], unit: str = " s") -> str:
    """Draw curves over a logarithmic axis, with shares from 0 to the highest."""
    points = [point for curve in given for point in curve.points]
    first, last = min(p[0] for p in points), max(p[0] for p in points)
    high = max(share for p in points for share in p[1:]) or 1.0
    colours = dict(zip(dict.fromkeys(c.name for c in given), LINES * len(given), strict=False))
    top = 30 + 16 * len(colours)
    bottom = top + HIGH

    def x(place: float) -> float:
        share = log10(place / first) / log10(last / first) if last > first else 0.0
        return EDGE + share * (WIDTH - EDGE - RIGHT)

    def y(share: float) -> float:
        return bottom - HIGH * share / high

    parts = [
        *_head(title, bottom + 40),
        f'<path d="M{EDGE} {top}V{bottom}H{WIDTH - RIGHT}" fill="none" stroke="#444"/>',
    ]
    for share in (0.0, high / 2, high):
        parts.append(f'<text x="{EDGE - 8}" y="{y(share) + 4:.1f}" text-anchor="end">{100 * share:.3g} %</text>')
    for place in (first, (first * last) ** 0.5, last):
        parts.append(f'<text x="{x(place):.1f}" y="{bottom + 18}" text-anchor="middle">{place:.3g}{unit}</text>')
    for curve in given:
        for own, opacity in zip(range(1, len(curve.points[0])), (1.0, 0.3), strict=False):
            line = " ".join(f"{x(point[0]):.1f},{y(point[own]):.1f}" for point in curve.points)
            parts.append(
                f'<polyline points="{line}" fill="none" stroke="{colours[curve.name]}" stroke-opacity="{opacity}"/>'
            )
    for i, (name, colour) in enumerate(colours.items()):
        parts.append(f'<text x="{EDGE}" y="{32 + 16 * i}" fill="{colour}">{escape(_short(name, 120))}</text>')
    return "\n".join([*parts, "</svg>"])


def title_of(drawn: str) -> str:
    """Return the title of a picture.

    >>> title_of(bars("rows read", []))
    'rows read'
    """
    return unescape(drawn.split('aria-label="', 1)[1].split('"', 1)[0])


def _head(title: str, height: int) -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="{escape(title)}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',  # a reader's page may be dark
        f'<text x="0" y="14" font-weight="bold">{escape(title)}</text>',
    ]


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float  # 0: linear
    high: float

    @staticmethod
    def over(values: Sequence[float]) -> _Scale:
        if not values:
            return _Scale(0, 1)
        far = max(values) > 50 * min(values)
        return _Scale(10 ** (int(log10(min(values)) // 1)) if far else 0, max(values))

    @property
    def said(self) -> str:
        return " (logarithmic)" if self.low else ""

    def x(self, value: float) -> float:
        share = value / self.high
        if self.low:
            share = log10(max(value, self.low) / self.low) / log10(self.high / self.low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)


def _short(name: str, most: int = 50) -> str:
    """The middle is left out: names begin with the learner and end with what is particular."""
    return name if len(name) <= most else f"{name[: most // 2 - 1]}…{name[-most // 2 :]}"
