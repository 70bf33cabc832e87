"""Text handling that several packages need.

normalisation.py  converts texts to a standard form before they are compared
words.py          words, search terms and stems (Snowball)
english_numbers.py  English number words
stop_words.py     stop words, one list for each purpose and language
languages.py      which language a text is in
porter.py         NLTK's Porter stemmer, which LoCoMo's official F1 uses
patterns.py       regular expressions from files, with a time limit
reasoning.py      removes the reasoning of a model from its reply
quantities.py     numbers with nouns, such as `1 probe`
sanitize.py       removes control characters, quotes values in messages, protects spreadsheet cells
spelling.py       suggests the nearest known name; camelCase and snake_case keys
"""
