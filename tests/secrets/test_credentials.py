from __future__ import annotations

import base64
from collections import Counter
from pathlib import Path
from urllib.parse import quote

import pytest

from memorybench.secrets.canaries import encodings
from memorybench.secrets.credentials import Kind, credential_in

HERE = Path(__file__).parent
ORDINARY = (HERE / "ordinary_sentences.txt").read_text(encoding="utf-8").splitlines()
ODD = (HERE / "ordinary_odds.txt").read_text(encoding="utf-8").splitlines()
LABELLED = [
    (line[0], line[2:].replace("·", ""))
    for line in (HERE / "credential_sentences.txt").read_text(encoding="utf-8").splitlines()
]
"""+: holds a credential; ?: holds one that is not recognised; -: holds none. The dots keep scanners quiet."""

# put together here, so that no scanner of repositories takes them for leaked ones
AWS = "AKIA" + "Q7ZP2M4XK9RT1WBN"
GITHUB = "ghp" + "_" + "k3J9xQ2mZ7vT4bN8sL1wR6yU0pD5fG2hA9cE"
MODEL = "sk" + "-proj-" + "7Hq2Lm9Xc4Vb1Nz8Kj5Gf3Ds6Pa"
SLACK = "xoxb" + "-2741-88120-Qw7Er9Ty2Ui4"
STRIPE = "sk" + "_live_" + "4eC39HqLyjWDarjtT1zdp7dc"
GOOGLE = "AIza" + "SyB7k2Qw9Er4Ty6Ui8Op1As3Df5Gh7Jk0Lz"
TOKEN = ".".join(
    base64.urlsafe_b64encode(part).decode().rstrip("=")
    for part in (b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"4711","name":"Ann"}', b"\x91\x22" * 16)
)
BLOCK = "-----BEGIN " + "RSA PRIVATE KEY-----\nMIIEow"
CARD = "4539 1488 0343 6467"

SHAPED: list[tuple[str, Kind]] = [
    (AWS, "AWS access key"),
    (GITHUB, "GitHub token"),
    (MODEL, "model API key"),
    (SLACK, "Slack token"),
    (STRIPE, "Stripe key"),
    (GOOGLE, "Google API key"),
    (TOKEN, "JSON web token"),
]


@pytest.mark.parametrize(("key", "kind"), SHAPED)
def test_known_keys_are_recognised_wherever_they_stand(key: str, kind: Kind) -> None:
    assert credential_in(f"Use {key} for the deploy.") == kind
    assert credential_in(f"key={key}") is not None


@pytest.mark.parametrize(("key", "kind"), SHAPED)
def test_known_keys_are_recognised_in_disguise(key: str, kind: Kind) -> None:
    assert credential_in(f"note: {base64.b64encode(key.encode()).decode()}") == kind
    assert credential_in(f"note: {base64.urlsafe_b64encode(key.encode()).decode().rstrip('=')}") == kind
    assert credential_in(f"note: {key.encode().hex()}") == kind
    assert credential_in(f"note: {key.encode().hex(':').upper()}") == kind
    assert credential_in("note: " + "".join(f"%{octet:02x}" for octet in key.encode())) == kind
    assert credential_in(f"note: {key[::-1]}") == kind
    assert credential_in("it is " + "\u200b".join(key)) == kind


@pytest.mark.parametrize("disguise", sorted(encodings("any").keys() - {"rot13"}))
@pytest.mark.parametrize(("key", "kind"), SHAPED[:3])
def test_a_canary_of_known_shape_is_recognised_in_each_of_its_disguises(key: str, kind: Kind, disguise: str) -> None:
    assert credential_in(f"Remember {encodings(key)[disguise]} for later") == kind


