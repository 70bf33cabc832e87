"""What a reply says is told by code, carefully: where it is not certain, it is not told."""

import pytest

from memorybench.suites.audit.judgement import chosen_option, mentions, refuses

REFUSALS = """
I don't know.
I do not know where the user lives.
I'm not sure.
I am not sure what the user's shoe size is.
The conversation does not mention a boat.
The conversation doesn't say.
There is no information about that in our chat.
There's no mention of a sister.
That was never mentioned.
You haven't told me that.
You never mentioned having a parrot.
I have no record of that.
I have no memory of you telling me your blood type.
Unknown.
It is not specified.
Not mentioned in the conversation.
I cannot determine that from the conversation.
I can't tell from what was said.
I couldn't find anything about it.
Sorry, I don't have that information.
Unfortunately, this is not stated anywhere.
Based on the conversation, it is unclear which gym the user goes to.
No information available.
I'm unable to answer that, since it was not discussed.
The user did not say why.
I don't know, but you mentioned a trip to Ghent.
I don't recall you mentioning a boat, but if you tell me more I can help.
There is no mention of a cat. The conversation only mentions a dog named Biscuit.
I'm not aware of any tattoo.
N/A
The provided context does not contain the answer.
I'm sorry, but the conversation does not include that detail.
It isn't clear from the conversation.
That's not something we've discussed; you didn't mention it.
"""
ANSWERS = """
Rome.
The user lives in Rome.
I don't know, but he lives in Rome.
I don't know for sure, but I think it's Rome.
I'm not certain, but it is probably Rome.
Rome, though I am not sure.
He lives in Rome, but I don't know the street.
I don't know. Rome.
I don't know exactly. My guess is Rome.
The user sold the boat because of the cost.
The user never eats pork.
The user does not drink coffee.
She has no siblings.
They said they could not swim.
Nobody knows him better than Anna.
It was the blue one, on a Thursday in Rotterdam.
The user plays the cello.
As you said, your dog is called Biscuit.
You told me that you live in Ghent.
42
(A) the user adopted a greyhound
The user is unmarried.
The meeting was moved to Friday.
I know that one: it's jasmine tea.
You mentioned that it was Dr Okafor.
Not Rome but Oslo.
I remember: the budget is 48,000 euros.
The user moved from Rome to Oslo.
"""


@pytest.mark.parametrize("reply", REFUSALS.strip().splitlines())
def test_a_reply_that_declines_is_recognised(reply: str) -> None:
    assert refuses(reply)


@pytest.mark.parametrize("reply", ANSWERS.strip().splitlines())
def test_an_answer_is_not_a_refusal(reply: str) -> None:
    assert not refuses(reply)


def test_an_empty_reply_is_not_a_refusal() -> None:
    assert not refuses("")


OPTIONS = ("the user adopted a greyhound", "the user visited the salt mines")


@pytest.mark.parametrize(
    ("reply", "choice"),
    [
        ("A", 0),
        ("(B)", 1),
        ("B.", 1),
        ("The answer is (A).", 0),
        ("**B** the user visited the salt mines", 1),
        ("Option A: the greyhound", 0),
        ("the user adopted a greyhound", 0),
        ("The user visited the salt mines.", 1),
        ("Adopting the greyhound happened first.", 0),
        ("They adopted the greyhound before they visited the salt mines.", 0),
        ("The visit to the salt mines came first, then the greyhound was adopted.", 1),
        ("The greyhound was adopted after the visit to the salt mines.", 1),
        ("I think it was option B.", 1),
        ("I don't know.", None),
        ("Both: the greyhound and the salt mines.", None),
        ("", None),
        ("A greyhound", 0),
        ("Not the greyhound.", None),
    ],
)
def test_the_option_that_a_reply_takes(reply: str, choice: int | None) -> None:
    assert chosen_option(reply, OPTIONS) == choice


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("The user lives in Rome.", "Rome"),
        ("You live in ROME!", "Rome"),
        ("They have 3 kids.", "three"),
        ("It was on May 12th, 2024.", "12 May 2024"),
        ("2024-05-12", "12 May 2024"),
        ("It costs 1,200 dollars.", "1200 dollars"),
        ("No, the user works as a nurse.", "a nurse"),
        ("Nursing.", "nurse"),
        ("Not in Oslo but in Rome.", "Rome"),
        ("I'm not sure, but it is Rome.", "Rome"),
        ("He no longer lives in Oslo, he lives in Rome now.", "Rome"),
        ("Dr. Okafor is the dentist.", "Dr Okafor"),
        ("The user does not eat pork.", "does not eat pork"),
        ("They get up at 7 am", "7:00 am"),
    ],
)
def test_a_value_is_found_whatever_its_form(reply: str, value: str) -> None:
    assert mentions(reply, value)


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("The user lives in Oslo.", "Rome"),
        ("The user does not live in Rome.", "Rome"),
        ("The user no longer lives in Rome.", "Rome"),
        ("It is not Rome but Oslo.", "Rome"),
        ("They have 13 kids.", "3"),
        ("On 13 May 2024.", "12 May 2024"),
        ("A blue bike. The car is red.", "red bike"),
        ("", "Rome"),
        ("I don't know.", "Rome"),
        ("Never in Rome.", "Rome"),
    ],
)
def test_a_value_that_is_denied_or_another_is_not_found(reply: str, value: str) -> None:
    assert not mentions(reply, value)
