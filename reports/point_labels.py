"""Numbers beside the points of a picture, where they cover neither points nor lines."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from edgebench.reports import svg

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    Boxes = NDArray[np.float64]

MARKER = 3.5
"""A point's radius, in pixels."""

DIGIT, LINE = 6.4, 9.0
"""Width and height of a digit, in pixels."""

GAP = 1.5
"""Between labels, in pixels."""

NEAR = 10.0
"""From here on a line leads from a point to its number, in pixels."""

MOST_NUMBERS = 40
"""More numbers than this find no room in a picture."""

_DISTANCES = (9.0, 13.0, 18.0, 24.0, 31.0, 40.0, 52.0)
_ANGLES = (45, 315, 135, 225, 0, 90, 180, 270, 22, 338, 158, 202, 68, 292, 112, 248)

Box = tuple[float, float, float, float]
"""Left, bottom, right and top, in pixels."""


def write_numbers(
    axes: Axes,
    numbers: Sequence[tuple[int, tuple[float, float], bool]],
    points: Sequence[tuple[float, float]],
    corners: Sequence[tuple[float, float]] = (),
) -> None:
    """Write numbers beside points.

    Args:
        axes: with their final limits.
        numbers: each with the point that it stands for, as drawn, and whether it stands out.
        points: all that are drawn, numbered or not.
        corners: of a line that is level or upright everywhere, as drawn.
    """
    pixels = _pixels(axes, [point for _, point, _ in numbers])
    sizes = [(DIGIT * len(str(number)) + GAP, LINE + GAP) for number, _, _ in numbers]
    frame = axes.get_window_extent()
    middles = place_labels(
        pixels,
        sizes,
        (frame.x0, frame.y0, frame.x1, frame.y1),
        _pixels(axes, corners),
        others=_pixels(axes, points),
    )
    back = axes.transData.inverted()
    for (number, point, strong), pixel, middle in zip(numbers, pixels, middles, strict=True):
        x, y = back.transform(middle)
        if math.dist(pixel, middle) > NEAR:
            axes.plot([point[0], x], [point[1], y], color=svg.MUTED, linewidth=0.5, zorder=2)
        axes.text(
            x,
            y,
            str(number),
            ha="center",
            va="center_baseline",
            fontsize=9.5,
            fontweight="bold" if strong else "normal",
            color=svg.INK if strong else svg.MUTED,
            bbox={"facecolor": svg.SURFACE, "edgecolor": "none", "alpha": 0.85, "pad": 0.3},
            zorder=4,
        )


def place_labels(
    points: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    frame: Box,
    line: Sequence[tuple[float, float]] = (),
    *,
    others: Sequence[tuple[float, float]] = (),
) -> list[tuple[float, float]]:
    """Where to write beside points so that no text covers another one, a point or a line.

    Args:
        points: in pixels.
        sizes: width and height of each text, in pixels.
        frame: where there is room.
        line: the corners of a line that is level or upright everywhere, in pixels.
        others: more points, which have no text.

    Returns:
        The middle of each text, nearest to its point where there is a free place; where there is
        none, the place that covers least.
    """
    markers = [(x - MARKER, y - MARKER, x + MARKER, y + MARKER) for x, y in (*points, *others)]
    lines = [
        (min(x, u) - 1, min(y, v) - 1, max(x, u) + 1, max(y, v) + 1)
        for (x, y), (u, v) in pairwise(line)
    ]
    ways = np.array(
        [
            (distance * math.cos(angle), distance * math.sin(angle))
            for distance in _DISTANCES
            for angle in map(math.radians, _ANGLES)
        ]
    )
    fixed = np.array(list(dict.fromkeys([*markers, *lines])), dtype=np.float64).reshape(-1, 4)
    placed: list[Boxes] = []
    found = []
    for point, size in zip(points, sizes, strict=True):
        middles = np.array(point) + ways
        half = np.array(size) / 2
        boxes = np.concatenate([middles - half, middles + half], axis=1)
        taken = np.concatenate([fixed, *(each[None] for each in placed)])
        covered = _shared(boxes, taken).sum(axis=1)
        beyond = size[0] * size[1] - _shared(boxes, np.array([frame]))[:, 0]
        # Rounded, so that of two free places the nearer one is taken.
        best = int(np.argmin(np.round(covered + beyond, 6)))
        placed.append(boxes[best])
        found.append((float(middles[best, 0]), float(middles[best, 1])))
    return found


def _pixels(axes: Axes, values: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    if not values:
        return []
    return [(float(x), float(y)) for x, y in axes.transData.transform(values)]


def _shared(boxes: Boxes, others: Boxes) -> NDArray[np.float64]:
    """The areas that boxes, down, share with others, across."""
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    width, height = np.moveaxis(np.clip(high - low, 0, None), -1, 0)
    return np.asarray(width * height, dtype=np.float64)
