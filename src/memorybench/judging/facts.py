"""Splits a memory of any shape into atomic facts, each with its text and its categories."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import takewhile
from typing import Any, ClassVar

from pydantic import ConfigDict

from memorybench.core.errors import Malformed
from memorybench.files.located import DEEPEST
from memorybench.text.english_numbers import NUMBERS
from memorybench.text.normalisation import without_accents

from .normal_form import is_literal, normal_form, unify_characters

MOST_FACTS = 2_000
"""A memory with more facts than this is rejected, because every fact is compared with every other."""

LONGEST_FACT = 20_000
"""The most characters that a fact may have."""

_TEXT_KEYS = ("content", "fact", "text", "memory", "statement", "value")
_CATEGORY_KEYS = ("category", "block", "label", "type", "topic", "key")
_BLOCK_KEYS = ("label", "block")
_NAME_KEYS = ("key", "name")
_OUTER_KEYS, _VALUE_NAMES = ("category", "block", "type", "topic"), ("label", *_NAME_KEYS)
"""Keys of an object with a value: for its category, and for what names it, as `name` does in
`{"name": "weight", "value": "5 kg"}`, which is `{"weight": "5 kg"}`."""
_OWNER_KEYS = ("user_id", "agent_id")
_ATTRIBUTE_KEYS = (*_CATEGORY_KEYS, *_OWNER_KEYS, "name", "speaker", "owner", "tags")
_PARTICULARS = """
    id run_id created_at updated_at at date timestamp score confidence source sources metadata hash limit description
"""
_BESIDE_TEXT = frozenset((*_ATTRIBUTE_KEYS, *_PARTICULARS.split()))
_WRAPPERS = frozenset(("memory", "memories", "result", "fact", "item", "data", "block", "entry", "existing_memory"))
"""Keys that are not categories, because they say nothing about their content. In normal form."""

_BULLET = re.compile(r"^\s*[*•]\s+")
_DASH = re.compile(rf"^\s*[-–](?!\s*(?:(?:[A-Z]{{2,3}}\$?\s)?[\d.,€$£¥]|(?i:{'|'.join(NUMBERS)})\b))\s+")
"""Matches a dash at the beginning of a line. Before a number it may be a minus."""
_HEADING = re.compile(r"^(?P<level>#{1,6})\s+(?P<name>.+?)\s*:?\s*$")
_DENIAL = re.compile(
    r"(?:not|never|no|no longer|not true|untrue|false|wrong|maybe|perhaps|possibly|cancell?ed"
    r"|nein|nicht|falsch|vielleicht|abgesagt|falso|tal vez|quizás|cancelad[oa]|faux|peut-être|annulée?)",
    re.IGNORECASE,
)
"""Matches words before a colon that deny or weaken the fact, as in `Not true: lives in Rome`; not a category."""
_CATEGORISED = re.compile(r"^(?P<name>[A-Za-z][\w /&-]{0,39}?)\s*:(?=\s|$)\s*(?P<rest>.*)$")
_MAY_END = re.compile(
    r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\b[A-Z]\.)(?<!\b[DM]r\.)(?<!\bMrs\.)(?<!\bMs\.)\s+(?=[^\W_a-z])"
    r"|(?<=。)\s*(?=\w)"
)
_ORDINAL = re.compile(r"\s*\d{1,2}\.")
_DAY = re.compile(r"\b(?:am|vom|zum|ab|bis|seit|den|dem|der|des|einschließlich)\s\d{1,2}\.$", re.IGNORECASE)
_MONTH = re.compile(
    r"(?:Jan(?:uar)?|Jänner|Feb(?:ruar)?|März|April?|Mai|Jun[io]?|Jul[io]?|Aug(?:ust)?|Sept?(?:ember)?|Okt(?:ober)?"
    r"|Nov(?:ember)?|Dez(?:ember)?)\b"
)
_NUMBERED = re.compile(rf"^\s*(\d{{1,3}})[.)]\s+(?!\s|{_MONTH.pattern})", re.MULTILINE)
"""Matches the number of an item, but not of a day, as in `1. Mai`."""
_LAST_WORD = re.compile(r"(?:^|[\s(,;:])([a-zà-öø-ÿß]{3,})\)?[.!?]$")
_SHORTENED = """
    approx assoc avg dept esp est etc excl ext fig inc incl max min misc orig rev tel temp vol
    abzgl bzw ecc evtl exkl geb gem gest ggf inkl lat resp sog usw vgl aprox núm pág
