# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Draw how long the inferences of a device took, as SVG: the same from the same, legible on light and on dark pages.

Pure. What a device wrote is data: a histogram that cannot be one is refused with the reason, and text is escaped.
"""

from __future__ import annotations

import hashlib
import math
import re
import typing as t
from xml.etree import ElementTree

from ansible_collections.mlops.hpc_validation.plugins.module_utils._common import scalars
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge.values import at

WIDTH, HEIGHT = 720, 340
LEFT, RIGHT, TOP, BASE = 64.0, 700.0, 132.0, 288.0  # of the bars, in pixels
FIRST_LABEL, ROW = 70.0, 16.0  # of the marks: each has a row of its own, so that no label lies on another
LEAST, MOST = 1e-6, 1e8  # ms: outside of these nothing is the time of an inference
BUCKETS = 1000  # at most
SHORT = 100  # characters of a line
PERCENTILES = ("p50", "p95", "p99")
PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,79}")
COLOURS = {
    ".page": ("fill", "#ffffff", "#0d1117"),
    ".halo": ("stroke", "#ffffff", "#0d1117"),
    ".ink": ("fill", "#1f2328", "#f0f6fc"),
    ".dim": ("fill", "#59636e", "#9198a1"),
    ".grid": ("stroke", "#d1d9e0", "#3d444d"),
    ".bars": ("fill", "#0969da", "#4493f8"),
    ".mark": ("stroke", "#1f2328", "#f0f6fc"),
    ".bound": ("stroke", "#cf222e", "#f85149"),
    ".limit": ("fill", "#cf222e", "#f85149"),
}


class Histogram(t.NamedTuple):
    """Counts of inferences between edges in milliseconds, and the percentiles that lie between these."""

    edges: list[float]
    counts: list[int]
    marks: dict[str, float]


def file_name(host: str) -> str:
    """Return the name of a host's drawing; hosts of different names have different ones."""
    if PLAIN.fullmatch(host):
        return f"latency-{host}.svg"
    plain = re.sub(r"[^A-Za-z0-9.-]", "-", host)[:60]
    return f"latency-{plain}-{hashlib.sha256(host.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}.svg"


def read(latency: t.Any) -> Histogram | str:
    """Return the histogram of a result's `latency`, or why there is none."""
    edges, counts = at(latency, "histogram", "edges_ms"), at(latency, "histogram", "counts")
    if not isinstance(edges, list) or not isinstance(counts, list):
        return "the device's result has no histogram"
    if not counts or len(counts) > BUCKETS or len(edges) != len(counts) + 1:
        return f"{len(edges)} edges and {len(counts)} counts are no histogram of at most {BUCKETS} buckets"
    if not all(scalars.is_number(edge) and LEAST <= edge <= MOST for edge in edges):
        return f"the edges of the histogram are not all between {LEAST:g} and {MOST:g} ms"
    if any(lower >= upper for lower, upper in zip(edges, edges[1:])):
        return "the edges of the histogram do not ascend"
    if not all(_is_count(count) for count in counts) or not sum(counts):
        return "the counts of the histogram are not all whole numbers, or all are 0"
    said = {name: at(latency, f"{name}_ms") for name in PERCENTILES}
    marks = {
        name: float(value)
        for name, value in said.items()
        if scalars.is_number(value) and edges[0] * 0.999 <= value <= edges[-1] * 1.001
    }
    return Histogram([*map(float, edges)], counts, marks)


def _is_count(value: t.Any) -> bool:
    return scalars.is_number(value) and isinstance(value, int) and 0 <= value < 10**15


def svg(histogram: Histogram, host: str, told: str, bound: t.Any = None) -> str:
    """Return the drawing; `told` says of what, and whether anything disturbed it, `bound` is in milliseconds."""
    limit = float(bound) if scalars.is_number(bound) and LEAST <= bound <= MOST else None
    named = file_name(host).removesuffix(".svg")
    image = ElementTree.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {WIDTH} {HEIGHT}",
            "width": str(WIDTH),
            "height": str(HEIGHT),
            "role": "img",
            "aria-labelledby": f"{named}-title {named}-desc",
            "font-family": "system-ui, sans-serif",
            "font-size": "12",
        },
    )
    title = f"Latency of an inference on {_short(host, 60)}"
    ElementTree.SubElement(image, "title", id=f"{named}-title").text = title
    ElementTree.SubElement(image, "desc", id=f"{named}-desc").text = description(histogram, told, limit)
    ElementTree.SubElement(image, "style").text = _style()
    ElementTree.SubElement(image, "rect", {"class": "page", "width": str(WIDTH), "height": str(HEIGHT)})
    _text(image, title, LEFT, 28, {"class": "ink", "font-size": "16", "font-weight": "600"})
    _text(image, _short(told), LEFT, 48, {"class": "dim"})
    scale = _Scale([histogram.edges[0], histogram.edges[-1], *([limit] if limit else [])])
    _count_axis(image, max(histogram.counts))
    _bars(image, histogram, scale)
    _time_axis(image, scale)
    _marks(image, histogram.marks, limit, scale)
    ElementTree.indent(image)
    return ElementTree.tostring(image, encoding="unicode") + "\n"


def description(histogram: Histogram, told: str, bound: float | None) -> str:
    """Return in words what the drawing shows."""
    edges, marks = histogram.edges, histogram.marks
    parts = [
        f"{_short(told)}.",
        f"A histogram of {sum(histogram.counts):,} inferences from {_ms(edges[0])} to {_ms(edges[-1])} ms, on a "
        "logarithmic axis of time; the bar of a single one is drawn high enough to be seen.",
    ]
    if marks:
        parts.append("; ".join(f"{name} {_ms(value)} ms" for name, value in marks.items()) + ".")
    if bound is not None:
        parts.append(f"The bound is {_ms(bound)} ms.")
    return " ".join(parts)


