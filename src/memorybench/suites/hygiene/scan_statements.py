"""Finds statements that repeat, may contradict each other, or may be out of date.

Two statements are compared only if they share a rare word, so the time grows with the number of statements and not with
the number of pairs.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from difflib import SequenceMatcher
from math import ceil
from typing import Literal

from msgspec import Struct

from memorybench.text.words import content_words, is_negated, stems, words

from .scan_texts import Text

_SIMILAR = 0.8
"""Two statements are near duplicates only if they share at least this part of their content words (Jaccard)."""
_RELATED = 0.5
"""Two statements are compared word by word only if they share at least this part of their content words."""
_MOST_COMPARED = 30
"""For each of its rare words, a statement is compared with at most this many earlier statements."""
_FEWEST_WORDS, _FEWEST_ELSEWHERE = 3, 6
"""The fewest content words of a statement that is compared, and the fewest it must share with another group."""
_MOST_COPIES = 3
"""A statement that is in more files than this comes from a template and is ignored."""

_STATEMENT = re.compile(r"^[ \t]*(?:[-*+•>]|\d+[.)])?[ \t]*(?:\[[ xX]\][ \t]*)?(?P<text>[^\n]+)$", re.M)
_NOT_A_STATEMENT = re.compile(r"[#|<`=\-~{}\[\]$/\\]|import |from |def |class |return |https?:|\w+\(|--")
_FENCE = re.compile(r"^[ \t]*(```|~~~)[^\n]*\n.*?(?:^[ \t]*\1|\Z)", re.M | re.S)
_HEADING = re.compile(r"^(?:#{1,6} .*|\[{1,2}[^\[\]\n]+\]{1,2}[ \t]*)$", re.M)
"""A Markdown heading, or a section header of a TOML or INI file."""
_KEY_VALUE = re.compile(
    r"\*{0,2}(?P<key>[A-Za-zÀ-ÿ][\wÀ-ÿ' /-]{1,40}?)\*{0,2}\s*[:=]\*{0,2}\s+(?P<value>\S[^\n]{0,80})"
)
_NO_ATTRIBUTE = re.compile(
    r"note|notes|example|todo|tip|hint|warning|important|q|a|question|answer|why|how|what|see|use|run|step.*|user|"
    r"assistant|"
    r"e\.?g|source|reason|decision|result|action|fixed|added|changed|removed|feat|fix|chore|docs|link|update|option.*",
    re.I,
)
_FUNCTIONAL = re.compile(
    r"\b(?:is|are|was|lives? in|lives? at|works? (?:at|for|as)|born|located|named|called|runs? on|listens? on|"
    r"hosted|deployed|"
    r"moved to|due|starts?|ends?|expires?|costs?|set to|defaults? to|prefers?|married to|allerg\w+|reports? to|"
    r"owned by|weighs?|"
    r"ist|wohnt|arbeitet|heißt|est|habite|travaille|es|vive|trabaja|é|mora|trabalha)\b",
    re.I,
)
_PRONOUN = re.compile(
    r"(?:it|this|that|there|these|those|he|she|they|we|which|what|here|one|each|some|es|das|ce|eso|isso)\b", re.I
)

_MONTHS = {
    name: number
    for number, names in enumerate(
        ("january januar janvier enero janeiro jan", "february februar février febrero fevereiro feb",
         "march märz mars marzo março mar", "april avril abril apr", "may mai mayo maio",
         "june juni juin junio junho jun",
         "july juli juillet julio julho jul", "august août agosto aug",
         "september septembre septiembre setembro sep sept",
         "october oktober octobre octubre outubro oct okt", "november novembre noviembre novembro nov",
         "december dezember décembre diciembre dezembro dec dez"), start=1,
    )
    for name in names.split()
}  # fmt: skip
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_DATE = re.compile(
    rf"(?P<y>\d{{4}})-(?P<m>\d\d)-(?P<d>\d\d)|(?P<d2>\d{{1,2}})\.(?P<m2>\d{{1,2}})\.(?P<y2>20\d\d)|"
    rf"(?P<d3>\d{{1,2}})(?:st|nd|rd|th|\.)?\s+(?:de\s+|of\s+)?(?P<n3>{_MONTH})\.?,?\s+(?:de\s+)?(?P<y3>20\d\d)|"
    rf"(?P<n4>{_MONTH})\.?\s+(?P<d4>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<y4>20\d\d)|"
    rf"(?P<n5>{_MONTH})\.?\s+(?:de\s+)?(?P<y5>20\d\d)|"
    r"Q(?P<q6>[1-4])[ /-]?(?P<y6>20\d\d)|(?P<y7>20\d\d)(?![\w-])",
    re.I,
)
_ENDS = re.compile(
    r"\b(?:(?:by|before)(?=\s+(?:the\s+)?(?:(?:early|mid|late|end|start|middle|beginning)(?:\s+of)?\s+)?$)|"
    r"until|till|through|valid|expires?|expiring|expiry|deadline|due|ends?|ending|last day|"
    r"no later than|"
    r"will|planned|plans? to|scheduled|upcoming|going to|next|bis|gültig|läuft|frist|wird|jusqu'?|expire|d'ici|"
    r"hasta|vence|caduca|até|"
    r"expira|prazo)\b[^\n.;]{0,60}$",
    re.I,
)
_AS_OF = re.compile(
    r"\b(?:as of|as at|currently,?|current as of|last (?:updated|checked|verified|reviewed)|right now|for now|"
    r"at the moment|stand|aktuell|derzeit|"
    r"à la date|en date|actuellement|a fecha de|actualmente|atualmente)\b\s*(?:\(?(?:in|since|on|of|seit|le|de|"
    r":|-))?[\s(:]*$",
    re.I,
)
_RELATIVE = re.compile(
    r"\b(?:tomorrow|tonight|later today|next (?:week|month|year|quarter|monday|tuesday|wednesday|thursday|friday|"
    r"saturday|sunday)|"
    r"this (?:week|weekend|afternoon|evening)|in (?:two|three|a few|\d) (?:days|weeks)|morgen (?:um|früh|ist|hat|"
    r"kommt)|nächste[nr]? (?:woche|monat|jahr)|demain|"
    r"la semaine prochaine|mañana (?:a|hay|tiene)|la próxima semana|amanhã|na próxima semana)\b",
    re.I,
)
_NAMED_BY_DATE = re.compile(
    r"\b(?:this (?:week|weekend|month|sprint)|today|tonight|tomorrow|next (?:week|month)|diese woche|heute|morgen|"
    r"cette semaine|aujourd'hui|demain|esta semana|hoy|mañana|hoje|amanhã)\s*[(,:–-]\s*(?:of\s+|from\s+)?$",
    re.I,
)
"""Matches the text before a date that says which day or week is meant, such as "this week (" in "this week (May 3)"."""
_RECURRING = re.compile(
    r"\b(?:every|each|always|usually|if|when|whenever|unless|before|after|should|must|never|e\.g\.|example|jede\w*|"
    r"immer|wenn|chaque|toujours|"
    r"cada|siempre|sempre|say|says|said|asks?|like)\b|[\"“`]",
    re.I,
)
_MONTH_LONG = timedelta(days=31)
_OLD = timedelta(days=365)
"""A statement "as of" a date may be out of date if the date is longer ago than this."""

RECORDS = (".log", ".csv", ".tsv", ".html", ".xml")
"""Suffixes of files whose lines are records or markup, which may repeat and differ. They are not compared."""
RECORD_OF_AN_EVENT = re.compile(r"\W*(?:\d{4}-\d\d-\d\d|\d{1,2}[:.]\d\d\b|\[?\d{1,2}[./]\d{1,2}[./])|.*\blevel=")
"""Matches a line of a log: it begins with a date or time, or contains `level=`."""
NAMES_OF_IDS = re.compile(r"(?:.*[_-])?(?:id|uuid|hash|sha\d*|date|time|timestamp|ts|at|url|path)", re.I)
"""Keys whose values describe a record, such as its id, date or path, and are not compared."""
Relation = Literal["duplicate", "near duplicate", "contradiction"]


class Statement(Struct, frozen=True):
    text: str
    source: Text
    start: int
    """The offset in the source text, in characters."""
    section: str
    keywords: frozenset[str]


Related = tuple[Relation, Statement, Statement]
"""A relation, the earlier statement and the later statement."""


def statements_in(source: Text) -> Iterator[Statement]:
    """Yield the lines, list items or values of a text that are statements, not headings, tables or code."""
    if not source.is_statement:
        return
    if source.pointer and len(source.text) <= 2_000 and "\n" not in source.text.strip():
        yield _statement(source, source.text, 0, "")
        return
    body = _FENCE.sub(lambda fence: re.sub(r"[^\n]", " ", fence[0]), source.text)
    headings = [(match.start(), match[0]) for match in _HEADING.finditer(body)]
    section, at = "", 0
    for match in _STATEMENT.finditer(body):
        while at < len(headings) and headings[at][0] <= match.start():
            section, at = headings[at][1], at + 1
        if match["text"].strip() and not _NOT_A_STATEMENT.match(match["text"].strip()):
            yield _statement(source, match["text"].strip(), match.start("text"), section)


def _statement(source: Text, text: str, start: int, section: str) -> Statement:
    return Statement(text, source, start, section, frozenset(stems(content_words(text))))


def find_relations(statements: Sequence[Statement]) -> list[Related]:
    """Return triples (relation, earlier, later): similar statements, then lines `Name: value` with different values.

    A statement is the later one of at most one pair of similar statements. Lines of logs and tables, ids, and
    statements that occur in many files are ignored.
    """
    files: dict[str, set[str]] = defaultdict(set)
    for statement in statements:
        files[" ".join(words(statement.text))].add(statement.source.file)
    compared = [
        one
        for one in statements
        if not one.source.file.lower().endswith(RECORDS)
        and not NAMES_OF_IDS.fullmatch(one.source.key)
        and not RECORD_OF_AN_EVENT.match(one.text)
        and len(files[" ".join(words(one.text))]) <= _MOST_COPIES
    ]
    related: dict[int, Related] = {}
    for at, other in _pairs(compared):
        if at not in related and (relation := _relation(compared[other], compared[at])) is not None:
            related[at] = (relation, compared[other], compared[at])
    attributes: list[Related] = [("contradiction", earlier, later) for earlier, later in _attributes(compared)]
    return [*related.values(), *attributes]


def _pairs(statements: Sequence[Statement]) -> Iterator[tuple[int, int]]:
    """Yield (place, earlier place) of statements that share a rare word and may share enough (prefix filtering)."""
    counts = Counter(word for statement in statements for word in statement.keywords)
    index: dict[str, list[int]] = defaultdict(list)
    for at, statement in enumerate(statements):
        if len(statement.keywords) < _FEWEST_WORDS:
            continue
        ordered = sorted(statement.keywords, key=lambda word: (counts[word], word))
        prefix = ordered[: len(ordered) - ceil(_RELATED * len(ordered)) + 1]
        others = sorted({other for word in prefix for other in index[word][-_MOST_COMPARED:]})
        yield from ((at, other) for other in others)
        for word in prefix:
            index[word].append(at)


def _relation(earlier: Statement, later: Statement) -> Relation | None:
    same_group = earlier.source.group == later.source.group
    common = len(earlier.keywords & later.keywords)
    share = common / len(earlier.keywords | later.keywords)
    fewest = _FEWEST_WORDS if same_group else _FEWEST_ELSEWHERE
    if share < _RELATED or common < min(fewest, 2 if same_group else fewest):
        return None
    before, after = words(earlier.text), words(later.text)
    if before == after:
        return "duplicate" if common >= fewest else None
    if same_group and _differ_in_value(before, after, share):
        return "contradiction"
    numbers = [{word for word in one if any(map(str.isdigit, word))} for one in (before, after)]
    if share >= _SIMILAR and common >= fewest and numbers[0] == numbers[1] and is_negated(before) == is_negated(after):
        return "near duplicate"
    return None


def _differ_in_value(before: Sequence[str], after: Sequence[str], share: float) -> bool:
    """Return whether two statements on the same subject differ in one value, in a negation or in the order of words.

    `share` is the share of their common words.
    """
    if is_negated(before) != is_negated(after):
        return share >= _SIMILAR
    if sorted(before) == sorted(after):
        return "over" in before or "before" in before or "statt" in before
    changes = [
        step for step in SequenceMatcher(None, before, after, autojunk=False).get_opcodes() if step[0] != "equal"
    ]
    if len(changes) != 1 or changes[0][0] != "replace":
        return False
    _, start, end, other_start, other_end = changes[0]
    subject, tail = " ".join(before[:start]), before[end:]
    if start < 2 or max(end - start, other_end - other_start) > 4 or _PRONOUN.match(subject):
        return False
    if _FUNCTIONAL.search(subject):
        return not re.search(r"\bprefers?\b", subject) or bool(tail)
    values = [*before[start:end], *after[other_start:other_end]]
    return start >= 3 and all(any(map(str.isdigit, value)) for value in values)


def _attributes(statements: Sequence[Statement]) -> Iterator[tuple[Statement, Statement]]:
    """Yield pairs of lines `Name: value` of one section that have the same name and different values."""
    known: dict[tuple[str, str, str], tuple[str, Statement]] = {}
    for statement in statements:
        match = None if statement.source.pointer else _KEY_VALUE.fullmatch(statement.text)
        if match is None or _NO_ATTRIBUTE.fullmatch(match["key"].strip()):
            continue
        place = (statement.source.group, statement.section, match["key"].strip().lower())
        value = " ".join(words(match["value"]))
        earlier = known.setdefault(place, (value, statement))
        if earlier[0] != value:
            yield earlier[1], statement


def is_stale(text: str, today: date) -> bool:
    """Return whether a text speaks of a past date as current or to come, or, without a date, of "next week"."""
    dates = list(_DATE.finditer(text))
    for match in dates:
        day = _last_day(match)
        if day is None or day >= today:
            continue
        before = text[: match.start()]
        if _ENDS.search(before[-90:]) and not re.search(r"\b(?:since|seit|depuis|desde)\s+$", before, re.I):
            return True
        if _AS_OF.search(before[-60:]) and day < today - _OLD:
            return True
        if _NAMED_BY_DATE.search(before[-40:]) and day < today - _MONTH_LONG:
            return True
    return not dates and _RELATIVE.search(text) is not None and _RECURRING.search(text) is None


def _last_day(match: re.Match[str]) -> date | None:
    """Return the last day of the date, month, quarter or year that was matched; None if there is no such day."""
    part = {name: value for name, value in match.groupdict().items() if value}
    value = {name[0]: text for name, text in part.items()}
    year = int(value["y"])
    month = (
        int(value["m"]) if "m" in value else _MONTHS[value["n"].lower()] if "n" in value else int(value.get("q", 4)) * 3
    )
    try:
        if "d" in value:
            return date(year, month, int(value["d"]))
        return date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)
    except ValueError:
        return None