"""
_ABBREVIATIONS = frozenset(_SHORTENED.split())
"""Lower-case abbreviations of three letters or more, in several languages."""
_BETWEEN_WORDS = re.compile(r"(?<=[^\W_])[\s_]+(?=[^\W_])|(?<=[^\W\d_])-(?=[^\W\d_])")
"""Matches what stands between words of a category. Other signs belong to it: `C++` is not `C`, `1-5` is not `1.5`."""
_PUNCTUATION = re.compile(r"[\s_\-'./:&,()]+")
_LEAST_SHARED, _ALIKE, _NEARLY_EQUAL = 0.6, 2 / 3, 0.85
"""Two categories may be one if they begin with the same letters, at least 60 % of those of the shorter one. They may
also be one if they are this similar: 2/3 with the same first letter, 0.85 without it."""
_LONGEST_PAIR = 120
"""The most letters of two categories that are compared in all places, which takes long. Longer ones may be one."""
_CJK = "\u2e80"
"""From this character on, one equal character is much: 客戶 is 客户."""
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_MOST_WORDS_IN_CATEGORY = 4
_IRREGULAR = {"feet": "foot", "teeth": "tooth", "geese": "goose", "mice": "mouse", "lice": "louse", "people": "person"}
"""The singulars of plurals that share too few letters with them for `is_near`."""
_CONTAINERS = (dict, list)


@dataclass(frozen=True)
class MemoryFact:
    """One fact of a memory. It is not a Record, for speed: a dozen are made for every trace."""

    text: str
    categories: tuple[str, ...] = ()
    """The keys that lead to the fact, as the memory has them, innermost last; empty if it has no categories."""
    most_parts: int = 1
    """The most facts that the text may contain: more than 1 if it is unclear where a sentence ends, as in "3. Mai"."""
    attributes: tuple[str, ...] = ()
    """What else the object of the fact says about it, such as `name=Anna`. Facts with other attributes may differ."""

    # journals of earlier versions also tell the path of each fact, which nobody asked for
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="ignore")

    @property
    def category(self) -> str:
        return self.categories[-1] if self.categories else ""

    @cached_property
    def path(self) -> tuple[str, ...]:
        """The categories in one spelling each, such as `customer_segments` for `Customer Segments`."""
        return tuple(map(spelling, self.categories))

    @cached_property
    def text_alone(self) -> str:
        """The text without the last category, if that is put before it, as in `city: Rome`."""
        name, colon, rest = self.text.partition(": ")
        return rest if colon and spelling(name) in self.path[-1:] else self.text

    @cached_property
    def normal_text(self) -> str:
        """The normal form of `text_alone`, which stays as it is written under a key such as `password`."""
        is_literal_text = any(map(_is_literal_key, self.path))
        return self.text_alone.strip() if is_literal_text else normal_form(self.text_alone)

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of `normal_text`, in lower case."""
        return frozenset(self.normal_text.lower().split())

    def is_under(self, category: str) -> bool:
        """Whether one of the fact's categories has the same normal form as this one."""
        return normal_category(category) in map(normal_category, self.categories)

    def may_be_under(self, category: str) -> bool:
        """Whether one of the fact's categories may be this one in other letters."""
        return any(is_near(category, own) for own in self.categories)

    @property
    def with_path(self) -> str:
        """Categories, attributes and text, such as `anna / city: Rome`. For a judge, who must see whose fact it is."""
        path = " / ".join((*self.categories, *self.attributes))
        return f"{path}: {self.text}" if path else self.text

    def __str__(self) -> str:
        return f"{self.categories[-1]}: {self.text}" if self.category else self.text


def facts_of(state: Any) -> tuple[MemoryFact, ...]:
    """Return every fact of a memory, in order. Raise Malformed if the memory is too deep or too large to compare.

    A text in a list is one fact. A text outside of lists is split at line breaks, and where a sentence certainly ends;
    so is the value of a block (an object with `label` and `value`), also in a list. `"budget": 5000` is the fact
    "budget: 5000" in the category budget. An object with a text (in `content`, `fact`, `memory` …) and otherwise only
    a category, attributes such as tags, and details such as ids and dates counts as that text. Keys such as `memories`
    or `results` are not categories if they are outermost, or above such objects.
    """
    facts: list[MemoryFact] = []
    _gather(facts, state, (), 0)
    return tuple(facts)


