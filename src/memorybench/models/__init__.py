"""Models that answer and judge: servers with the API of OpenAI or Anthropic, and models that follow a rule.

opening.py    open_model: opens a model at its address
openai.py     OpenAI's chat completions API, which many servers offer
anthropic.py  Anthropic's Messages API
rehearsal.py  the models `scripted/…`, which follow a rule: no network, no cost
server.py     what requests to every server share; the context window
replying.py   reads values from the JSON that a server returns
presets.py    resolve: the server and key variables for a model name
config.py     the keys of a model card
prices.py     what a call costs, by its tokens
"""
