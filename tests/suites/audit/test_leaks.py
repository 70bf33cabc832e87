"""Whether a question gives its answer away: stop words and units do not; inflected words and the number itself do."""

import pytest

from memorybench.suites.audit.answers import leaks, occurs
from tests.suites.audit.probing import conversation, fact, probes_of

CLEAN = [
    ("Bei welcher Firma arbeitet der Nutzer?", "bei der Post"),
    ("In welcher Straße wohnt die Nutzerin?", "in der Lindenstraße"),
    ("In welcher Stadt arbeitet der Bruder von Eva?", "in Darmstadt"),
    ("Wie heißt die Schwester von Jonas?", "Svenja von Holten"),
    ("Woher stammt die Schwester des Nutzers?", "aus Schwerin"),
    ("Wie oft geht sie in der Woche zum Schwimmen?", "zweimal"),
    ("Was isst der Nutzer am liebsten?", "das Gulasch seiner Oma"),
    ("Seit wann hat die Nutzerin den Hund?", "seit dem Herbst"),
    ("Für wen hat er den Kuchen gebacken?", "für die Nachbarn"),
    ("Wann hat die Nutzerin Unterricht?", "am Montag um neun"),
    ("Où est-ce que l'utilisateur travaille ?", "à la poste de Lyon"),
    ("Quel est le nom de la sœur de Paul ?", "Claire de Beaumont"),
    ("Que fait-elle le dimanche avec son fils ?", "une promenade avec le chien"),
    ("Qui a signé le contrat de l'utilisatrice ?", "le contrôleur"),
    ("À qui est-ce qu'il a prêté la voiture ?", "à l'ami de Luc"),
    ("Depuis quand Marie habite-t-elle à Nantes ?", "depuis le printemps"),
    ("Comment s'appelle le chien de l'utilisateur ?", "Filou"),
    ("Combien de jours par semaine va-t-elle à la piscine ?", "trois"),
    ("¿Dónde trabaja el usuario?", "en la oficina de correos"),
    ("¿Cómo se llama la hermana de Pablo?", "Lucía de la Cruz"),
    ("¿Qué desayuna la usuaria por la mañana?", "pan con tomate"),
    ("¿Qué hace con su hijo los domingos?", "un paseo con el perro"),
    ("¿De dónde es la jefa del usuario?", "es de Cádiz"),
    ("¿Para quién ha comprado el regalo?", "para su abuela"),
    ("¿Desde cuándo vive en la calle Mayor?", "desde el otoño"),
    ("¿Con quién va al cine los viernes?", "con una amiga de la oficina"),
    ("On which date in 2025 was the boat sold?", "2 February 2025"),
    ("In which month of 2025 was the boat sold?", "June 2025"),
]
LEAKING = [
    ("Wie viele Häuser besitzt die Nutzerin?", "ein Haus"),
    ("Welche Farbe hat das rote Auto des Nutzers?", "rot"),
    ("Wie viele Kühe hat der Bauer?", "eine Kuh"),
    ("Woher kommt der spanische Koch?", "aus Spanien"),
    ("Welchen Apfelkuchen backt die Nutzerin?", "mit Apfel"),
    ("Welches Instrument spielt die Geigerin?", "Geige"),
    ("Wer ist der Fahrradkurier des Nutzers?", "ein Kurier"),
    ("Was trinkt die Teetrinkerin am Morgen?", "Tee"),
    ("Womit heizt der Nutzer sein Holzhaus?", "mit Holz"),
    ("Où travaille l'infirmière de l'hôpital ?", "à l'hôpital"),
    ("Combien de chevaux a l'utilisatrice ?", "un cheval"),
    ("D'où vient le cuisinier français de l'utilisateur ?", "de France"),
    ("Quelle est la couleur de la robe verte de Marie ?", "vert"),
    ("Quel instrument joue la violoniste ?", "du violon"),
    ("Combien d'œufs mange-t-il le matin ?", "un œuf"),
    ("Quel sport est-ce que la nageuse pratique ?", "la nage"),
    ("¿Cuántos camiones tiene la empresa?", "un camión"),
    ("¿De dónde viene la cocinera española?", "de España"),
    ("¿De dónde viene la profesora francesa de la usuaria?", "de Francia"),
    ("¿De qué color es la puerta roja de la casa?", "rojo"),
    ("¿Qué instrumento toca la pianista?", "el piano"),
    ("¿Qué animales cuida en la perrera?", "perros"),
    ("¿Qué flores vende la florista?", "una flor"),
    ("In which year was the boat of 2019 sold?", "2019"),
]


