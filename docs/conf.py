"""How Sphinx builds the documentation site from these pages: `make site`.

The pages are written so that their links work where the repository is looked at. Two things differ in the site: a
link that leaves this folder leads to the repository, and a page that is nothing but a link to such a file shows it.
"""

import re
import tomllib
from os.path import relpath
from pathlib import Path

from sphinx.application import Sphinx

DOCS = Path(__file__).parent
ROOT = DOCS.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FILES = PROJECT["urls"]["Repository"] + "/blob/main/"
LINK = re.compile(r"(?<=\]\()(?P<target>[^)#\s]+)(?P<anchor>#[^)\s]*)?(?=\))")
SHOWN = re.compile(r"\[[^\]]+\]\((?P<target>\.\./[^)\s]+)\)\n")
"""All that stands in a page which shows a file from outside this folder."""

TREE = {
    "First steps": """
        tutorial never-forgets bill report command-line glossary
    """,
    "How to": """
        how-to/approvals how-to/mcp how-to/sub-agents how-to/hooks traces how-to/pinned-notes how-to/hide-secrets
        how-to/own-store how-to/own-rung how-to/own-importer
        gateway gateway-clients wrap agent testing integrations integrations/openai integrations/google-genai
        integrations/litellm integrations/openai-agents integrations/pydantic-ai
        integrations/langchain integrations/google-adk integrations/strands-agents
        integrations/agent-framework integrations/claude-agent-sdk
    """,
    "Concepts": """
        blocks-and-events render compaction ladder durability rehydration recovery caching
        counting providers stores high-availability artifacts policies replay sessions foreign-messages
    """,
    "Reference": """
        reference reference/open reference/append reference/render reference/compact reference/policies
        reference/summarize reference/read reference/hooks reference/blocks reference/events reference/errors
        reference/stores reference/own-store reference/artifacts reference/agent reference/adapters
        reference/replay reference/report reference/gateway reference/testing reference/commands settings
    """,
    "How good it is": """
        reliability performance scale tuning project/peers gateway-measured
    """,
    "The project": """
        architecture dependencies project/benchmarks project/contributing project/security
        project/changelog
    """,
}
"""What the sidebar shows; a page that is not here is a warning, and so an error."""

project = PROJECT["name"]
author = PROJECT["authors"][0]["name"]
copyright = f"2026 {author}"  # noqa: A001 -- what Sphinx calls it
version = release = PROJECT["version"]
extensions = ["myst_parser"]
exclude_patterns = ["examples"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4  # the anchors that GitHub gives headings
smartquotes = False  # they would make a dash of the two of an option
html_theme = "furo"
html_title = f"{project} {version}"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False


def shown_elsewhere() -> dict[Path, str]:
    """The files outside this folder that a page shows, and that page."""
    found = (
        (page, SHOWN.fullmatch(page.read_text(encoding="utf-8"))) for page in DOCS.rglob("*.md")
    )
    return {
        (page.parent / match["target"]).resolve(): relpath(page, DOCS)
        for page, match in found
        if match
    }


def read(app: Sphinx, name: str, source: list[str]) -> None:
    """Put the file in the place of a page that shows one, and mend the links that leave the folder."""
    page = Path(app.env.doc2path(name))
    written = page
    if match := SHOWN.fullmatch(source[0]):
        written = (page.parent / match["target"]).resolve()
        app.env.note_dependency(str(written))
        source[0] = written.read_text(encoding="utf-8")
    pages = shown_elsewhere()

    def mended(match: re.Match[str]) -> str:
        file = (written.parent / match["target"]).resolve()
        if "://" in match["target"] or not file.exists():
            return match[0]
        file = DOCS / pages[file] if file in pages else file
        where = relpath(file, page.parent) if DOCS in file.parents else FILES + relpath(file, ROOT)
        return where + (match["anchor"] or "")

    source[0] = LINK.sub(mended, source[0])
    if name == "index":
        source[0] += "".join(map(toctree, TREE))


def toctree(caption: str) -> str:
    """A part of the sidebar, as the first page has it."""
    pages = "\n".join(TREE[caption].split())
    return f"\n:::{{toctree}}\n:hidden:\n:caption: {caption}\n\n{pages}\n:::\n"


def setup(app: Sphinx) -> None:
    """What Sphinx calls first."""
    app.connect("source-read", read)