def test_a_key_that_is_spelled_out_is_recognised() -> None:
    assert credential_in("it is " + " ".join(AWS)) == "AWS access key"
    assert credential_in("it is " + " ".join(AWS[at : at + 4] for at in range(0, 20, 4))) == "AWS access key"


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (f"Here it is: {BLOCK}", "private key"),
        ("The database is postgres://app:s3cr3tpw@db.example:5432/main", "connection string with a password"),
        ("Authorization: Bearer 9aF3kL0qZx7Vb2Nm4Tg8", "bearer token"),
        (f"My card is {CARD}, valid until 09/29.", "payment card number"),
        ("My PIN is 4471.", "PIN"),
        ("the pin code for the garage: 90210", "PIN"),
        ("4471 is my bank pin", "PIN"),
        ("My password is hunter2!", "password"),
        ("My password is swordfish.", "password"),
        ("password: Tr0ub4dor&3", "password"),
        ("The password for the office wifi is Sunny-Day-88", "password"),
        ("the admin password is now 'correcthorse'", "password"),
        ("Passphrase = blue7heron", "password"),
        ("DB_PASSWORD=pa55w0rd", "password"),
        ("hunter22 is my password", "password"),
        ("The API key is 9f86d081884c7d65", "API key or token"),
        ("Use the token Zx81kQ0pLm42TrVbN7 to deploy", "API key or token"),
        ("secret_key: q1w2e3r4t5", "API key or token"),
        ("the password is S u n n y 8 8", "password"),
        ("password (base64): c3dvcmRmaXNoNDQ3MQ==", "password"),
        (base64.b64encode(b"my password is hunter2!").decode(), "password"),
        (quote("password: Tr0ub4dor&3", safe=""), "password"),
        ("L'identifiant est chef et le mot de passe c'est Tartelette-48-Menthe.", "password"),
        ("relay_token_b64: " + base64.b64encode(b"Qm7-8fJ2xLw9Zp4Rt6Vb1").decode(), "API key or token"),
        ("blob = " + base64.b64encode(b"helpdesk_admin:sUDKSChEB!2LxRY6JXy").decode(), "password"),
    ],
)
def test_credentials_are_recognised_as_people_say_them(said: str, kind: Kind) -> None:
    assert credential_in(said) == kind


def test_ordinary_sentences_give_no_false_alarm() -> None:
    assert len(ORDINARY) == len(set(ORDINARY)) == 200
    assert {said: kind for said in ORDINARY + ODD if (kind := credential_in(said)) is not None} == {}


def test_labelled_sentences_are_told_apart() -> None:
    """It finds 111 of 115 secrets, and nothing in the 108 other sentences. `?` marks secrets that it misses."""
    labels = Counter(label for label, _ in LABELLED)
    assert (labels["+"], labels["?"], labels["-"]) == (111, 4, 108)
    assert len({said for _, said in LABELLED}) == len(LABELLED)
    recognised = {said for _, said in LABELLED if credential_in(said) is not None}
    wrong = [(label, said) for label, said in LABELLED if (said in recognised) != (label == "+")]
    assert wrong == []


@pytest.mark.parametrize(
    "said",
    [
        "The private key is RSA-4096.",
        "The encryption key is AES-256.",
        "The access token is JWT-RS256.",
        "The token is ERC-20.",
        "The secret to good bread is 75%-hydration dough.",
    ],
)
def test_what_a_key_is_made_of_is_no_key(said: str) -> None:
    assert credential_in(said) is None


@pytest.mark.parametrize(
    "said", ["pw: Blume99!", "user=root pass=toor123", "My password is correct horse battery staple"]
)
def test_passwords_by_other_names_and_in_words_are_recognised(said: str) -> None:
    assert credential_in(said) == "password"


def test_a_number_that_fails_the_check_digit_is_no_card() -> None:
    assert credential_in(CARD) == "payment card number"
    assert credential_in(CARD[:-1] + "8") is None


def test_long_and_odd_texts_are_read_in_good_time() -> None:
    for text in ("", "\x00", "a " * 5_000, "password " * 1_200, "1 " * 5_000, "%" * 5_000, "A" * 25_000):
        assert credential_in(text) is None
    for text in ("password is " + "a " * 5_000, "seed phrase is " * 800, "login " * 1_200, "\\u0041" * 2_000):
        assert credential_in(text) is None
