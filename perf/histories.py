"""Generated chat histories of the shape of LongMemEval-S, so that its cost can be measured without its data.

Like there, a history has 48 sessions of about 10 turns (500 kB of text, 7,600 different words). One of them answers its
question; the others come from a pool that all histories share. Everything follows from the seed.
"""

from __future__ import annotations

import json
import random
from bisect import bisect
from datetime import datetime, timedelta
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

SEED = 16
SESSIONS = 48
POOL = 60_000
"""Sessions to draw from: about one in six of 500 histories' sessions occurs twice, as in LongMemEval-S."""
_WORDS, _SENTENCES = 40_000, 20_000
_CONSONANTS = ("b", "c", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v", "w", "ch", "gr", "st", "tr")
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ea", "ie", "oo", "ou")
_ENDINGS = ("", "", "", "", "s", "ed", "ing", "er", "ly", "tion")
_RARE = ("café", "naïve", "“so to say”", "—", "🙂", "東京")
_TYPES = ("single-session-user", "multi-session", "temporal-reasoning", "knowledge-update")
_BEGINNING = datetime(2023, 5, 1, 8)


def history(n: int) -> dict[str, Any]:
    """Return a history and its question, as in LongMemEval's file."""
    chance = random.Random(f"{SEED} history {n}")
    thing, kind, place = (_words()[chance.randrange(1_000, _WORDS)] for _ in range(3))
    ids = [f"chat_{number}" for number in chance.sample(range(POOL), SESSIONS - 1)]
    sessions = [_session(id) for id in ids]
    answering = _session(f"answer_{n}")
    answering[0] |= {"content": f"I keep my {kind} {thing} in the {place}. {answering[0]['content']}"}
    answering[0] |= {"has_answer": True}
    position = chance.randrange(SESSIONS)
    ids.insert(position, f"answer_{n}")
    sessions.insert(position, answering)
    dates = [_BEGINNING + timedelta(hours=5 * day, minutes=chance.randrange(60)) for day in range(SESSIONS + 1)]
    return {
        "question_id": f"q{n}",
        "question_type": _TYPES[n % len(_TYPES)],
        "question": f"Where do I keep my {kind} {thing}?",
        "question_date": _written(dates[-1]),
        "answer": f"in the {place}",
        "answer_session_ids": [f"answer_{n}"],
        "haystack_dates": [_written(date) for date in dates[:-1]],
        "haystack_session_ids": ids,
        "haystack_sessions": sessions,
    }


def write_histories(file: Path, count: int) -> None:
    with file.open("w", encoding="utf-8") as out:
        for n in range(count):
            out.write(f"{', ' if n else '['}{json.dumps(history(n))}")
        out.write("]")


def _session(id: str) -> list[dict[str, Any]]:
    chance = random.Random(f"{SEED} {id}")
    turns: list[dict[str, Any]] = []
    for _ in range(chance.randint(2, 9)):
        for role, longest in (("user", 4), ("assistant", 31)):
            sentences = chance.choices(_sentences(), k=chance.randint(1, longest))
            turns.append({"role": role, "content": " ".join(sentences)})
    return turns


@cache
def _words() -> list[str]:
    """Return the vocabulary; the most frequent words come first and are the shortest."""
    chance = random.Random(f"{SEED} words")
    words: dict[str, None] = {}
    while len(words) < _WORDS:
        syllables = 1 + bisect((150, 4_000), len(words))
        word = "".join(chance.choice(_CONSONANTS) + chance.choice(_VOWELS) for _ in range(syllables))
        words[word + chance.choice(_ENDINGS)] = None
    return list(words)


@cache
def _sentences() -> list[str]:
    chance = random.Random(f"{SEED} sentences")
    frequencies = list(accumulate(1 / (rank + 2.7) ** 1.27 for rank in range(_WORDS)))
    sentences = []
    for n in range(_SENTENCES):
        words = chance.choices(_words(), cum_weights=frequencies, k=chance.randint(8, 26))
        if n % 150 == 0:
            words.append(chance.choice(_RARE))
        sentences.append(f"{' '.join(words).capitalize()}.")
    return sentences


def _written(date: datetime) -> str:
    return f"{date:%Y/%m/%d (%a) %H:%M}"
