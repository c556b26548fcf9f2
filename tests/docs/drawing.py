# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boxes and arrows as draw.io's format and as SVG, the same from the same; a library's ids would differ each time."""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.etree import ElementTree

FONT, LINE, CHARACTER = 12, 16, 7  # pixels
COLOURS = {
    "file": "#fff2cc",
    "play": "#dae8fc",
    "job": "#d5e8d4",
    "watch": "#e1d5e7",
    "time": "#d5e8d4",
    "failed": "#f8cecc",
    "pause": "#ffffff",
    "text": "none",
}
EDGE = "#555555"


@dataclass(frozen=True)
class Box:
    """A box with lines of text, in pixels from the upper left."""

    name: str
    lines: tuple[str, ...]
    left: float
    top: float
    width: float
    height: float
    kind: str

    @property
    def middle(self) -> tuple[float, float]:
        """Its middle."""
        return self.left + self.width / 2, self.top + self.height / 2


@dataclass
class Drawing:
    """Boxes, and arrows between them by name."""

    title: str
    boxes: list[Box] = field(default_factory=list)
    arrows: list[tuple[str, str]] = field(default_factory=list)

    def box(self, name: str, lines: list[str], left: float, top: float, width: float, height: float, kind: str) -> None:
        """Add a box."""
        self.boxes.append(Box(name, tuple(lines), left, top, width, height, kind))

    def arrow(self, origin: str, target: str) -> None:
        """Add an arrow."""
        self.arrows.append((origin, target))

    def named(self, name: str) -> Box:
        """The box of that name."""
        return next(box for box in self.boxes if box.name == name)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of all."""
        right = max(box.left + box.width for box in self.boxes)
        return right + 20, max(box.top + box.height for box in self.boxes) + 20


def _text(element: ElementTree.Element) -> str:
    ElementTree.indent(element)
    return ElementTree.tostring(element, encoding="unicode") + "\n"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def drawio(drawing: Drawing) -> str:
    """Return the drawing as a file of draw.io's; ids are the boxes' names."""
    file = ElementTree.Element("mxfile", host="app.diagrams.net")
    page = ElementTree.SubElement(file, "diagram", id="page-1", name=drawing.title)
    width, height = map(_number, drawing.size)
    model = ElementTree.SubElement(page, "mxGraphModel", grid="1", pageWidth=width, pageHeight=height)
    root = ElementTree.SubElement(model, "root")
    ElementTree.SubElement(root, "mxCell", id="0")
    ElementTree.SubElement(root, "mxCell", id="1", parent="0")
    for box in drawing.boxes:
        style = f"rounded=1;whiteSpace=wrap;html=0;fontSize={FONT};fillColor={COLOURS[box.kind]};strokeColor={EDGE};"
        if box.kind == "text":
            style = f"text;html=0;fontSize={FONT};fillColor=none;strokeColor=none;align=left;"
        given = {"id": box.name, "value": "\n".join(box.lines), "style": style, "vertex": "1", "parent": "1"}
        cell = ElementTree.SubElement(root, "mxCell", given)
        place = {"x": box.left, "y": box.top, "width": box.width, "height": box.height}
        geometry = {name: _number(value) for name, value in place.items()}
        ElementTree.SubElement(cell, "mxGeometry", {**geometry, "as": "geometry"})
    for origin, target in drawing.arrows:
        ends = {"source": origin, "target": target}
        style = f"edgeStyle=none;html=0;strokeColor={EDGE};"
        given = {"id": f"{origin} to {target}", "style": style, "edge": "1", "parent": "1", **ends}
        cell = ElementTree.SubElement(root, "mxCell", given)
        ElementTree.SubElement(cell, "mxGeometry", {"relative": "1", "as": "geometry"})
    return _text(file)


def svg(drawing: Drawing) -> str:
    """Return the drawing as SVG."""
    width, height = map(_number, drawing.size)
    given = {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {width} {height}", "role": "img"}
    image = ElementTree.Element("svg", {**given, "font-family": "sans-serif", "font-size": str(FONT)})
    ElementTree.SubElement(image, "title").text = drawing.title
    marker = {"id": "head", "viewBox": "0 0 8 8", "refX": "8", "refY": "4", "markerWidth": "8", "orient": "auto"}
    head = ElementTree.SubElement(ElementTree.SubElement(image, "defs"), "marker", {**marker, "markerHeight": "8"})
    ElementTree.SubElement(head, "path", d="M0,0 L8,4 L0,8 z", fill=EDGE)
    ElementTree.SubElement(image, "rect", width=width, height=height, fill="#ffffff")
    for origin, target in drawing.arrows:
        begin, end = _ends(drawing.named(origin), drawing.named(target))
        line = {"x1": begin[0], "y1": begin[1], "x2": end[0], "y2": end[1]}
        places = {name: _number(value) for name, value in line.items()}
        ElementTree.SubElement(image, "line", {**places, "stroke": EDGE, "marker-end": "url(#head)"})
    for box in drawing.boxes:
        _box(image, box)
    return _text(image)


def _box(image: ElementTree.Element, box: Box) -> None:
    group = ElementTree.SubElement(image, "g", id=box.name.replace(" ", "-"))
    at_left = box.kind == "text"
    if not at_left:
        place = {"x": box.left, "y": box.top, "width": box.width, "height": box.height}
        geometry = {name: _number(value) for name, value in place.items()}
        ElementTree.SubElement(group, "rect", {**geometry, "rx": "4", "fill": COLOURS[box.kind], "stroke": EDGE})
    middle, centre = box.middle
    first = centre - (len(box.lines) - 1) * LINE / 2 + FONT / 3
    for number, line in enumerate(box.lines):
        place = {"x": _number(box.left if at_left else middle), "y": _number(first + number * LINE)}
        anchor = "start" if at_left else "middle"
        ElementTree.SubElement(group, "text", {**place, "text-anchor": anchor}).text = line


def _ends(origin: Box, target: Box) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return where an arrow leaves one box and meets another, which is below or beside it."""
    if target.top >= origin.top + origin.height:
        return (origin.middle[0], origin.top + origin.height), (target.middle[0], target.top)
    if target.left >= origin.left + origin.width:
        return (origin.left + origin.width, origin.middle[1]), (target.left, target.middle[1])
    return (origin.left, origin.middle[1]), (target.left + target.width, target.middle[1])