class _Scale:
    """Places on the logarithmic axis."""

    def __init__(self, values: list[float]) -> None:
        self.low, self.high = min(values), max(values)
        room = (self.high / self.low) ** 0.02
        self.low, self.high = self.low / room, self.high * room

    def place(self, value: float) -> float:
        """Return how far to the right it is."""
        return LEFT + (RIGHT - LEFT) * math.log(value / self.low) / math.log(self.high / self.low)

    def ticks(self) -> list[float]:
        """Return round values of the axis: powers of ten, else some between these, else equally far apart."""
        lowest, highest = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        for heads in ((1,), (1, 2, 5), range(1, 10)):
            every = [float(f"{head}e{power}") for power in range(lowest, highest + 1) for head in heads]
            found = [value for value in every if self.low <= value <= self.high]
            if len(found) >= 3:
                return found
        step = _round_step((self.high - self.low) / 5)
        first = math.ceil(self.low / step)
        return [float(f"{number * step:.10g}") for number in range(first, math.floor(self.high / step) + 1)]


def _round_step(about: float) -> float:
    """Return the least of 1, 2 or 5 times a power of ten that is not below `about`."""
    power = math.floor(math.log10(about))
    return next(each for head in (1, 2, 5, 10) if (each := float(f"{head}e{power}")) >= about)


def _count_axis(image: ElementTree.Element, most: int) -> None:
    step = max(1, int(_round_step(most / 5)))
    for count in range(0, most + 1, step):
        height = BASE - (BASE - TOP) * count / most
        _line(image, (LEFT, height), (RIGHT, height), {"class": "grid"})
        _text(image, f"{count:,}", LEFT - 8, height + 4, {"class": "dim", "text-anchor": "end"})
    _text(image, "inferences", 12, TOP - 12, {"class": "dim"})


def _bars(image: ElementTree.Element, histogram: Histogram, scale: _Scale) -> None:
    """Draw a bar for each bucket that has any; one in ten thousand is still to be seen."""
    most, path = max(histogram.counts), []
    for lower, upper, count in zip(histogram.edges, histogram.edges[1:], histogram.counts):
        if count:
            left, right = scale.place(lower), scale.place(upper)
            top = BASE - max(1.5, (BASE - TOP) * count / most)
            gap = 0.5 if right - left > 2 else 0.0
            right = max(right - gap, left + 1)
            path.append(f"M{_number(left)} {_number(BASE)}V{_number(top)}H{_number(right)}V{_number(BASE)}z")
    ElementTree.SubElement(image, "path", {"class": "bars", "d": "".join(path)})


def _time_axis(image: ElementTree.Element, scale: _Scale) -> None:
    _line(image, (LEFT, BASE), (RIGHT, BASE), {"class": "mark"})
    for value in scale.ticks():
        place = scale.place(value)
        _line(image, (place, BASE), (place, BASE + 5), {"class": "mark"})
        _text(image, f"{value:g}", place, BASE + 19, {"class": "dim", "text-anchor": "middle"})
    middle = {"class": "dim", "text-anchor": "middle"}
    _text(image, "time of an inference in milliseconds, logarithmic", (LEFT + RIGHT) / 2, BASE + 40, middle)


def _marks(image: ElementTree.Element, marks: dict[str, float], bound: float | None, scale: _Scale) -> None:
    wanted = [(value, name, "mark", "ink") for name, value in marks.items()]
    wanted += [(bound, "bound", "bound", "limit")] if bound is not None else []
    for row, (value, name, line, label) in enumerate(sorted(wanted)):
        place, height = scale.place(value), FIRST_LABEL + row * ROW
        dashes = {"stroke-dasharray": "6 4"} if name == "bound" else {"stroke-dasharray": "2 2"}
        _line(image, (place, height - 10), (place, BASE), {"class": line, **dashes})
        to_left = place > WIDTH * 0.75
        where = {"class": f"halo {label}", "text-anchor": "end" if to_left else "start"}
        where |= {"stroke-width": "4", "stroke-linejoin": "round", "paint-order": "stroke", "font-weight": "600"}
        _text(image, f"{name} {_ms(value)} ms", place + (-5 if to_left else 5), height, where)


def _text(image: ElementTree.Element, content: str, left: float, height: float, given: dict[str, str]) -> None:
    ElementTree.SubElement(image, "text", {"x": _number(left), "y": _number(height), **given}).text = content


def _line(
    image: ElementTree.Element, begin: tuple[float, float], end: tuple[float, float], given: dict[str, str]
) -> None:
    places = zip(("x1", "y1", "x2", "y2"), (*begin, *end))
    ElementTree.SubElement(image, "line", {**{name: _number(value) for name, value in places}, **given})


def _style() -> str:
    light = "".join(f"{name}{{{what}:{colour}}}" for name, (what, colour, _dark) in COLOURS.items())
    dark = "".join(f"{name}{{{what}:{colour}}}" for name, (what, _light, colour) in COLOURS.items())
    return f"{light}@media (prefers-color-scheme:dark){{{dark}}}"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _ms(value: float) -> str:
    """Return milliseconds with three digits that count."""
    return f"{value:,.0f}" if value >= 999.5 else f"{value:.3g}"


def _short(text: str, most: int = SHORT) -> str:
    plain = scalars.printable(text)
    return plain if len(plain) <= most else plain[: most - 1] + "…"
