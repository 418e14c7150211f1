"""Facts about the parts of a request are kept while the part may come back, and never given to another part."""

from render.providers._facts import LEFT_MAX, PartFacts, Verdicts


def test_a_part_that_comes_back_is_not_checked_again() -> None:
    checked: list[object] = []

    def look(thing: object) -> PartFacts:
        checked.append(thing)
        return PartFacts(thing)

    verdicts = Verdicts(look)
    plain, marked, other = {"text": "a"}, {"text": "a", "mark": 1}, {"text": "b"}
    for request in ([plain], [marked, other], [plain, other], [marked, other]):
        assert [facts.source for facts in verdicts.on(request)] == request
    assert checked == [plain, marked, other]


def test_facts_are_always_about_the_very_object_however_many_have_left() -> None:
    verdicts = Verdicts(PartFacts)
    for number in range(3 * LEFT_MAX):  # ids of parts that nobody holds are given to new parts
        things = [{"number": number}, {"number": -number}]
        for thing, facts in zip(things, verdicts.on(things), strict=True):
            assert facts.source is thing
