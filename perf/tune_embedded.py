"""Chooses the settings of hybrid by cross-validation: `python -m perf.tune_embedded DATA` (some minutes).

DATA holds `locomo/locomo10.json`, `locomo-errata/errors.json`, `longmemeval/longmemeval_oracle.json.gz` and
`longmemeval/longmemeval_s_subset.json.gz`. The subset has too few questions to choose by, so "mixed" hides the evidence
of all 500 oracle questions among 45 sessions each that the subset's haystacks hold for other questions.

There are ten folds: a conversation of LoCoMo and a tenth of LongMemEval's questions each; questions that share evidence
share a fold. For each fold, the other nine choose the settings, and only the questions of the fold are scored with
them. The settings that the providers have are those that all questions choose by the same procedure.

BM25 is computed here as FTS5 does, so that hundreds of settings are quick to try. The one difference: a window of 60
words is 60 words of FTS5 here, and 60 words between blanks in the provider.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import re
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memorybench.core.conversation import Haystack, Session, Turn
from memorybench.embedding.local import open_local_embedder
from memorybench.providers.bm25 import LexicalSettings
from memorybench.providers.hybrid import best_of_session, is_named
from memorybench.providers.storage.turns import StoredTurn, stored_turns
from memorybench.text.words import content_words, words

RETRIEVED = 50
DISTRACTORS = 45
FOLDS = 10
SEED = 7
FAR = 1e4
"""More than any difference of two scores: sorts within questions, ten times as fast as by two keys."""

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Question:
    text: str
    evidence: frozenset[str]
    """Ids of turns (LoCoMo) or of sessions (LongMemEval)."""
    tags: frozenset[str] = frozenset()
    """`errata`: the audit corrects this question; `abstention`: its answer is that the history does not say."""


@dataclass(frozen=True)
class Task:
    name: str
    fold: int
    haystack: Haystack
    questions: tuple[Question, ...]


class Choice(NamedTuple):
    """What is chosen, with the values before any tuning."""

    terms: str = "stems"
    around_turns: int = 1
    around_words: int = 60
    around_weight: float = 0.5
    before_weight: float = 0.5
    after_weight: float = 0.0
    fusion: str = "sum"
    dense_weight: float = 0.5
    speaker_weight: float = 0.0
    session_weight: float = 0.0


TERMS: Mapping[str, tuple[str, Callable[[str], list[str]]]] = {
    "stems": ("porter unicode61 remove_diacritics 2", content_words),
    "words": ("unicode61 remove_diacritics 2", content_words),
    "stems and stop words": ("porter unicode61 remove_diacritics 2", words),
}
"""Tokenizer of FTS5, and the words of a question that are searched."""

VALUES: Mapping[str, Sequence[Any]] = {
    "terms": tuple(TERMS),
    "around_turns": (1, 2, 3),
    "around_words": (40, 60, 80, 120),
    "around_weight": (0.3, 0.5, 0.7),
    "before_weight": (0.0, 0.25, 0.5, 0.75, 1.0),
    "after_weight": (0.0, 0.25, 0.5, 0.75),
    "fusion": ("sum", "reciprocal ranks"),
    "dense_weight": (0.4, 0.5, 0.6, 0.7),
    "speaker_weight": (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5),
    "session_weight": (0.0, 0.2, 0.4, 0.6, 0.8),
}
WINDOWS = [(turns, size) for turns in VALUES["around_turns"] for size in VALUES["around_words"]]


def locomo(file: Path, errata: frozenset[str] = frozenset()) -> Iterator[Task]:
    """The clean rule: ids repaired, unresolvable turns dropped, questions without evidence left out."""
    for number, sample in enumerate(json.loads(file.read_text(encoding="utf-8"))):
        spoken = sample["conversation"]
        sessions = tuple(
            Session(id=key, turns=tuple(_locomo_turn(turn) for turn in spoken[key]))
            for key in spoken
            if re.fullmatch(r"session_\d+", key)
        )
        known = {turn.id or "" for session in sessions for turn in session.turns}
        questions = [
            Question(
                qa["question"],
                frozenset(known & _evidence(qa["evidence"])),
                frozenset({"errata"} if f"locomo_{number}_qa{place}" in errata else ()),
            )
            for place, qa in enumerate(sample["qa"])
        ]
        haystack = Haystack(id=sample["sample_id"], sessions=sessions)
        yield Task("LoCoMo", number % FOLDS, haystack, tuple(q for q in questions if q.evidence))


def _locomo_turn(turn: Mapping[str, Any]) -> Turn:
    caption = turn.get("blip_caption")
    content = f"{turn['text']} [shares a photo: {caption}]" if caption else turn["text"]
    return Turn(role="user", speaker=turn["speaker"], content=content, id=turn["dia_id"])


def _evidence(cited: Iterable[str]) -> set[str]:
    return {f"D{session}:{int(turn)}" for text in cited for session, turn in re.findall(r"D:?(\d+):(\d+)", text)}


def longmemeval(file: Path, name: str = "S") -> Iterator[Task]:
    folds: dict[str, int] = {}  # session → fold
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for number, item in enumerate(json.load(lines)):
            evidence = frozenset(item["answer_session_ids"])
            fold = next((folds[key] for key in sorted(evidence) if key in folds), number % FOLDS)
            folds.update(dict.fromkeys(evidence, fold))
            spoken = dict(zip(item["haystack_session_ids"], item["haystack_sessions"], strict=True))
            sessions = tuple(
                Session(id=key, turns=tuple(Turn(role=turn["role"], content=turn["content"]) for turn in turns))
                for key, turns in spoken.items()
            )
            tags = frozenset({"abstention"} if "_abs" in item["question_id"] else ())
            haystack = Haystack(id=item["question_id"], sessions=sessions)
            yield Task(name, fold, haystack, (Question(item["question"], evidence, tags),))


def load_tasks(data: Path) -> list[Task]:
    errata = json.loads((data / "locomo-errata/errors.json").read_text(encoding="utf-8"))
    conversations = locomo(data / "locomo/locomo10.json", frozenset(row["question_id"] for row in errata))
    oracle = list(longmemeval(data / "longmemeval/longmemeval_oracle.json.gz", "mixed"))
    folds = {task.haystack.id: task.fold for task in oracle}
    subset = [
        replace(task, fold=folds[task.haystack.id])
        for task in longmemeval(data / "longmemeval/longmemeval_s_subset.json.gz")
    ]
    return [*conversations, *subset, *_mixed(oracle, subset)]


def _mixed(oracle: Iterable[Task], subset: Iterable[Task]) -> Iterator[Task]:
    others = {
        session.id: session for task in subset for session in task.haystack.sessions if "answer" not in session.id
    }
    chance = random.Random(SEED)
    for task in oracle:
        hiding = [others[key] for key in chance.sample(sorted(others), DISTRACTORS)]
        yield replace(task, haystack=Haystack(id=task.haystack.id, sessions=(*task.haystack.sessions, *hiding)))


class Corpus:
    """The turns of all sessions, once each: one session hides the evidence of many questions."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        self.turns: list[StoredTurn] = []
        self.rows: dict[Session, range] = {}
        for session in (session for task in tasks for session in task.haystack.sessions):
            if session not in self.rows:
                turns = stored_turns(session)
                self.rows[session] = range(len(self.turns), len(self.turns) + len(turns))
                self.turns += turns

    def haystack_rows(self, haystack: Haystack) -> Ints:
        ordered = sorted(haystack.sessions, key=lambda session: session.id)
        return np.array([row for session in ordered for row in self.rows[session]])


