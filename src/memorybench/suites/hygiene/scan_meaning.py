"""Finds reworded duplicates and contradictions: pairs of statements with similar embeddings.

A file is compared with itself, with the files of its folder, and with the files of the folders below it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from difflib import SequenceMatcher
from pathlib import PurePath
from typing import TYPE_CHECKING

from msgspec import Struct

from memorybench.core.errors import BadInput
from memorybench.processes.programs import temporary_folder
from memorybench.suites.blocking import blocking
from memorybench.text.words import NEGATIONS, content_words, is_negated, stem, stems, words

from .scan_statements import NAMES_OF_IDS, RECORD_OF_AN_EVENT, RECORDS, Related, Relation, Statement, statements_in
from .scan_texts import Text

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from memorybench.suites.wiring import Wiring

DUPLICATE = 0.75
"""Two statements without different numbers are duplicates only if the cosine of their embeddings is at least this."""
CONTRADICTION = 0.6
"""Two statements with different numbers are a contradiction only if their cosine is at least this."""
NEGATION = 0.8
"""Two statements of which one is negated are a contradiction only if their cosine is at least this."""
ONE_FORM = 0.5
"""Two statements have the same wording if at least this share of their words is equal and in equal order."""
MOST_STATEMENTS = 10_000
"""Of one folder, at most this many statements are compared."""
_MOST_SIMILAR = 6
"""Each statement is compared word by word with the most similar ones: this many, including the statement itself."""
_BLOCK = 500
"""The number of rows of one matrix product, to limit its memory."""
_FEWEST_WORDS, _MOST_WORDS = 4, 40
"""A sentence with fewer or more words is not compared: the embeddings of long texts are always similar."""
_MOST_VALUES = 2
"""A sentence with more numbers than this lists measurements, and its numbers contradict no other sentence."""
_MOST_COPIES = 3
"""A text that occurs more often than this is not compared: it is a common value or from a template."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-ZÀ-Þ\"“])")
_USER = re.compile(r"user_?(?:id|name)?", re.I)
_WITH_DIGIT = re.compile(r"[\w#/.:,+-]*\d[\w/.:,-]*")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*(?:[a-z]{1,3})?")
_NUMBER_WORDS = {
    word: str(number)
    for number, word in enumerate(
        ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"], start=2
    )
}
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(_NUMBER_WORDS)})\b", re.I)
_CODE = re.compile(r"`[^`]*[^`\d.:][^`]*`")
"""A Markdown code span that is not a number."""
_PROPER = re.compile(r"(?<=[\w,;:] )[A-ZÀ-Þ]\w+")
_SUBJECT_WORDS = 2
"""A number with fewer words than this before it in its sentence identifies what the sentence is about."""
_FEWEST_COMMON = 2
"""The fewest word stems that related statements share: embeddings of any two sentences on one topic are similar."""
_HOW_OFTEN = NEGATIONS | {"always", "must", "should"}
_YEAR = re.compile(r"(?:19|20)\d\d")
_IS = re.compile(r"\b(?:is|are|ist|sind|est|es|é)\b|[:=]", re.I)


class Compared(Struct, frozen=True):
    statement: Statement
    text: str
    """The text that is embedded: the sentence; in a YAML file, the keys that lead to it and the sentence, or only the
    keys if the sentence has fewer than four words."""
    folder: PurePath
    keywords: frozenset[str]
    values: Mapping[str, frozenset[str]]
    """The numbers that are values, each with the words next to it."""
    naming: frozenset[str]
    """The numbers that identify a thing, such as 12 in "Order 12"."""
    negated: bool
    proper: frozenset[str]
    """The words that begin with a capital letter, except the first word."""
    names: frozenset[str]
    """The words of the keys that lead to a short YAML value, a setting; empty for other statements."""
    user: str
    """The user whom the record with the statement names; "" if it names none."""


def statements_to_compare(texts: Sequence[Text]) -> list[Compared]:
    """Return the statements to compare: sentences, list items and values of at least four words, and YAML settings."""
    users = {(text.file, _record(text)): text.text for text in texts if text.pointer and _USER.fullmatch(text.key)}
    compared = [one for text in texts for one in _compared_in(text, users.get((text.file, _record(text)), ""))]
    copies = Counter(one.text for one in compared)
    return [one for one in compared if copies[one.text] <= _MOST_COPIES]


def _record(text: Text) -> str:
    return text.pointer.rpartition("/")[0]


