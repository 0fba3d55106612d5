"""Taking groups apart where members contradict each other: the disagreement is for a person to settle."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Places = NDArray[np.int64]
Opposed = Callable[[int, int], bool]

HEARD = 500  # members of a group that each is compared with; in a larger group, those next to its middle


def apart(vectors: Vectors, labels: Places, opposed: Opposed) -> Places:
    """The labels, with new ones for those who contradict their group."""
    result = labels.copy()
    fresh = int(labels.max(initial=-1)) + 1
    order = np.argsort(labels, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
        if len(members) > 1:
            for camp in _camps(vectors, members, opposed)[1:]:
                result[camp] = fresh
                fresh += 1
    return result


def _camps(vectors: Vectors, members: Places, opposed: Opposed) -> list[list[int]]:
    """Members that agree. Who is contradicted most speaks first, who takes no side joins those next to them."""
    rows = vectors[members]
    central = members[np.argsort(-(rows @ rows.mean(axis=0)), kind="stable")].tolist()
    voices = central[:HEARD]
    against: dict[int, set[int]] = {each: set() for each in central}
    for at, one in enumerate(central):
        for other in voices[:at]:
            if opposed(one, other):
                against[one].add(other)
                against[other].add(one)
    if not any(against.values()):
        return [central]
    camps: list[list[int]] = []
    for each in sorted(central, key=lambda one: -len(against[one])):
        open_to = [camp for camp in camps if against[each].isdisjoint(camp)]
        if open_to:
            max(open_to, key=lambda camp: _closeness(vectors, each, camp)).append(each)
        else:
            camps.append([each])
    return camps


def _closeness(vectors: Vectors, one: int, camp: list[int]) -> tuple[float, int]:
    return round(float((vectors[camp] @ vectors[one]).mean()), 4), len(camp)
