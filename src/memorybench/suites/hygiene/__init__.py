"""Does a store, or an agent, keep memory clean: no noise, no secrets, no duplicates, nothing lost?

script.py      the steps of a scenario: six operations, a new session, a moment to remember
planted.py     ${secret:…} and ${word:…}: what is planted, unique in every run
matching.py    which texts an assertion means, whatever their wording
evidence.py    what assertions look at, gathered without changing it
claims.py      what all assertions have in common
about_memory.py, about_behaviour.py
               one Record for each kind of assertion
assertions.py  the kinds together, and how they are put to the evidence
scenario.py    Scenario: what a file says
scenarios.py   finds and reads the files, with located complaints
driver.py      fixture → steps → evidence, in a folder that is gone afterwards
defences.py    whether a store has defended itself, or only seems to
phases.py      what a phase came to: compliant, violated, defended, detected, missed or skipped
mutants.py     misbehaviour made from well-behaved scripts, and three agents that do nothing right
kills.py       which assertion caught what; which are dead
skips.py       which could not look
measures.py    what is reported
plan.py        scenarios × phases and mutants as jobs
attempts.py    scenarios put to real agents
drafts.py      what an agent was seen doing, as a scenario
"""
