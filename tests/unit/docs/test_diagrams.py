# Copyright (c) 2026, the mlops.hpc_validation authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from xml.etree import ElementTree

import pytest

from tests.docs import drawing, training_diagrams
from tests.docs.__main__ import FILES, stale
from tests.docs.drawing import Drawing


@pytest.fixture
def small():
    made = Drawing("Small & plain")
    made.box("one", ["first", "<two>"], 10, 10, 50, 30, "file")
    made.box("two", ["second"], 100, 10, 50, 30, "job")
    made.box("three", [], 10, 100, 50, 30, "play")
    made.arrow("one", "two")
    made.arrow("two", "one")
    made.arrow("one", "three")
    return made


def test_both_forms_have_the_same_boxes_and_are_the_same_each_time(small):
    assert (drawing.drawio(small), drawing.svg(small)) == (drawing.drawio(small), drawing.svg(small))
    cells = {cell.get("id"): cell for cell in ElementTree.fromstring(drawing.drawio(small)).iter("mxCell")}
    assert cells["one"].get("value") == "first\n<two>"
    assert (cells["one to two"].get("source"), cells["one to two"].get("target")) == ("one", "two")
    image = ElementTree.fromstring(drawing.svg(small))
    texts = [element.text for element in image.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["first", "<two>", "second"]
    assert image.get("viewBox") == "0 0 170 150"


def test_arrows_go_from_side_to_side_or_down(small):
    image = ElementTree.fromstring(drawing.svg(small))
    lines = [
        [line.get(name) for name in ("x1", "y1", "x2", "y2")] for line in image.iter("{http://www.w3.org/2000/svg}line")
    ]
    assert lines == [["60", "25", "100", "25"], ["100", "25", "60", "25"], ["35", "40", "35", "100"]]


def test_the_pipeline_has_every_role_leg_and_profile():
    names = {box.name for box in training_diagrams.pipeline().boxes}
    assert {"95-00-06-02-A-101", "95-00-06-02-A-102"} <= names
    assert {"bootstrap", "preflight", "stage", "workload", "report"} <= names
    assert {"measured", "restarted", "single", "adapted", "mlflow", "wandb", "tensorboard"} <= names


@pytest.mark.parametrize("name", FILES)
def test_a_generated_file_is_current(name):
    assert not stale(name), f"{name} is out of date: make pages"