def fact_from(line: str) -> MemoryFact | None:
    """Return the fact of a line `category: fact`; None if the line has another form."""
    name, _, text = line.partition(":")
    category, said = name.strip(), text.strip()
    return MemoryFact(said, (category,)) if category and said else None


def categories_of(state: Any, facts: Iterable[MemoryFact] | None = None) -> frozenset[str]:
    """Return all categories of a memory, including those without facts. `facts`: the result of `facts_of`, if known."""
    filled = {category for fact in (facts_of(state) if facts is None else facts) for category in fact.categories}
    return frozenset(filled.union(_keys(state)))


@lru_cache(maxsize=1_000)
def normal_category(name: str) -> str:
    """Return the normal form of a category, its spelling in the singular: `customerSegments` is `customer_segment`.

    Categories with one normal form may be the same, or two: Robert and Roberts.
    """
    return "_".join(map(_singular, spelling(name).split("_")))


@lru_cache(maxsize=1_000)
def spelling(name: str) -> str:
    """Return a category in one spelling: `Customer Segments` and `customerSegments` are `customer_segments`."""
    return _BETWEEN_WORDS.sub("_", _HUMPS.sub(" ", unify_characters(name)).lower()).removesuffix(":") or name.strip()


@lru_cache(maxsize=1_000)
def _is_literal_key(path: str) -> bool:
    return is_literal(path.replace("_", " "))


@lru_cache(maxsize=10_000)
def is_near(first: str, second: str) -> bool:
    """Return whether two categories may be one in the plural or another spelling, such as `child` and `children`.

    They begin with the same letters, or have most of them in common. `likes` and `dislikes` have too few.
    """
    from difflib import SequenceMatcher

    if normal_category(first) == normal_category(second):
        return True
    one, other = _letters(first), _letters(second)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    if shared >= _LEAST_SHARED * min(len(one), len(other)) or (shared and one >= _CJK):
        return True
    if len(one) + len(other) > _LONGEST_PAIR:
        return True
    needed, matcher = _ALIKE if shared else _NEARLY_EQUAL, SequenceMatcher(None, one, other, autojunk=False)
    # the first two are upper bounds of the last, and fast
    return all(ratio() >= needed for ratio in (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio))


@lru_cache(maxsize=10_000)
def _letters(name: str) -> str:
    """Return a category in lower case without accents, blanks and punctuation. Signs such as + and # stay."""
    return _PUNCTUATION.sub("", without_accents(unify_characters(name).casefold())) or name


def without_sole_owner(
    first: Sequence[MemoryFact], second: Sequence[MemoryFact]
) -> tuple[Sequence[MemoryFact], Sequence[MemoryFact]]:
    """Return the facts of two memories, without their owner if one memory names none and the other the same for all.

    Then both belong to the same user.
    """
    owners = [{tuple(filter(_is_owner, fact.attributes)) for fact in facts} for facts in (first, second)]
    if [*map(len, owners)] != [1, 1] or all(map(any, owners)):
        return first, second
    return tuple(map(_without_owner, first)), tuple(map(_without_owner, second))


def _is_owner(attribute: str) -> bool:
    return attribute.partition("=")[0] in _OWNER_KEYS


def _without_owner(fact: MemoryFact) -> MemoryFact:
    return replace(fact, attributes=tuple(one for one in fact.attributes if not _is_owner(one)))


def _singular(word: str) -> str:
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _gather(
    facts: list[MemoryFact],
    value: Any,
    categories: tuple[str, ...],
    depth: int,
    spoken: str = "",
    *,
    is_item: bool = False,
) -> None:
    """Add the facts in `value` to `facts`.

    `spoken`, the key of a single value, is put before its facts, as in "budget: 5000". `is_item`: the value is in a
    list, so that a text is one fact.
    """
    if depth > DEEPEST:
        raise Malformed(f"the memory is nested deeper than {DEEPEST} levels")
    if isinstance(value, str):
        for said, own in _item(value, categories) if is_item else _lines(value, categories):
            for text, parts in ((said, 1),) if is_item else _sentences(said):
                _add(facts, f"{spoken}: {text}" if spoken and own == categories else text, own, parts)
    elif isinstance(value, dict):
        _gather_mapping(facts, value, categories, depth + 1, is_item=is_item)
    elif isinstance(value, list | tuple):
        for item in value:
            _gather(facts, item, categories, depth + 1, is_item=True)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        _add(facts, f"{spoken}: {value}" if spoken else str(value), categories)