def _compared_in(text: Text, user: str) -> Iterator[Compared]:
    path = PurePath(text.file)
    if path.name.lower().endswith(RECORDS) or NAMES_OF_IDS.fullmatch(text.key):
        return
    for statement in statements_in(text):
        for start, sentence in _sentences(statement.text):
            names = _names(text) if path.suffix.lower() in (".yaml", ".yml") else ""
            length = len(words(sentence))
            if length > _MOST_WORDS or (length < _FEWEST_WORDS and not names) or RECORD_OF_AN_EVENT.match(sentence):
                continue
            if not start and _continues_a_line(text, statement):
                continue
            whole = f"{names}: {sentence}" if names else sentence
            keywords = _keywords(whole)
            numbers, naming = _numbers(sentence)
            proper = frozenset(word.lower() for word in _PROPER.findall(sentence))
            found = Statement(sentence, text, statement.start + start, statement.section, keywords)
            is_setting = names and length < _FEWEST_WORDS
            yield Compared(
                statement=found,
                text=names if is_setting else whole,
                folder=path.parent,
                keywords=keywords,
                values=numbers,
                naming=naming,
                negated=is_negated(words(whole)),
                proper=proper,
                names=_keywords(names) if is_setting else frozenset(),
                user=user,
            )


def _keywords(text: str) -> frozenset[str]:
    """Return the word stems that say what a text is about, without numbers and words of one or two letters."""
    kept = (word for word in content_words(text) if len(word) > 2 and word not in _HOW_OFTEN)
    return frozenset(word for word in stems(list(kept)) if not any(map(str.isdigit, word)))


def _numbers(text: str) -> tuple[dict[str, frozenset[str]], frozenset[str]]:
    """Return the numbers that are values, each with the words next to it, and those that identify a thing ("Order 12").

    A year, a number within a name, and a number at the beginning of a sentence identify a thing.
    """
    values: dict[str, frozenset[str]] = {}
    naming = set()
    text = _NUMBER_WORD.sub(lambda match: _NUMBER_WORDS[match[0].lower()], _CODE.sub("`", text))
    for match in _WITH_DIGIT.finditer(text):
        before, after = words(text[: match.start()]), words(text[match.end() :])
        number = match[0].rstrip(".,:")
        at_start = len(before) < _SUBJECT_WORDS and len(after) > 1
        if at_start or _YEAR.fullmatch(number) or not _NUMBER.fullmatch(number):
            naming.add(number)
        else:
            values[number] = frozenset(map(stem, [*before[-1:], *after[:1]]))
    return values, frozenset(naming)


def _continues_a_line(text: Text, statement: Statement) -> bool:
    """Return whether a statement continues the paragraph of the line before it."""
    if text.pointer or not statement.text[0].islower():
        return False
    return text.text[: statement.start].rpartition("\n")[2].strip() == ""


