"""A line search for the strong Wolfe conditions (Nocedal & Wright, 2006, algorithms 3.5 and
3.6).
"""

from __future__ import annotations

import rushlight as torch
from rushlight import Tensor


def cubic_minimum(x1, f1, g1, x2, f2, g2, bounds=None):
    """The minimum, within `bounds`, of the cubic with given values and slopes at two points."""
    low, high = bounds if bounds is not None else (min(x1, x2), max(x1, x2))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if square < 0:
        return (low + high) / 2.0
    d2 = square.sqrt() if isinstance(square, Tensor) else square**0.5
    if x1 <= x2:
        minimum = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        minimum = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(minimum, low), high)


class _Point:
    """A step length with the loss, the gradient and the slope there."""

    def __init__(self, t, loss: float, gradient: Tensor, slope: Tensor) -> None:
        self.t = t
        self.loss = loss
        self.gradient = gradient
        self.slope = slope


def strong_wolfe(
    evaluate,
    t,
    d: Tensor,
    f: float,
    g: Tensor,
    gtd: Tensor,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance_change: float = 1e-9,
    max_ls: int = 25,
) -> tuple:
    """Searches along `d` from loss `f`, gradient `g` and slope `gtd`, first at step `t`.

    `evaluate(t, d)` gives loss and gradient. The result is (loss, gradient, step, evaluations).
    """
    longest = d.abs().max()
    g = g.clone(memory_format=torch.contiguous_format)
    count = 0

    def at(t) -> _Point:
        nonlocal count
        loss, gradient = evaluate(t, d)
        count += 1
        return _Point(t, loss, gradient, gradient.dot(d))

    def too_high(point: _Point) -> bool:
        return point.loss > f + c1 * point.t * gtd

    def flat(point: _Point) -> bool:
        return abs(point.slope) <= -c2 * gtd

    def kept(point: _Point) -> _Point:
        # The next evaluation may reuse the gradient's memory.
        gradient = point.gradient.clone(memory_format=torch.contiguous_format)
        return _Point(point.t, point.loss, gradient, point.slope)

    # Extend until a bracket is found.
    previous = _Point(0, f, g, gtd)
    current = at(t)
    done = False
    bracket = None
    tries = 0
    while tries < max_ls:
        if too_high(current) or (tries > 1 and current.loss >= previous.loss):
            bracket = [previous, kept(current)]
            break
        if flat(current):
            bracket = [current]
            done = True
            break
        if current.slope >= 0:
            bracket = [previous, kept(current)]
            break
        bounds = (current.t + 0.01 * (current.t - previous.t), current.t * 10)
        longer = cubic_minimum(
            previous.t,
            previous.loss,
            previous.slope,
            current.t,
            current.loss,
            current.slope,
            bounds,
        )
        previous = kept(current)
        current = at(longer)
        tries += 1
    if bracket is None:
        bracket = [_Point(0, f, g, gtd), current]

    best = _narrow(
        bracket, done, at, too_high, flat, kept, longest, tolerance_change, tries, max_ls
    )
    return best.loss, best.gradient, best.t, count


def _narrow(bracket, done, at, too_high, flat, kept, longest, tolerance_change, tries, max_ls):
    """Shrinks the bracket around a point that meets the conditions; gives its best end."""
    stuck = False
    if len(bracket) == 1 or bracket[0].loss <= bracket[-1].loss:
        low, high = 0, len(bracket) - 1
    else:
        low, high = 1, 0
    while not done and tries < max_ls:
        ends = [point.t for point in bracket]
        if abs(ends[1] - ends[0]) * longest < tolerance_change:
            break
        first, second = bracket
        t = cubic_minimum(first.t, first.loss, first.slope, second.t, second.loss, second.slope)
        # Too near an end twice: step away from it, so that the bracket does shrink.
        margin = 0.1 * (max(ends) - min(ends))
        if min(max(ends) - t, t - min(ends)) < margin:
            if stuck or t >= max(ends) or t <= min(ends):
                if abs(t - max(ends)) < abs(t - min(ends)):
                    t = max(ends) - margin
                else:
                    t = min(ends) + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        point = at(t)
        tries += 1
        if too_high(point) or point.loss >= bracket[low].loss:
            bracket[high] = kept(point)
            low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
        else:
            if flat(point):
                done = True
            elif point.slope * (bracket[high].t - bracket[low].t) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = kept(point)
    return bracket[low]
