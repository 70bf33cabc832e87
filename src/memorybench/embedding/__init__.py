"""Embedders, which turn texts into vectors.

local.py   word vectors from an installed package: no server, no key
openai.py  OpenAI, Google, and servers with OpenAI's API
"""
