"""Scores of single questions, measures of many outcomes, and their confidence intervals.

retrieval.py   retrieval metrics: formulas, cutoffs and table columns, one entry each
answers.py     exact match, contains, token F1 (SQuAD), and scores of lists and rubrics
locomo_f1.py   LoCoMo's official F1
rates.py       means, totals and pooled shares of scores
names.py       metric names and their aliases
intervals.py   confidence intervals of means and pooled shares
comparison.py  paired comparison of two providers
drift.py       unpaired comparison of two runs
agreement.py   a judge against human labels, and scores corrected for its errors
variance.py    variance between items, and between repeats of one item
"""
