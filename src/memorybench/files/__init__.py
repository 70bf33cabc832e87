"""Reads config and data files. Every value knows its file and line, for error messages.

located.py      Document: a value with the file and line of every place in it
reading.py      reads text: UTF-8 only, gzip with a size limit
json_text.py    strict JSON
json_places.py  finds the line of a place in JSON text
rows.py         JSONL and CSV files as streams
yaml_file.py    strict YAML
loading.py      load: chooses the format by suffix
validation.py   validates a Document as a pydantic model
record_keys.py  the keys that a model accepts, in camelCase and snake_case
templates.py    Template: text with ${name} placeholders
bodies.py       BodyTemplate: nested data with placeholders
environment.py  expands ${VAR} and ${VAR:-default}
configs.py      read_config: a config file with environment variables
jsonpaths.py    Path: JSONPath with fallbacks
parquet.py      reads the rows of Parquet files
names.py        checks names and ids that become paths
"""
