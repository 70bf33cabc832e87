from memorybench.providers.shelves import Shelves


class Index:
    def __init__(self, scope: str) -> None:
        self.scope = scope
        self.closed = False

    def close(self) -> None:
        self.closed = True


def test_a_scope_is_built_once_until_it_changes() -> None:
    shelves = Shelves(Index)
    first = shelves.run_reader("a")
    assert shelves.run_reader("a") is first
    shelves.drop("a")
    assert first.closed
    assert shelves.run_reader("a") is not first


def test_the_scope_not_searched_for_longest_gives_way_to_the_seventeenth() -> None:
    shelves = Shelves(Index)
    indexes = [shelves.run_reader(str(n)) for n in range(16)]
    shelves.run_reader("0")
    shelves.run_reader("one more")
    assert [index.scope for index in indexes if index.closed] == ["1"]
    shelves.close()
    assert all(index.closed for index in indexes)
