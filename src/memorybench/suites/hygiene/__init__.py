"""Check a memory store or an agent for noise, secrets, duplicates and lost facts.

scenario.py      Scenario: the content of a scenario file
script.py        the steps of a scenario
placeholders.py  ${secret:…} and ${word:…}: values that are unique to a run
scenarios.py     loads and checks scenario files
evidence.py      what assertions may read
assertions_base.py, assertions_memory.py, assertions_behaviour.py
                 the kinds of assertion
assertions.py    all kinds together, and the function that checks them
driver.py        sets up a scenario, runs a script, checks the memory
phases.py        the result of a phase: compliant, violated, defended, detected, missed or skipped
mutants.py       misbehaving scripts made from well-behaved ones, and three simple agents
checks.py        how well the assertions work: kill matrix, survivors, skipped assertions
measures.py      the metrics
plan.py          the jobs of a run without an agent
attempts.py      the jobs of a run with a real agent
drafts.py        turns recorded calls into a draft of a scenario
recording.py     runs an agent and records its calls
spec.py, prepare.py, suite.py
                 flags, preparation and registration of the suite
report.py        the report of `hygiene run`
pairs.py         made-up facts to delete, each with a twin that stays
forgetting.py    `hygiene forget`: deletes facts and checks step by step that nothing of them is left
leftovers.py     searches files for copies of a deleted text: packed, in free pages, in logs
forget_plan.py, certificate.py
                 the run of `hygiene forget`, and its report
corrections.py   `hygiene corrections`: what a store returns after contradictory statements
corrections_plan.py, corrections_report.py
                 its run and its report
reports.py       chooses the report by the command that made the run
"""
