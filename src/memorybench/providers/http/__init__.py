"""Any memory service with an HTTP and JSON API, as its YAML card describes it.

provider.py      HttpProvider: adds, searches, lists and clears memories
service.py       all requests of a service, parsed once
requests.py      renders a request from its template and sends it
signing.py       signs requests with a function of the user
scopes.py        names, opens and clears the scopes of a run
documents.py     splits sessions into the documents that are sent
waiting.py       waits until documents are searchable; delays requests
results.py       reads memories from a reply
paging.py        reads results that arrive in pages
docker.py        starts a docker compose stack, and removes it afterwards
docker_stack.py  the commands of docker compose
"""
