# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The histogram of a device's latency: right, the same from the same, for screen readers too, and safe."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest
from ansible_collections.mlops.hpc_validation.plugins.plugin_utils._edge import histogram
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.conftest import ROOT
from tests.unit.plugins.plugin_utils._edge.made_card import latency

SVG = "{http://www.w3.org/2000/svg}"
TOLD = "int8, 1,200 inferences; undisturbed"


def drawn(host="edge01", told=TOLD, bound=5.0, **changes):
    """The drawing of the device's latency, read again."""
    text = histogram.svg(histogram.read({**latency(), **changes}), host, told, bound)
    return ElementTree.fromstring(text), text


def texts(image):
    return [element.text for element in image.iter(f"{SVG}text")]


def lines(image, kind):
    """The x of each line of a class that goes down to the axis."""
    return [float(each.get("x1")) for each in image.iter(f"{SVG}line") if each.get("class") == kind and dashed(each)]


def dashed(element):
    return element.get("stroke-dasharray") is not None


def bars(image):
    """(left, top, right) of each bar."""
    (path,) = (each for each in image.iter(f"{SVG}path") if each.get("class") == "bars")
    return [
        tuple(map(float, match)) for match in re.findall(r"M([\d.]+) [\d.]+V([\d.]+)H([\d.]+)V[\d.]+z", path.get("d"))
    ]


def test_the_same_gives_the_same_and_it_is_720_wide():
    assert drawn()[1] == drawn()[1]
    assert drawn()[0].get("width") == "720"
    assert drawn()[0].get("viewBox") == "0 0 720 340"


def test_a_screen_reader_is_told_what_is_to_be_seen():
    image, _text = drawn()
    title, description = image.find(f"{SVG}title"), image.find(f"{SVG}desc")
    assert image.get("role") == "img"
    assert image.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
    assert title.text == "Latency of an inference on edge01"
    for said in (
        TOLD,
        "1,200 inferences from 0.3 to 3.2 ms",
        "p50 0.401 ms; p95 0.52 ms; p99 0.61 ms",
        "bound is 5 ms",
    ):
        assert said in description.text


def test_each_bucket_with_any_has_a_bar_as_high_as_its_share():
    image, _text = drawn()
    found = bars(image)
    assert len(found) == 5
    heights = [histogram.BASE - top for _left, top, _right in found]
    assert heights[1] == pytest.approx(histogram.BASE - histogram.TOP)
    assert heights[0] == pytest.approx(heights[1] * 150 / 800, abs=0.1)
    assert heights[4] == 1.5  # two of 1,200, and still to be seen
    image, _text = drawn(histogram={"edges_ms": [1, 2, 3, 4], "counts": [5, 0, 5]})
    assert len(bars(image)) == 2


def test_the_axis_is_logarithmic_and_has_the_bound_on_it():
    image, _text = drawn()
    places = dict(zip(("p50", "p95", "p99"), lines(image, "mark")))
    (bound,) = lines(image, "bound")
    per_factor = (bound - places["p50"]) / math.log(5 / 0.401)
    assert places["p99"] - places["p50"] == pytest.approx(per_factor * math.log(0.61 / 0.401), abs=0.2)
    assert histogram.LEFT < places["p50"] < places["p95"] < places["p99"] < bound < histogram.RIGHT
    assert {"p50 0.401 ms", "p95 0.52 ms", "p99 0.61 ms", "bound 5 ms"} <= set(texts(image))


@pytest.mark.parametrize("bound", [None, "5", float("nan"), 0, -1, 1e300, True])
def test_without_a_bound_none_is_drawn(bound):
    image, _text = drawn(bound=bound)
    assert lines(image, "bound") == []
    assert "bound" not in image.find(f"{SVG}desc").text


def test_a_bound_below_the_times_is_in_view_too():
    (bound,) = lines(drawn(bound=0.001)[0], "bound")
    assert histogram.LEFT < bound < histogram.LEFT + 40


def test_labels_of_marks_have_a_row_each():
    image, _text = drawn(p50_ms=0.4, p95_ms=0.4, p99_ms=0.4)
    rows = [each.get("y") for each in image.iter(f"{SVG}text") if "halo" in (each.get("class") or "")]
    assert len(set(rows)) == 4


@pytest.mark.parametrize("edges", [(0.31, 0.311), (0.3, 0.9), (0.2, 900), (1e-6, 1e8), (7.0, 7.0000001)])
def test_any_range_has_ticks_that_do_not_lie_on_one_another(edges):
    image, _text = drawn(bound=None, histogram={"edges_ms": list(edges), "counts": [3]}, p50_ms=None)
    places = sorted(
        float(each.get("x1")) for each in image.iter(f"{SVG}line") if each.get("class") == "mark" and not dashed(each)
    )[1:]
    assert 2 <= len(places) <= 16
    assert all(histogram.LEFT <= place <= histogram.RIGHT for place in places)
    assert min(right - left for left, right in zip(places, places[1:])) > 20