def _gather_mapping(
    facts: list[MemoryFact], value: dict[str, Any], categories: tuple[str, ...], depth: int, *, is_item: bool
) -> None:
    key = _text_key(value)
    if key is not None:
        _gather_object(facts, value, key, categories, depth, is_item=is_item)
        return
    for name, member in value.items():
        says_nothing = normal_category(str(name)) in _WRAPPERS and (not categories or _holds_texts(member))
        inner = categories if says_nothing or not str(name).strip() else (*categories, str(name).strip())
        if isinstance(member, bool):
            _add(facts, _spoken(str(name), member), categories)
        elif isinstance(member, str | int | float) and inner != categories:
            # a value alone ("5000") says little: the key is part of what is said
            _gather(facts, member, inner, depth, _spoken(str(name), True), is_item=is_item)
        else:
            _gather(facts, member, inner, depth, is_item=is_item)


def _gather_object(
    facts: list[MemoryFact], value: dict[str, Any], key: str, categories: tuple[str, ...], depth: int, *, is_item: bool
) -> None:
    """Add the facts of an object that has them under `key`, beside its categories, attributes and details."""
    names, content, start = _category_keys(value, key), value[key], len(facts)
    is_block = key == "value" and not set(names).isdisjoint(_BLOCK_KEYS)
    if not isinstance(content, str):
        content = {value[names[-1]]: content}  # a number is said with its name
    for name in names if isinstance(content, str) else names[:-1]:
        text = value[name].strip()
        categories = (*categories, text) if name in _NAME_KEYS else _within_object(categories, text)
    _gather(facts, content, categories, depth, is_item=is_item and not is_block)
    attributes = tuple(_attributes(value, names, categories))
    if attributes:
        # sorted, because it does not matter which of them are in the metadata
        facts[start:] = [
            replace(fact, attributes=tuple(sorted({*attributes, *fact.attributes}))) for fact in facts[start:]
        ]


def _category_keys(value: dict[str, Any], text_key: str) -> list[str]:
    """Return the keys of an object whose texts are categories: its category and, if it has a value, what names it."""
    outer, inner = (_OUTER_KEYS, _VALUE_NAMES) if text_key == "value" else (_CATEGORY_KEYS, ())
    found = [name for name in outer if _is_filled(value.get(name))][:1]
    return found + [name for name in inner if _is_filled(value.get(name))]


