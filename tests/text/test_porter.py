import pytest

from memorybench.text.porter import stem

PAPER = """
caresses caress · ponies poni · caress caress · cats cat · feed feed · agreed agre · plastered plaster · bled bled
motoring motor · sing sing · conflated conflat · troubled troubl · sized size · hopping hop · tanned tan · falling fall
hissing hiss · fizzed fizz · failing fail · filing file · happy happi · relational relat · conditional condit
rational ration · valenci valenc · hesitanci hesit · digitizer digit · conformabli conform · radicalli radic
differentli differ · vileli vile · analogousli analog · vietnamization vietnam · predication predic · operator oper
feudalism feudal · decisiveness decis · hopefulness hope · callousness callous · formaliti formal · sensitiviti sensit
sensibiliti sensibl · triplicate triplic · formative form · formalize formal · electriciti electr · electrical electr
hopeful hope · goodness good · revival reviv · allowance allow · inference infer · airliner airlin · gyroscopic gyroscop
adjustable adjust · defensible defens · irritant irrit · replacement replac · adjustment adjust · dependent depend
adoption adopt · communism commun · activate activ · angulariti angular · homologous homolog · effective effect
bowdlerize bowdler · probate probat · rate rate · cease ceas · controll control · roll roll · deletion delet
"""
"""Porter 1980, the examples of each step, taken through all steps."""

NLTK = """
sky sky · skies sky · dying die · lying lie · tying tie · news news · innings inning · outings outing · cannings canning
howe howe · proceed proceed · exceed exceed · succeed succeed · dies die · flies fli · died die · spied spi · ice ice
use use · enjoy enjoy · try tri · say say · by by · is is · possibly possibl · gratefully grate · geology geolog
theology theolog · traditionally tradit · oed o · Walking walk
"""
"""Where NLTK's default mode departs from the paper."""


@pytest.mark.parametrize(
    "pair", [pair.strip() for table in (PAPER, NLTK) for pair in table.replace("\n", "·").split("·") if pair.strip()]
)
def test_known_stems(pair: str) -> None:
    word, expected = pair.split()
    assert stem(word) == expected