@pytest.mark.parametrize(("question", "answer"), CLEAN)
def test_stop_words_and_kinds_of_things_give_no_answer_away(question: str, answer: str) -> None:
    assert not leaks(question, [answer])


@pytest.mark.parametrize(("question", "answer"), LEAKING)
def test_an_inflected_word_or_a_part_of_a_compound_gives_the_answer_away(question: str, answer: str) -> None:
    assert leaks(question, [answer])


ASKED_NUMBERS = [
    ("How many days after the piano was collected did the user sign?", "18 days"),
    ("How many days was the cat away?", "1 day"),
    ("On which ward does the user work?", "ward 2"),
    ("How many guests came to the wedding?", "eighty-four guests"),
    ("Which level of German has the user reached?", "level B2"),
    ("Wie viele Tage nach dem Zoobesuch ist Jonas gestürzt?", "68 Tage"),
    ("Wie viele Tage war eine der zwei Katzen von Jonas weg?", "1 Tag"),
    ("Combien de jours après la réparation a-t-on fermé ?", "43 jours"),
    ("¿Cuántos camiones tiene la empresa?", "7 camiones"),
    ("他们搬家后过了多少天？", "18天"),
]
TOLD_NUMBERS = [
    ("How many days after the 18 days of rain did the user sign?", "18 days"),
    ("How long did the qualifying swim of six hours take?", "six hours"),
    ("How many tulips were planted, 6,000 or fewer?", "6,000 tulips"),
    ("How many days did the user walk to Rome?", "18 days to Rome and back"),
    ("Which ward of the hospital is it, the children's ward?", "children's ward 2 of Larkfield"),
    ("Wie viele Tage war Jonas die 12 Tage krank?", "12 Tage"),
    ("How many of the one hundred and twenty guests came?", "120 guests"),
    ("Wie viele Tage war Jonas in den zwölf Tagen krank?", "12 Tage"),
    ("Combien de jours a duré le voyage de cinq jours ?", "5 jours"),
    ("¿Cuántos días duró el viaje de cinco días?", "5 días"),
    ("Quanti giorni è durato il viaggio di cinque giorni?", "5 giorni"),
    ("Hoeveel dagen duurde de reis van vijf dagen naar Rome?", "5 dagen"),
    ("他们搬家后过了18天吗？", "18天"),
]


@pytest.mark.parametrize(("question", "answer"), ASKED_NUMBERS)
def test_of_a_number_with_words_of_the_question_only_the_number_counts(question: str, answer: str) -> None:
    assert not leaks(question, [answer])


@pytest.mark.parametrize(("question", "answer"), TOLD_NUMBERS)
def test_the_number_itself_or_some_of_several_words_give_the_answer_away(question: str, answer: str) -> None:
    assert leaks(question, [answer])


@pytest.mark.parametrize(
    ("content", "question", "value", "is_asked"),
    [
        ("Ich arbeite bei der Post in Kassel.", "Bei welcher Firma arbeitet der Nutzer?", "bei der Post", True),
        ("Mein Haus steht am See, und ich mag es sehr.", "Wie viele Häuser hat der Nutzer?", "Haus", False),
    ],
)
def test_a_question_of_the_dataset_is_checked_in_its_language(
    content: str, question: str, value: str, is_asked: bool
) -> None:
    made = probes_of(conversation(fact("f1", content, question=question, value=value, turn="t1")))
    assert [probe.question for probe in made.probes] == ([question] if is_asked else [])
    assert made.gates.get("leak", 0) == (not is_asked)


@pytest.mark.parametrize(
    ("value", "turn"),
    [
        ("248,000 dollars", "He signed on 28 April. 248,000 dollars it was"),
        ("12500 euros", "They have until 3 May. 12500 euros is a lot"),
    ],
)
def test_an_amount_after_a_date_is_not_its_year(value: str, turn: str) -> None:
    assert occurs(value, turn)
    assert occurs("28 April 2024", "It was on April 28, 2024.")
