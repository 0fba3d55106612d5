"""How organisations share a number of places, so that none can take those of the others."""


def may_take_place(*, places: int, taken: int, own: int, organisations: int) -> bool:
    """Whether an organisation with `own` of the `taken` places may take another one.

    `organisations` counts those that hold a place or wait for one. Each has a right to an equal share, and to one place
    at least, even while all places are taken: calls that never return hold a place for minutes. What some leave free
    may be taken by any other.

    >>> may_take_place(places=8, taken=8, own=0, organisations=2)
    True
    >>> may_take_place(places=8, taken=8, own=4, organisations=2)
    False
    """
    return taken < places or own < max(1, places // max(1, organisations))
