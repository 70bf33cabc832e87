"""Secrets: keeping ours out of every output, and finding those of others in a memory.

redaction.py         Redactor: removes known secrets from any text
credentials.py       credential_in: finds keys, passwords and card numbers by their shape
credential_words.py  finds credentials by the words around them
canaries.py          finds a planted secret, in any encoding
decoding.py          decodes a text in every known way
"""