class Occurrences:
    """The places of the questions' words in the corpus, as FTS5 splits and stems them."""

    def __init__(self, corpus: Corpus, questions: Sequence[str], terms: str) -> None:
        tokenizer, split = TERMS[terms]
        database = sqlite3.connect(":memory:")
        for table, texts in (
            ("turns", (turn.text for turn in corpus.turns)),
            ("questions", (" ".join(split(question)) for question in questions)),
        ):
            database.execute(f"CREATE VIRTUAL TABLE {table} USING fts5(text, content='', tokenize='{tokenizer}')")
            database.executemany(f"INSERT INTO {table} (rowid, text) VALUES (?, ?)", enumerate(texts))
            database.execute(f"CREATE VIRTUAL TABLE {table}_terms USING fts5vocab({table}, instance)")
        self.by_question: dict[int, dict[str, None]] = {}
        for question, term in database.execute("SELECT doc, term FROM questions_terms"):
            self.by_question.setdefault(question, {})[term] = None
        lengths = np.zeros(len(corpus.turns), np.int64)
        for row, count in database.execute("SELECT doc, count(*) FROM turns_terms GROUP BY doc"):
            lengths[row] = count
        self.ends = np.cumsum(lengths)
        self.starts = self.ends - lengths
        self.places: dict[str, Ints] = {}
        for term in {term for terms in self.by_question.values() for term in terms}:
            found = database.execute("SELECT doc, offset FROM turns_terms WHERE term = ?", (term,)).fetchall()
            self.places[term] = np.sort(np.array([self.starts[row] + offset for row, offset in found], np.int64))
        database.close()


