"""The viewer: read-only pages about runs in results folders, served to a browser on this machine.

app.py        routes, templates and error pages
security.py   which requests are answered, and the headers of every response
results.py    the results folders: runs, reports and questions, read with limits
conversations.py   conversations of a run, read again from its data if they are on this machine and unchanged
index.py      a temporary database of questions, by which pages filter, search and count
jobs.py       computes slow parts of pages, such as the report of a large run, in background threads
pages/        one module per page
templates/ static/   what a browser gets; reporting/html has the report sections and the style
"""
