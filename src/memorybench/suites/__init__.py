"""The suites: kinds of measurements, and the code that all of them share to perform and report runs.

bench/ audit/ extraction/ hygiene/ online/   one folder per suite: suite, spec, prepare, plan, measures, report

What a suite is
  suite.py spec.py registry.py   a suite, what a run depends on, and the suites there are
  wiring.py                      how suites get providers, models, stores and data

A run
  starting.py running.py finished.py   checks it, performs it, reports it when it has ended
  run_row.py fetching.py blocking.py model_runs.py unrecorded_steps.py   parts of starting and performing a run
  estimates.py thresholds.py gate.py   costs in advance, required values, comparison with a baseline
  sampling.py shards.py merging.py repeats.py   which cases, on which machine, how often

What suites share
  ingest.py      fills a memory, searches it and clears it
  search_limits.py   how many memories are searched for, and how many the model sees
  answering.py   from memories to an answer and its scores
  judge_prompts.py judge_check.py calibration.py noise.py   the judge, and how far it can be trusted

Runs that were saved
  stored_run.py summary.py failures.py case_view.py   read a run: its measures, failures and cases
  run_costs.py run_list.py run_changes.py   what runs cost; list, tag, rename and delete runs
  sides.py comparison.py run_comparison.py setting_differences.py comparison_tables.py   compare runs
  report_parts.py report_questions.py case_sections.py html_report.py saved_report.py   describe them as reports
  junit.py inspect_log.py   write them for other programs
  replayed_steps.py recorded_ingest.py recorded_form.py   compute their scores again
"""
