import subprocess
import sys

import pytest

from memorybench.text.stop_words import AUDIT_STOP_WORDS, FUNCTION_WORDS, STOP_WORDS
from memorybench.text.words import content_words, is_negated, numbers, space_ideographs, stem, stems, words


def test_contracted_not_is_a_word() -> None:
    assert words("She doesn't like Tea") == ["she", "does", "not", "like", "tea"]
    assert is_negated(words("She doesn't like tea"))
    assert not is_negated(words("She likes tea"))


def test_search_terms_are_distinct_and_without_stop_words() -> None:
    assert content_words("What is the name of the dog, the big dog?") == ["name", "dog", "big"]
    assert content_words("Where is it?") == ["where", "is", "it"], "a query of stop words is kept"
    assert content_words("?!") == []


def test_each_ideograph_is_a_word() -> None:
    assert content_words(space_ideographs("我喜欢tea")) == ["我", "喜", "欢", "tea"]


@pytest.mark.parametrize(
    "forms", ["prefer prefers preferred preferring", "city cities", "plan plans planned planning", "dish dishes"]
)
def test_inflections_have_one_stem(forms: str) -> None:
    assert len({stem(word) for word in forms.split()}) == 1


def test_words_that_change_a_fact_are_stemmed_and_kept() -> None:
    assert stems(words("He runs before lunch")) != stems(words("He runs after lunch"))
    assert stems(words("He really runs every day")) == stems(words("he runs day"))
    assert numbers(["room", "b12", "7"]) == {"b12", "7"}


def test_every_list_extends_the_shorter_one() -> None:
    assert FUNCTION_WORDS < STOP_WORDS < AUDIT_STOP_WORDS


def test_importing_does_not_load_the_stemmers_of_all_languages() -> None:
    program = "import sys, memorybench.text.words; print('snowballstemmer' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
