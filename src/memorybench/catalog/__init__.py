"""What can be named on the command line. Bundled YAML, files of the user's, installed plug-ins; no code is loaded.

catalog.py     Catalog: names → entries and configs
entries.py     Entry: what `list` tells about one name; the baselines
files.py       YAML files: where they are looked for, and what each is
plugins.py     entry points of installed packages
schemas.py     JSON Schemas for editors
keys.py        key → effect, as docs/config-keys.md shows it
providers/     bundled provider configs
benchmarks/    bundled benchmark configs
"""