@dataclass
class Matches:
    """The (question, turn) pairs with a common word, one row per word."""

    pair: Ints
    word: Ints
    question_of_word: Ints
    own: NDArray[np.uint8]
    around: Sequence[NDArray[np.uint8]]
    """Occurrences in each of WINDOWS."""
    own_length: Floats
    """Per pair, as `around_lengths`."""
    around_lengths: Sequence[Floats]


@dataclass
class Pairs:
    """Arrays with one element per question and turn of its haystack, question after question."""

    question: Ints
    session: Ints
    gold: NDArray[np.bool_]
    named_speaker: Floats
    cosine: Floats
    """Of the question and the turn, and of neighbouring turns: what the cosine with neighbours is computed from."""
    before_dot: Floats
    across_dot: Floats
    matches: Mapping[str, Matches]
    starts: Ints = field(init=False)
    sizes: Ints = field(init=False)
    session_starts: Ints = field(init=False)
    session_sizes: Ints = field(init=False)

    def __post_init__(self) -> None:
        self.starts = np.flatnonzero(np.diff(self.question, prepend=-1))
        self.sizes = np.diff(self.starts, append=len(self.question))
        self.session_starts = np.flatnonzero(np.diff(self.session, prepend=-1))
        self.session_sizes = np.diff(self.session_starts, append=len(self.session))

    def before(self, values: Floats) -> Floats:
        """Return the value of the turn before, 0 for the first of a session."""
        return np.where(np.diff(self.session, prepend=-1) == 0, np.roll(values, 1), 0)

    def after(self, values: Floats) -> Floats:
        return np.where(np.diff(self.session, append=-1) == 0, np.roll(values, -1), 0)


def pair_up(tasks: Sequence[Task], corpus: Corpus, vectors: Floats, question_vectors: Floats) -> Pairs:
    columns: dict[str, list[NDArray[Any]]] = {}
    corpus_rows: list[Ints] = []
    number = sessions = 0
    for task in tasks:
        rows = corpus.haystack_rows(task.haystack)
        turns = [corpus.turns[row] for row in rows]
        new_session = np.array([True] + [a.session != b.session for a, b in pairwise(turns)])
        near = vectors[rows]
        for question in task.questions:
            corpus_rows.append(rows)
            ids = ((turn.turn if task.name == "LoCoMo" else turn.session) for turn in turns)
            for name, values in {
                "question": np.full(len(rows), number),
                "session": sessions + np.cumsum(new_session),
                "gold": np.array([id in question.evidence for id in ids]),
                "named_speaker": np.array([is_named(turn.speaker, question.text) for turn in turns], np.float32),
                "cosine": near @ question_vectors[number],
                "before_dot": np.r_[np.float32(0), (near[1:] * near[:-1]).sum(1)],
                "across_dot": np.r_[np.float32(0), (near[2:] * near[:-2]).sum(1), np.float32(0)],
            }.items():
                columns.setdefault(name, []).append(values)
            number, sessions = number + 1, sessions + int(new_session.sum())
    texts = [question.text for task in tasks for question in task.questions]
    matches = {terms: match(Occurrences(corpus, texts, terms), corpus, corpus_rows) for terms in TERMS}
    return Pairs(**{name: np.concatenate(values) for name, values in columns.items()}, matches=matches)


