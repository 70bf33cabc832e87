"""Everything that has a name on the command line: bundled YAML cards, files of the user, installed plug-ins.

catalog.py     Catalog: finds entries and configs by name
entries.py     Entry: what `list` shows of one name; the baselines
files.py       finds YAML files and recognizes what each one is
plugins.py     entry points of other installed packages
schemas.py     JSON Schemas for editors
uses.py        what a config uses: programs, modules, images, SQL, hosts, environment variables
literal_credentials.py  rejects a config that contains a credential itself
keys.py        the settings of a provider, with their values and documentation

providers/ benchmarks/ extractors/ stores/ agents/   the bundled cards, one YAML file each
prompts/ scenarios/ starters/ data/                  default prompts, hygiene scenarios, files for `init`, other data
"""
