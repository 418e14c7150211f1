"""Prints the names of a sample of mutants, the same each time, for `make mutants SAMPLE=400`."""

import sys
from random import Random

from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.utils.file_utils import walk_mutatable_files

SEED = 20261122


def names() -> list[str]:
    """The names of all mutants of the files listed under `[tool.mutmut]` in `pyproject.toml`."""
    found: list[str] = []
    for path in sorted(walk_mutatable_files()):
        module = ".".join(path.with_suffix("").parts)
        made = mutate_file_contents(str(path), path.read_text(encoding="utf-8"))
        found += (f"{module}.{name}" for name in made.mutant_names)
    return found


if __name__ == "__main__":
    print(*Random(SEED).sample(names(), int(sys.argv[1])), sep="\n")  # noqa: S311 -- a sample