def match(occurrences: Occurrences, corpus: Corpus, corpus_rows: Sequence[Ints]) -> Matches:
    starts, ends = occurrences.starts, occurrences.ends
    first, last = (np.zeros(len(corpus.turns), np.int64) for _ in range(2))
    for session in corpus.rows.values():
        first[session], last[session] = session.start, session.stop - 1
    every = np.arange(len(corpus.turns))
    lows = [np.maximum(starts - size, starts[np.maximum(every - turns, first)]) for turns, size in WINDOWS]
    highs = [np.minimum(ends + size, ends[np.minimum(every + turns, last)]) for turns, size in WINDOWS]
    edges, widest = np.stack([starts, ends, *lows, *highs]), np.stack([lows[-1], highs[-1]])
    pair, word, counts = [], [], []
    question_of_word: list[int] = []
    offset = 0
    for question, rows in enumerate(corpus_rows):
        for term in occurrences.by_question.get(question, ()):
            places = occurrences.places[term]
            (found,) = np.nonzero(np.diff(np.searchsorted(places, widest[:, rows]), axis=0)[0])
            own_start, own_end, *windows = np.searchsorted(places, edges[:, rows[found]])
            low, high = windows[: len(WINDOWS)], windows[len(WINDOWS) :]
            both = [own_start - a + b - own_end for a, b in zip(low, high, strict=True)]
            pair.append(offset + found)
            word.append(np.full(len(found), len(question_of_word)))
            question_of_word.append(question)
            counts.append(np.stack([own_end - own_start, *both]).astype(np.uint8))
        offset += len(rows)
    own, *around = np.concatenate(counts, axis=1)
    rows = np.concatenate(corpus_rows)
    around_lengths = [
        (starts - low + high - ends).astype(np.float32)[rows] for low, high in zip(lows, highs, strict=True)
    ]
    own_length = (ends - starts).astype(np.float32)[rows]
    keys = np.concatenate(pair), np.concatenate(word), np.array(question_of_word)
    return Matches(*keys, own, around, own_length, around_lengths)


class Scores:
    """Scores all pairs with any settings."""

    def __init__(self, pairs: Pairs) -> None:
        self.pairs = pairs
        self.lexical = lru_cache(24)(self._lexical)
        self.dense = lru_cache(24)(self._dense)

    def of(self, choice: Choice) -> Floats:
        lexical = self.lexical(choice.terms, choice.around_turns, choice.around_words, choice.around_weight)
        dense = self.dense(choice.before_weight, choice.after_weight)
        if choice.fusion != "sum":  # Cormack et al. 2009
            lexical, dense = ((1 / (60 + self.ranks(part))).astype(np.float32) for part in (lexical, dense))
        scores = (1 - choice.dense_weight) * self._standardize(lexical) + choice.dense_weight * self._standardize(dense)
        scores += choice.speaker_weight * self.pairs.named_speaker
        if choice.session_weight:
            scores += choice.session_weight * best_of_session(scores, self.pairs.session_sizes)
        return scores

    def _lexical(self, terms: str, around_turns: int, around_words: int, around_weight: float) -> Floats:
        """FTS5's bm25() of two columns."""
        pairs, matches, settings = self.pairs, self.pairs.matches[terms], LexicalSettings()
        window = WINDOWS.index((around_turns, around_words))
        count = matches.own + np.float32(around_weight) * matches.around[window]
        found = np.bincount(matches.word[count > 0], minlength=len(matches.question_of_word))
        total = pairs.sizes[matches.question_of_word]
        idf = np.maximum(1e-6, np.log((total - found + 0.5) / (found + 0.5)))
        length = matches.own_length + matches.around_lengths[window]
        average = np.repeat(np.add.reduceat(length, pairs.starts) / pairs.sizes, pairs.sizes)
        penalty = settings.k1 * (1 - settings.b + settings.b * length / average)
        score = idf[matches.word] * count * (settings.k1 + 1) / (count + penalty[matches.pair])
        return np.bincount(matches.pair, weights=score, minlength=len(length)).astype(np.float32)

    def _dense(self, before: float, after: float) -> Floats:
        """The cosine of the question and the sum of a turn's vector and its weighted neighbours'."""
        pairs = self.pairs
        dots = pairs.before(np.ones_like(pairs.cosine)), pairs.after(np.ones_like(pairs.cosine))
        before_dot = pairs.before_dot * dots[0]
        square = 1 + before**2 * dots[0] + after**2 * dots[1] + 2 * before * before_dot
        square += 2 * after * pairs.after(before_dot) + 2 * before * after * pairs.across_dot * dots[0] * dots[1]
        along = pairs.cosine + before * pairs.before(pairs.cosine) + after * pairs.after(pairs.cosine)
        cosine: Floats = along / np.sqrt(np.maximum(square, 1e-6))
        return cosine

    def _standardize(self, scores: Floats) -> Floats:
        pairs = self.pairs
        centred = scores - np.repeat(np.add.reduceat(scores, pairs.starts) / pairs.sizes, pairs.sizes)
        deviation = np.sqrt(np.add.reduceat(centred**2, pairs.starts) / pairs.sizes)
        standard: Floats = centred / np.repeat(np.where(deviation > 0, deviation, np.float32(1)), pairs.sizes)
        return standard.astype(np.float32)

    def ranks(self, scores: Floats) -> Ints:
        """Return the rank of each turn for its question, from 0."""
        order = np.argsort(FAR * self.pairs.question - scores)
        ranks = np.empty(len(scores), np.int64)
        ranks[order] = np.arange(len(scores)) - np.repeat(self.pairs.starts, self.pairs.sizes)
        return ranks


