"""Files and text from outside. All that is loaded knows its place, so that a complaint can name file, line and key.

located.py      Document: a value, and the file and line of every place in it
reading.py      bytes to text: gzip with a cap, UTF-8 only, and what a file system can refuse
json_text.py    decode, parse_json, load_json: JSON at about the standard library's speed, without its silent mendings
json_places.py  finds the line of a place in JSON text, only when someone asks
rows.py         stream_jsonl, stream_csv and their load_ forms: one Document a row, memory stays flat; numbered_jsonl
yaml_file.py    parse_yaml, load_yaml: YAML without its surprises
loading.py      load: chooses by suffix
validation.py   validated, problems: a Document becomes a Record, or complaints with lines
templates.py    Template: ${name} placeholders, expanded in one pass
bodies.py       BodyTemplate: a nested structure whose values keep their types
environment.py  expand_environment: ${VAR} and ${VAR:-default} in config values
configs.py      read_config: a Record whose values may come from the environment
jsonpaths.py    Path: RFC 9535 with fallbacks
names.py        safe_name, safe_run_id, inside: names and ids that may become paths
record_keys.py  which keys a Record type knows, in camelCase and snake_case alike
"""