def _sentences(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for match in _SENTENCE_END.finditer(text):
        yield start, text[start : match.start()]
        start = match.end()
    yield start, text[start:]


def _names(text: Text) -> str:
    """Return the keys that lead to a value, as words."""
    parts = [part for part in text.pointer.split("/") if part and not part.isdigit()]
    return re.sub(r"[_-]+", " ", " ".join(parts))


class Meanings(Struct, frozen=True):
    """The statements to compare, and their embeddings."""

    statements: Sequence[Compared]
    vectors: Sequence[Sequence[float]]
    """One per statement; empty if there are fewer than two statements, which need no comparison."""


def read_meanings(texts: Sequence[Text], wiring: Wiring) -> Meanings | None:
    """Return the statements in these texts and their embeddings; None if the package for them is not installed."""
    statements = statements_to_compare(texts)
    if len(statements) < 2:
        return Meanings(statements, ())
    try:
        return Meanings(statements, blocking(_embed([one.text for one in statements], wiring)))
    except BadInput:
        return None


async def _embed(texts: Sequence[str], wiring: Wiring) -> Sequence[Sequence[float]]:
    with temporary_folder("memorybench-scan-") as folder:
        async with AsyncExitStack() as stack:
            embedder = await wiring.open_providers(stack, folder, run_id="scan").embedder()
            return await embedder.embed(texts)


def relations_by_meaning(meanings: Meanings) -> tuple[list[Related], int]:
    """Return pairs (relation, earlier, later), and how many statements were left out because there are too many.

    Each later statement is paired at most once, with the most similar earlier one.
    """
    compared = meanings.statements
    if len(compared) < 2:
        return [], 0
    import numpy as np

    vectors = np.asarray(meanings.vectors, np.float32)
    folders: dict[PurePath, list[int]] = defaultdict(list)
    for at, one in enumerate(compared):
        folders[one.folder].append(at)
    best: dict[int, tuple[float, Relation, int]] = {}
    left_out: set[int] = set()
    for folder, inside in folders.items():
        below = sorted(at for other, some in folders.items() if other.is_relative_to(folder) for at in some)
        left_out.update(inside[MOST_STATEMENTS:], below[MOST_STATEMENTS:])
        inside, below = inside[:MOST_STATEMENTS], below[:MOST_STATEMENTS]
        for at, other, cosine in nearest(vectors, inside, below, most=_MOST_SIMILAR, least=CONTRADICTION):
            earlier, later = min(at, other), max(at, other)
            if later in best and cosine <= best[later][0]:
                continue
            relation = _relation(compared[earlier], compared[later], cosine)
            if relation is not None:
                best[later] = (cosine, relation, earlier)
    pairs = [
        (relation, compared[earlier].statement, compared[later].statement)
        for later, (_, relation, earlier) in sorted(best.items())
    ]
    return pairs, len(left_out)


def nearest(
    vectors: npt.NDArray[np.float32],
    rows: Sequence[int],
    columns: Sequence[int],
    *,
    most: int,
    least: float,
    parts: npt.NDArray[np.int_] | None = None,
) -> Iterator[tuple[int, int, float]]:
    """Yield (row, column, cosine) for each row and at most `most` similar columns, from a cosine of `least` on.

    `parts` has the part of each vector; vectors of one part are not paired.
    """
    import numpy as np

    others = vectors[list(columns)].T
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        cosines = vectors[list(block)] @ others
        if parts is not None:
            cosines[parts[list(block), None] == parts[None, list(columns)]] = -1
        most = min(most, len(columns))
        for at, row, found in zip(block, cosines, np.argpartition(cosines, -most, axis=1)[:, -most:], strict=True):
            for column in found:
                cosine = float(row[column])
                if columns[column] != at and cosine >= least:
                    yield at, columns[column], cosine


def _relation(earlier: Compared, later: Compared, cosine: float) -> Relation | None:
    if earlier.user != later.user and earlier.user and later.user:
        return None
    if earlier.names or later.names:
        return _relation_to_setting(earlier, later, cosine)
    common = len(earlier.keywords & later.keywords)
    if common < _FEWEST_COMMON or _speak_of_two_things(earlier, later):
        return None
    if _differ(earlier, later):
        return "contradiction" if cosine >= CONTRADICTION else None
    if set(earlier.values) - set(later.values) and set(later.values) - set(earlier.values):
        return None
    if earlier.negated != later.negated:
        return "contradiction" if cosine >= NEGATION else None
    if earlier.proper - later.proper and later.proper - earlier.proper:
        return None
    return "near duplicate" if cosine >= DUPLICATE else None


def _differ(earlier: Compared, later: Compared) -> bool:
    """Return whether the statements have different numbers next to the same word ("port 80" and "port 81")."""
    if max(len(earlier.values), len(later.values)) > _MOST_VALUES:
        return False
    return any(
        one not in later.values and other not in earlier.values and beside & besides
        for one, beside in earlier.values.items()
        for other, besides in later.values.items()
    )


def _relation_to_setting(earlier: Compared, later: Compared, cosine: float) -> Relation | None:
    """Return "contradiction" if one is a setting, and the other a sentence with its keys and another value; else None.

    One of the two statements must be a setting.
    """
    setting, sentence = (earlier, later) if earlier.names else (later, earlier)
    value = setting.keywords - setting.names
    if _are_of_two_items(setting.statement.source, sentence.statement.source):
        return None
    if sentence.names or cosine < CONTRADICTION or len(setting.names) < 2 or not setting.names <= sentence.keywords:
        return None
    if setting.values or sentence.values:
        differ = setting.values and sentence.values and not set(setting.values) & set(sentence.values)
        return "contradiction" if differ else None
    return "contradiction" if value and not value & sentence.keywords and _IS.search(sentence.text) else None


def _are_of_two_items(first: Text, second: Text) -> bool:
    """Return whether two values belong to different items of one list, such as the names of two suppliers."""
    pairs = zip(first.pointer.split("/"), second.pointer.split("/"), strict=False)
    parts = next(((one, other) for one, other in pairs if one != other), ("", ""))
    return first.file == second.file and all(part.isdigit() for part in parts)


def _speak_of_two_things(earlier: Compared, later: Compared) -> bool:
    """Return whether two statements are about different things: same wording, but another number or name."""
    if earlier.naming - later.naming and later.naming - earlier.naming:
        return True
    before, after = words(earlier.text), words(later.text)
    steps = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    same = sum(end - start for kind, start, end, _, _ in steps if kind == "equal")
    if 2 * same < ONE_FORM * (len(before) + len(after)):
        return False
    return any(
        kind == "replace"
        and _keywords(" ".join(before[start:end])) - later.keywords
        and _keywords(" ".join(after[begin:stop])) - earlier.keywords
        for kind, start, end, begin, stop in steps
    )
