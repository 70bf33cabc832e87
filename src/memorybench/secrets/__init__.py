"""Keeps the user's own secrets out of all output, and finds secrets in the texts of a memory under test.

The user's own secrets
  redaction.py             Redactor: removes known secrets from any text

Secrets in a memory
  credentials.py           credential_in, find_credentials: find keys, passwords and card numbers
  hiding.py                spans_to_hide: the parts of a text to hide because of its credentials
  credential.py            Credential: the kind and the place of a credential
  provider_keys.py         finds keys by the format that their provider documents
  credential_words.py      finds credentials by their name and the value beside it
  credential_sentences.py  finds passwords and keys by the sentence around them
  credential_phrases.py    finds seed phrases and passwords that consist of ordinary words
  pin_sentences.py         finds PINs and door codes
  credential_values.py     whether a value looks like a password or key
  sample_values.py         recognises sample values, such as those in documentation
  word_places.py           finds the parts of a text in which a rule may match, to save time

Planted secrets and copies
  canaries.py              finds a planted secret, in any encoding
  decoding.py              decodes a text in every known way
  compressed.py            finds and unpacks compressed texts in bytes
"""
