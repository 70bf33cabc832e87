"""Check a memory store or an agent for noise, secrets, duplicates and lost facts.

The suite
  suite.py                 the suite: its commands
  spec.py                  the options of a run, one spec per command
  plays.py                 one scenario on a store: limits what it changes, and deletes it afterwards

Scenarios
  scenario.py              Scenario: the content of a scenario file
  script.py                the steps of a scenario
  placeholders.py          ${secret:…} and ${word:…}: values that are unique to a run
  scenarios.py             loads and checks scenario files

Assertions
  assertions.py            all kinds together, and the function that checks them
  assertions_base.py       base classes: text matching, bounds, the result of a check
  assertions_memory.py     about the content of a memory
  assertions_behaviour.py  about searches, curation, calls and answers

What a check reads and finds
  evidence.py              what assertions may read
  outside_files.py         finds files that a store wrote outside its folder
  unasserted_findings.py   finds credentials that were not planted, and facts of one user shown to another

`hygiene run`
  prepare.py               a run from its spec
  plan.py                  the jobs of a run without an agent
  attempts.py              the jobs of a run with a real agent, and which tools it gets
  driver.py                sets up a scenario, runs a script, checks the memory
  phases.py                runs one phase of a scenario and names its result
  mutants.py               misbehaving scripts made from well-behaved ones, and three simple agents
  checks.py                how well the assertions work: kill matrix, survivors, skipped assertions
  measures.py              the metrics
  report.py                the report
  rescoring.py             scores recorded results of scenarios again

`hygiene record`
  recording.py             runs an agent and records its calls
  drafts.py                turns recorded calls into a draft of a scenario
  replays.py               runs a draft on a store, and removes assertions that prove nothing

`hygiene forget`
  forget_plan.py           the run: one trial per step of the deletion procedure
  forgetting.py            deletes facts and checks step by step that nothing of them is left
  pairs.py                 made-up facts to delete, each with a twin that stays
  leftovers.py             searches the files of a store for deleted texts
  copies.py                finds copies of a text in bytes: plain, packed, encoded
  database_places.py       where in a SQLite file a byte is
  certificate.py           the report

`hygiene corrections`
  corrections.py           what a store returns after contradictory statements
  corrections_plan.py      the run: one trial per order of statements
  corrections_report.py    the report

`hygiene scan`
  scan.py                  scans a memory that people already have
  scan_texts.py            reads the texts of files, folders and SQLite databases
  scan_statements.py       statements that repeat, contradict each other or are out of date
  scan_meaning.py          reworded duplicates and contradictions, by embeddings
  scan_personal.py         personal data, and how it is hidden in what is shown
  scan_injection.py        orders to an agent, and invisible characters
  scan_model.py            asks a model what rules cannot find
  scan_output.py           a scan as text, JSON or SARIF; baselines
"""
