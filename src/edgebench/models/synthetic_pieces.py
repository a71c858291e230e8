"""Pieces of words for a synthetic vocabulary: merges learned from a text, and others to fill it.

Both kinds of tokenizer take the same merges. A blank stands for whatever a kind writes for it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from heapq import heapify, heappop, heappush
from itertools import chain, islice, pairwise, product
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

    Pair: TypeAlias = "tuple[str, str]"

WORD: Final = re.compile(r" ?[A-Za-z]+")

LEARNED: Final = 2500
"""Merges that are learned: about four characters a token on English, as published models have.
More of them would make each word of the text a token of its own."""

SYLLABLES: Final = tuple(map("".join, product("bdfghjklmnprstvwyzcx", "aeiou")))

# It has no factor in common with the number of triples, so that every one comes once, and
# neighbours begin differently.
STRIDE: Final = 791_929


def merges(text: str, count: int) -> list[Pair]:
    """Pairs of pieces to be merged, the first one first; each makes a piece that is new.

    Learned are those that are most frequent in the words of `text`. The others build words of
    syllables that hardly occur anywhere, so that they fill a vocabulary and change little.

    Args:
        text: English.
        count: how many; at most a million.
    """
    made: dict[str, Pair] = {}
    for pair in chain(_learned(text, min(count, LEARNED)), _invented()):
        if len(made) == count:
            break
        made.setdefault("".join(pair), pair)
    return list(made.values())


def _learned(text: str, count: int) -> Iterator[Pair]:
    """Byte-pair encoding as it is always learned: the most frequent pair, again and again.

    Of pairs that are as frequent, the one that comes first in the order of code points is taken,
    so that the same text gives the same pairs everywhere.
    """
    frequencies = Counter(WORD.findall(text))
    words = [list(word) for word in frequencies]
    weights = list(frequencies.values())
    pairs: Counter[Pair] = Counter()
    places: defaultdict[Pair, set[int]] = defaultdict(set)
    for number, word in enumerate(words):
        for pair in pairwise(word):
            pairs[pair] += weights[number]
            places[pair].add(number)
    # With each change of a frequency an entry is added; those of before no longer agree.
    waiting = [(-frequency, pair) for pair, frequency in pairs.items()]
    heapify(waiting)
    for _ in range(count):
        while waiting and pairs.get(waiting[0][1]) != -waiting[0][0]:
            heappop(waiting)
        if not waiting:
            return
        best = heappop(waiting)[1]
        yield best
        changed: set[Pair] = set()
        for number in sorted(places.pop(best)):
            word, weight = words[number], weights[number]
            for pair in pairwise(word):
                pairs[pair] -= weight
                changed.add(pair)
            words[number] = word = _merged(word, best)
            for pair in pairwise(word):
                pairs[pair] += weight
                places[pair].add(number)
                changed.add(pair)
        for pair in changed:
            if pairs[pair]:
                heappush(waiting, (-pairs[pair], pair))
            else:
                del pairs[pair]


def _merged(word: list[str], pair: Pair) -> list[str]:
    made: list[str] = []
    for piece in word:
        if made and (made[-1], piece) == pair:
            made[-1] += piece
        else:
            made.append(piece)
    return made


def _invented() -> Iterator[Pair]:
    """Syllables, and words of two and three of them with and without a blank before."""
    size = len(SYLLABLES)
    yield from ((one[0], one[1]) for one in SYLLABLES)
    yield from ((" ", one) for one in SYLLABLES)
    for start in (" ", ""):
        yield from ((start + one, two) for one in SYLLABLES for two in SYLLABLES)
    for at in islice(range(0, STRIDE * size**3, STRIDE), size**3):
        first, rest = divmod(at % size**3, size * size)
        yield " " + SYLLABLES[first] + SYLLABLES[rest // size], SYLLABLES[rest % size]
