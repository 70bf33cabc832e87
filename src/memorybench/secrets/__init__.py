"""Secrets: keeping ours out of every output, and finding those of others in a memory.

redaction.py         Redactor: removes known secrets from any text
credentials.py       credential_in, find_credentials: find keys, passwords and card numbers
hiding.py            spans_to_hide: the parts of a text to hide because of its credentials
provider_keys.py     finds keys by the format that their provider documents
credential_words.py  finds credentials by the words around them
credential_phrases.py finds seed phrases, door codes and words to type when asked
credential_values.py judges the value beside such a word
sample_values.py     tells sample values of documentation from credentials
canaries.py          finds a planted secret, in any encoding
decoding.py          decodes a text in every known way
"""