def test_every_class_has_a_colour_for_light_pages_and_for_dark_ones():
    image, text = drawn()
    used = {f".{name}" for each in image.iter() for name in (each.get("class") or "").split()}
    assert used == set(histogram.COLOURS)
    light, dark = re.search(r"<style>(.*)@media \(prefers-color-scheme:dark\){(.*)}</style>", text).groups()
    for name, (what, on_light, on_dark) in histogram.COLOURS.items():
        assert f"{name}{{{what}:{on_light}}}" in light
        assert f"{name}{{{what}:{on_dark}}}" in dark


@pytest.mark.parametrize("page", [1, 2])
def test_words_have_the_contrast_that_wcag_asks_for(page):
    def brightness(colour):
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts]
        return sum(share * each for share, each in zip((0.2126, 0.7152, 0.0722), linear))

    behind = brightness(histogram.COLOURS[".page"][page])
    for name in (".ink", ".dim", ".limit"):
        dimmer, lighter = sorted((brightness(histogram.COLOURS[name][page]), behind))
        assert (lighter + 0.05) / (dimmer + 0.05) >= 4.5, name


HOSTILE = "</text><script>alert(1)</script>&\"'\x1b[31m\n\u202e\ud800]]>\ufffe" + "x" * 900


def test_foreign_text_is_text_of_bounded_length():
    image, text = drawn(host=HOSTILE, told=HOSTILE)
    assert {each.tag for each in image.iter()} <= {
        SVG + name for name in ["svg", "title", "desc", "style", "rect", "text", "line", "path"]
    }
    assert "<script" not in text
    assert [char for char in text if not char.isprintable() and char != "\n"] == []
    assert max(len(each) for each in texts(image)) <= 120
    text.encode("utf-8")


def test_the_file_is_named_by_the_host():
    assert histogram.file_name("edge01.example.org") == "latency-edge01.example.org.svg"
    odd = ["a/b", "a-b", "a b", "../../etc/x", "", ".", "-", "é", "\ud800", "x" * 300, "x" * 301, "a\nb"]
    names = [histogram.file_name(each) for each in odd]
    assert len(set(names)) == len(odd)
    assert all(re.fullmatch(r"latency-[A-Za-z0-9.-]{1,90}\.svg", name) for name in names)


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (None, "no histogram"),
        ({}, "no histogram"),
        ({"edges_ms": [1, 2], "counts": []}, "no histogram of at most"),
        ({"edges_ms": [1, 2], "counts": [1, 1]}, "2 edges and 2 counts"),
        ({"edges_ms": list(range(1, 1003)), "counts": [1] * 1001}, "at most 1000"),
        ({"edges_ms": [0, 2], "counts": [1]}, "are not all between"),
        ({"edges_ms": [1, float("inf")], "counts": [1]}, "are not all between"),
        ({"edges_ms": [1, "2"], "counts": [1]}, "are not all between"),
        ({"edges_ms": [1, True, 3], "counts": [1, 1]}, "are not all between"),
        ({"edges_ms": [2, 2], "counts": [1]}, "do not ascend"),
        ({"edges_ms": [1, 2], "counts": [0]}, "all are 0"),
        ({"edges_ms": [1, 2, 3], "counts": [2, -1]}, "not all whole numbers"),
        ({"edges_ms": [1, 2], "counts": [1.5]}, "not all whole numbers"),
        ({"edges_ms": [1, 2], "counts": [True]}, "not all whole numbers"),
        ({"edges_ms": [1, 2], "counts": [10**400]}, "not all whole numbers"),
    ],
)
def test_what_is_no_histogram_is_refused_with_the_reason(found, why):
    assert why in histogram.read({"histogram": found})


def test_percentiles_that_lie_outside_are_not_marked():
    found = histogram.read({**latency(), "p50_ms": 0.29, "p95_ms": "0.5", "p99_ms": 3.3})
    assert found.marks == {}
    assert "p50" not in histogram.description(found, TOLD, None)


def test_what_the_runner_writes_can_be_drawn(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "files/edge"))
    import runner

    for times in ([400_000] * 1200, [400_000 + 7 * step for step in range(1200)], [400_000] * 1000 + [90_000_000]):
        found = histogram.read(runner.figures(times))
        assert sum(found.counts) == len(times)
        assert list(found.marks) == ["p50", "p95", "p99"]
        ElementTree.fromstring(histogram.svg(found, "edge01", TOLD, 5.0))


NUMBERS = st.integers(-3, 10**20) | st.floats()
ANY = st.none() | st.booleans() | NUMBERS | st.text(max_size=3)


@given(st.lists(ANY, max_size=6), st.lists(ANY, max_size=6), ANY, ANY)
def test_nothing_that_a_device_writes_raises(edges, counts, percentile, bound):
    said = {"p50_ms": percentile, "p99_ms": percentile, "histogram": {"edges_ms": edges, "counts": counts}}
    found = histogram.read(said)
    if not isinstance(found, str):
        ElementTree.fromstring(histogram.svg(found, "h", "t", bound))


@given(st.lists(st.floats(1e-6, 1e8), min_size=2, max_size=6, unique=True), st.floats(1e-6, 1e8))
def test_any_histogram_can_be_drawn(edges, bound):
    found = histogram.read({"histogram": {"edges_ms": sorted(edges), "counts": [1] * (len(edges) - 1)}})
    ElementTree.fromstring(histogram.svg(found, "h", "t", bound))