def _is_filled(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _attributes(value: dict[str, Any], used: Collection[str], path: Sequence[str]) -> Iterator[str]:
    """Yield what an object and its metadata say about its text, without the keys `used` and what the path says."""
    metadata = value.get("metadata")
    spellings = set(map(spelling, path))
    for fields in (value, metadata if isinstance(metadata, dict) else {}):
        for key in _ATTRIBUTE_KEYS:
            content = fields.get(key)
            if content in (None, "", []) or (fields is value and key in used):
                continue
            texts = sorted(map(str, content)) if isinstance(content, list) else [str(content)]
            text = " ".join(", ".join(texts).split())
            says_nothing = normal_category(text) in _WRAPPERS or spelling(text) in spellings
            if key not in _CATEGORY_KEYS or not says_nothing:
                yield f"{key}={text}"


def _add(facts: list[MemoryFact], text: str, categories: tuple[str, ...], parts: int = 1) -> None:
    if len(text) > LONGEST_FACT:
        raise Malformed(f"the memory has a fact of more than {LONGEST_FACT} characters; expected short facts")
    if len(facts) == MOST_FACTS:
        raise Malformed(f"the memory has more than {MOST_FACTS} facts, which are too many to compare")
    facts.append(MemoryFact(text, categories, parts))


def _text_key(value: dict[str, Any]) -> str | None:
    """Return the key under which an object has its text; None if the keys of the object are categories."""
    for key in _TEXT_KEYS:
        is_named = key == "value" and value.get(key) is not None and any(_is_filled(value.get(n)) for n in _VALUE_NAMES)
        if not isinstance(value.get(key), str) and not is_named:
            continue
        others = value.keys() - {key}
        if others <= _BESIDE_TEXT and (others or key not in ("memory", "value")):
            return key
    return None


def _spoken(name: str, claim: bool) -> str:
    words = _HUMPS.sub(" ", name).replace("_", " ")
    return words if claim else f"not {words}"


def _within_object(categories: tuple[str, ...], category: str) -> tuple[str, ...]:
    """Return the categories of an object that names one, which may repeat the key above it."""
    is_none = not category or normal_category(category) in _WRAPPERS
    return categories if is_none or spelling(category) in map(spelling, categories[-1:]) else (*categories, category)


def _holds_texts(value: Any) -> bool:
    """Return whether a value is an object with a text key, or a list of such objects."""
    items = value if isinstance(value, list | tuple) and value else [value]
    return all(isinstance(item, dict) and _text_key(item) is not None for item in items)


def _item(text: str, categories: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the text and the categories of a list item. Without `categories`, `category: fact` sets its category.

    A dash before it may be a minus, because an item needs no bullet.
    """
    bullet = _BULLET.match(text)
    said = " ".join(text[bullet.end() if bullet else 0 :].split())
    named = None if categories else _category_in(said)
    if named is not None and named["rest"].strip():
        said, categories = named["rest"].strip(), (named["name"].strip(),)
    if said:
        yield said, categories


def _lines(text: str, categories: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the lines of a free text, each with its categories.

    A heading (`# name`, or `name:` alone) is not a fact, but a category of the lines below it. So is a line of the
    lines below it that are indented further, because these may be about it. Without `categories`, a line
    `category: fact` has a category of its own.
    """
    numbers = [int(number) for number in _NUMBERED.findall(text)]
    # otherwise "3. Mai" is a date, and "1. Bundesliga" a name
    is_numbered = len(numbers) > 1 and numbers == list(range(1, len(numbers) + 1))
    bullets = (_BULLET, _DASH, _NUMBERED) if is_numbered else (_BULLET, _DASH)
    headings: list[tuple[int, str]] = []
    """Pairs of level and name: the headings above the line, outermost first."""
    above: list[tuple[int, str]] = []
    """Pairs of level and text: the lines above the line that it may be about, outermost first."""
    for line in filter(str.strip, text.splitlines()):
        if heading := _HEADING.match(line):
            _nest(headings, len(heading["level"]), heading["name"].strip("*_` "))
            above.clear()
            continue
        bullet = next(filter(None, (pattern.match(line) for pattern in bullets)), None)
        said = line[bullet.end() if bullet else 0 :].strip()
        named = _category_in(said)
        # a line with the same indentation may be about the label above it, unless it has one of its own
        level = 2 * (len(line) - len(line.lstrip())) + (named is None)
        if named is not None and not named["rest"].strip():
            _nest(above, level, named["name"].strip())
            continue
        _nest(above, level, said)
        own = (*categories, *(name for _, name in (*headings, *above[:-1])))
        if named is not None and not categories:
            own, said = (*own, named["name"].strip()), named["rest"].strip()
        if said:
            yield said, own


def _nest(outer: list[tuple[int, str]], level: int, name: str) -> None:
    """Add a name to the names of outer levels; those of the same or an inner level end."""
    while outer and outer[-1][0] >= level:
        outer.pop()
    outer.append((level, name))


def _category_in(line: str) -> re.Match[str] | None:
    named = _CATEGORISED.match(line)
    if named is None or len(named["name"].split()) > _MOST_WORDS_IN_CATEGORY:
        return None
    is_denial = named["rest"].strip() and _DENIAL.fullmatch(named["name"].strip())
    return None if is_denial else named


def _sentences(text: str) -> Iterator[tuple[str, int]]:
    """Split a text where a sentence certainly ends; yield each part with the most sentences that it may have.

    A sentence certainly ends after a Chinese or Japanese full stop, and after a lower-case word that is not an
    abbreviation: "Mr. Pham", "3. Mai" and "Yahoo! Mail" are not split. It certainly does not end after a number at the
    beginning, and in a date such as "am 3. Mai".
    """
    start, parts = 0, 1
    for end in _MAY_END.finditer(text):
        before = text[start : end.start()]
        if _ORDINAL.fullmatch(before) or (_DAY.search(before) and _MONTH.match(text, end.end())):
            continue
        last = _LAST_WORD.search(before)
        if before.endswith("。") or (last is not None and last[1] not in _ABBREVIATIONS):
            yield before.strip(), parts
            start, parts = end.end(), 1
        else:
            parts += 1
    yield text[start:].strip(), parts


def _keys(value: Any) -> Iterator[str]:
    """Yield the keys whose values are objects or lists. `facts_of` has checked the depth of nesting."""
    if isinstance(value, dict):
        for name, member in value.items():
            if isinstance(member, _CONTAINERS):
                yield str(name)
                yield from _keys(member)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, _CONTAINERS):
                yield from _keys(item)