class Figures:
    """The values of each question for settings, computed once each."""

    def __init__(self, tasks: Sequence[Task], scores: Scores) -> None:
        asked = [(task, question) for task in tasks for question in task.questions]
        self.fold = np.array([task.fold for task, _ in asked])
        self.name = np.array([task.name for task, _ in asked])
        self.tagged = np.array([bool(question.tags) for _, question in asked])
        self._scores = scores
        self._values: dict[Choice, Mapping[str, Floats]] = {}

    def of(self, choice: Choice) -> Mapping[str, Floats]:
        if choice not in self._values:
            self._values[choice] = self._measure(self._scores.ranks(self._scores.of(choice)))
        return self._values[choice]

    def _measure(self, ranks: Ints) -> Mapping[str, Floats]:
        pairs, questions = self._scores.pairs, len(self.fold)
        turn_hits = np.bincount(pairs.question[pairs.gold & (ranks < 10)], minlength=questions)
        first = np.minimum.reduceat(ranks, pairs.session_starts)  # a session ranks where its best turn ranks
        question, gold = pairs.question[pairs.session_starts], pairs.gold[pairs.session_starts]
        order = np.lexsort((first, question))
        place = np.empty_like(first)
        place[order] = np.arange(len(first)) - np.searchsorted(question, question[order])
        hits = np.bincount(question[gold & (place < 5) & (first < RETRIEVED)], minlength=questions)
        return {
            "turn recall@10": turn_hits / np.maximum(1, np.bincount(pairs.question[pairs.gold], minlength=questions)),
            "recall_any@5": (hits > 0).astype(np.float32),
            "recall_all@5": (hits == np.bincount(question[gold], minlength=questions)).astype(np.float32),
        }

    def goal(self, choice: Choice, questions: NDArray[np.bool_]) -> float:
        """What is maximised: the mean of LoCoMo's figure and those of mixed."""
        values = self.of(choice)
        hidden = questions & (self.name == "mixed")
        turns = values["turn recall@10"][questions & (self.name == "LoCoMo")].mean()
        return float(turns + values["recall_any@5"][hidden].mean() + values["recall_all@5"][hidden].mean()) / 3

    def choose(self, questions: NDArray[np.bool_]) -> Choice:
        """Change one setting at a time as long as a change helps."""
        best, before = Choice(), None
        while best != before:
            before = best
            for name, values in VALUES.items():
                options = [best, *(best._replace(**{name: value}) for value in values)]
                best = max(options, key=lambda option: self.goal(option, questions))  # the first of equals
        return best

    def rows(self, values: Mapping[str, Floats]) -> Iterator[tuple[str, float, int]]:
        for name, measures in (
            ("LoCoMo", ["turn recall@10"]),
            ("S", ["recall_any@5", "recall_all@5"]),
            ("mixed", ["recall_any@5", "recall_all@5"]),
        ):
            every = self.name == name
            parts = [("", every), (", no errata or abstention", every & ~self.tagged)]
            for measure in measures:
                for part, among in parts:
                    yield f"{name} {measure}{part}", float(values[measure][among].mean()), int(among.sum())


async def embed(texts: Sequence[str]) -> Floats:
    async with open_local_embedder() as embedder:
        return np.asarray(await embedder.embed(texts), np.float32)


def main(data: Path) -> None:
    tasks = load_tasks(data)
    corpus = Corpus(tasks)
    vectors = asyncio.run(embed([turn.text for turn in corpus.turns]))
    questions = asyncio.run(embed([question.text for task in tasks for question in task.questions]))
    figures = Figures(tasks, Scores(pair_up(tasks, corpus, vectors, questions)))
    out_of_fold = {name: np.zeros_like(values) for name, values in figures.of(Choice()).items()}
    for fold in range(FOLDS):
        choice = figures.choose(figures.fold != fold)
        print(f"fold {fold}: {choice}", flush=True)
        for name, values in figures.of(choice).items():
            out_of_fold[name][figures.fold == fold] = values[figures.fold == fold]
    print(f"all questions: {figures.choose(figures.fold >= 0)}")
    print(f"{'':44} {'before':>7}  {'out of fold':>11}")
    for (name, before, count), (_, after, _) in zip(
        figures.rows(figures.of(Choice())), figures.rows(out_of_fold), strict=True
    ):
        print(f"{name:44} {before:7.4f}  {after:11.4f}  n = {count}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
