"""Judges: a model decides whether a response is right; an unclear verdict is Unreadable, never a guess.

Verdicts on responses
  judge.py           Judge: renders the prompt, calls the model, records the verdict; detects responses that address it
  prompts.py         chooses and renders the judge prompt of a question (texts: catalog/prompts/), and encloses
                     untrusted text in delimiters that it cannot close
  asking.py          asks a model once, or a judge twice, and records the reply as a step
  verdicts.py        read_verdict: parses the reply of a judge
  choices.py         read_choice: finds out, without a model, which choice a multiple-choice answer names
  use.py             is_used: decides whether a reply uses a memory that was found
  canaries.py        check_judge: tests a judge with responses of known correctness (catalog/data/judge_canaries.json)

Facts in memories
  facts.py           splits a memory of any shape into atomic facts
  normal_form.py     gives facts that say the same the same spelling
  matching.py        matches the facts of two memories; code matches only facts with the same normal form
  matching_judge.py  EntailmentJudge: a model decides the pairs of facts that code cannot match
  enumeration.py     list_facts: lists the facts stated, written and withdrawn, in separate calls
"""
