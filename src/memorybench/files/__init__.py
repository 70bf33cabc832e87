"""Reads config and data files, with the file and line of every value for error messages.

Formats
  loading.py       load: chooses the format by suffix
  reading.py       reads text: UTF-8 only, gzip with a size limit
  yaml_file.py     strict YAML
  json_text.py     strict JSON
  json_stream.py   reads a large JSON file piece by piece
  json_places.py   finds the line of a place in JSON text
  rows.py          JSONL and CSV files as streams
  parquet.py       reads the rows of Parquet files
  writing.py       writes a file so that it is complete or absent

Values
  located.py       Document: a value with the file and line of every place in it
  validation.py    validates a Document as a pydantic model
  record_keys.py   the keys that a model accepts, in camelCase and snake_case
  record_docs.py   sets the descriptions of a model's fields to their docstrings
  jsonpaths.py     Path: JSONPath with fallbacks

Configs
  configs.py       read_config: a config file with environment variables; merge: a config with the one it extends
  environment.py   expands ${VAR} and ${VAR:-default}
  templates.py     Template: text with ${name} placeholders
  bodies.py        BodyTemplate: nested data with placeholders
  prompts.py       reads the default prompts from catalog/prompts/

Names
  names.py         checks names and ids that become paths
  expressions.py   names with settings, such as bm25(k1=1.5)
  entry_points.py  entry points of this package and of others
"""
