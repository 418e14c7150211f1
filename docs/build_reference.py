"""Write docs/reference.md and docs/reference/, from docstrings (without importing) and from the commands.

python docs/build_reference.py            # or: make docs
"""

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

import click

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


class Page(NamedTuple):
    """A page of the reference: what a user wants to do, and the names for it, in the order of use."""

    title: str
    about: str
    contents: str
    """On each line a package or a class, and what is shown of it: public names, or methods."""


PAGES = {
    "open": Page(
        "Open a timeline",
        "A timeline is opened by its name in a store, with a model, a policy and a window.",
        """
        timeline: Timeline AsyncTimeline
        Timeline: open close id version settings artifacts requester traces
        timeline: model_named describe_model
        render: Model
        """,
    ),
    "append": Page(
        "Append",
        "What the user says, what the model answers and what the tools return becomes blocks of the log.",
        """
        Timeline: user attach steer followup record recording tool_result open_calls close_calls ids
        Timeline: note plan notice learn sync append flush
        blocks: parts_from
        """,
    ),
    "render": Page(
        "Render and send",
        "A render is the next request: the arguments of one call of the model, within the window.",
        """
        Timeline: render view calibrate
        render: Rendered View Json
        timeline: retry_with_compaction overflow_in
        timeline.tokens: TokenCounter RequestCounter
        """,
    ),
    "compact": Page(
        "Compact",
        "A compaction shortens the request; it happens by itself when one is due, and everything can be undone.",
        """
        Timeline: compact propose commit_draft expand hide restore
        render: CompactionDraft Proposal RungScope
        """,
    ),
    "policies": Page(
        "Choose a policy",
        "A policy says when to compact, how much to keep and how; it is a named one, or a `Policy` of your own.",
        """
        timeline: policy_named Policy
        """,
    ),
    "summarize": Page(
        "Summarise",
        "A summariser writes the text in place of folded blocks: quotes of them (the default), or a model's words.",
        """
        timeline: ExtractiveSummarizer ModelSummarizer
        Timeline: upgrade_summary
        timeline: SummaryRequest SummaryFailedError
        render: Summary
        blocks: StructuredSummary Provenance
        """,
    ),
    "read": Page(
        "Read, search, go back",
        "Nothing is lost: every block has a path, every version can be read, rendered and continued.",
        """
        Timeline: read search events follow at render_at snapshot fork sibling for_model
        """,
    ),
    "hooks": Page(
        "Watch and intervene",
        "Hooks and observers are functions of yours that a timeline calls when it compacts and renders.",
        """
        timeline: Hooks Compacting Edit Compacted Step quality_of
        """,
    ),
    "blocks": Page(
        "Blocks",
        "What a log consists of: each block is immutable, and of one of these kinds.",
        """
        blocks: Block Envelope UserPrompt UserAttachment UserSteer UserFollowup SystemMessage
        blocks: AssistantThinking AssistantCompletion ToolCall ToolResult Note Plan OpaqueBlock
        blocks: TextPart ImagePart DocumentPart ProviderPart
        blocks: text_of tag_of path_of BlockId TurnId CallId
        """,
    ),
    "events": Page(
        "Events",
        "What happened to the blocks, in the order in which it happened.",
        """
        blocks: Recorded BlockAppended BlocksHidden RangeCompacted CompactionSkipped UsageRecorded decode_event
        """,
    ),
    "errors": Page(
        "Errors",
        "All errors that are raised on purpose: wrong calls, invalid data, stores that cannot, refused requests.",
        """
        blocks: FoldlineError MisuseError ArgumentError UnknownPathError UnknownCallError AlreadyRecordedError
        blocks: AccessRefusedError TooLargeError ClosedError
        blocks: DataError CodecError SessionFormatError HistoryDivergedError LogRewoundError DamagedStoreError
        blocks: StoreError VersionConflictError TimelineExistsError UnknownTimelineError ForgottenError
        blocks: StoreLockedError OutcomeUnknownError
        blocks: InvalidRequestError
        """,
    ),
    "stores": Page(
        "Stores",
        "Where the events are: in memory, in a file or on a server.",
        """
        persistence: open_store MemoryStore DuckDBStore SQLiteStore PostgresStore look verify repair
        Timeline: retain forget
        """,
    ),
    "own-store": Page(
        "Write a store",
        "A subclass of `EventStore` that passes `StoreContract` is a store.",
        """
        persistence: EventStore Head
        persistence.testing: StoreContract RecordingStore
        """,
    ),
    "artifacts": Page(
        "Artifacts",
        "Large and secret results are kept beside the log, encrypted where they must be, and every access is recorded.",
        """
        persistence: open_artifacts ArtifactDescription Requester Keys
        """,
    ),
    "agent": Page(
        "Run an agent",
        "A small, complete agent: ask the model, run its tools, until it is done.",
        """
        timeline: tool ReactAgent AsyncReactAgent
        timeline.react: AgentSettings Outcome Limits OutputError ToolReply RunContext reading_tools file_state
        timeline.react: McpServer SubAgent
        timeline.react: AgentHooks SessionStarted StepStarted TextDelta StreamLost ToolStarted ToolDone ApprovalNeeded StepDone
        """,
    ),
    "adapters": Page(
        "Use it under another framework",
        "Each adapter needs its framework, and is imported from a module of its own.",
        """
        timeline.integrations.openai_agents: TimelineSession TimelineHooks
        timeline.integrations.pydantic_ai: TimelineCapability messages_of
        timeline.integrations.langchain: TimelineMiddleware messages_of
        timeline.integrations.google_adk: TimelinePlugin
        timeline.integrations.strands_agents: TimelineConversationManager messages_of
        timeline.integrations.agent_framework: TimelineMiddleware messages_of
        """,
    ),
    "replay": Page(
        "Replay a session",
        "What a recorded session of another agent would have sent and cost with a policy.",
        """
        persistence.sessions: read_session
        timeline.replay: replay ReplayOptions ReplayResult
        """,
    ),
    "report": Page(
        "Look at it in a browser",
        "A timeline as one HTML file that needs no network, or live.",
        """
        timeline.report: report_html reported_log Prompting live_app
        """,
    ),
    "gateway": Page(
        "Run the gateway",
        "An HTTP server between an agent that cannot be changed and its provider.",
        """
        timeline.gateway: Gateway GatewayServer
        """,
    ),
    "testing": Page(
        "Test without a network",
        "A local server that speaks the APIs of Anthropic and OpenAI, keeps their rules, and misbehaves on demand.",
        """
        timeline.fake_provider: FakeServer FakeProvider Reply Call Fault wants_summary summary_reply
        """,
    ),
}
SHARED = "Timeline"
"""The class whose methods are spread over the pages."""
TWINS = {"AsyncTimeline": SHARED}
"""A class with the methods of another, which are shown there."""
PREAMBLE = """\
# Reference

Everything public, by task. What is not here is private, also where it can be imported, and may change at any time. These
pages are generated by `make docs` from the docstrings and from the command's own help; do not edit them.

| to | names and their use |
|---|---|
"""
COMMANDS = "The command line"
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
LINE_MAX = 88


class Public(NamedTuple):
    """A public name and the statement that defines it."""

    name: str
    node: ast.stmt
    doc: str
    module: str


def file_of(module: str) -> Path:
    """The source of a module or package."""
    path = ROOT / module.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def tree_of(module: str) -> ast.Module:
    """The parsed source of a module or package."""
    return ast.parse(file_of(module).read_text(encoding="utf-8"))


def exports(package: str) -> list[str]:
    """The public names of a package: its `__all__`."""
    for node in tree_of(package).body:
        if isinstance(node, ast.Assign) and "__all__" in assigned(node):
            names: list[str] = ast.literal_eval(node.value)
            return names
    return []


def entries(page: Page) -> Iterator[tuple[str, str]]:
    """What a page shows: the package or class, and the name in it."""
    for line in page.contents.split("\n"):
        owner, _, names = line.strip().partition(": ")
        yield from ((owner, name) for name in names.split())


def definition(module: str, name: str) -> Public:
    """Where a name is defined, following re-exports."""
    body = list(with_later(tree_of(module).body))
    for index, node in enumerate(body):
        if (
            isinstance(node, ast.ClassDef | Function)
            and node.name == name
            and not is_overload(node)
        ):
            return Public(name, node, ast.get_docstring(node) or "", module)
        if name in assigned(node):
            return Public(name, node, text_after(body, index), module)
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return definition(node.module, alias.name)
    raise LookupError(f"{module} does not define {name}")


def with_later(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, and those under its `if TYPE_CHECKING`."""
    for node in body:
        yield from node.body if isinstance(node, ast.If) else [node]


def is_overload(node: ast.ClassDef | Function) -> bool:
    """Whether it only says how what follows may be called."""
    return any(ast.unparse(mark) == "overload" for mark in node.decorator_list)


def assigned(node: ast.stmt) -> list[str]:
    """Names that a statement assigns."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
    return [target.id for target in targets if isinstance(target, ast.Name)]


def text_after(body: list[ast.stmt], index: int) -> str:
    """The string that stands behind an assignment and documents it."""
    after = body[index + 1] if index + 1 < len(body) else None
    if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
        return inspect.cleandoc(str(after.value.value))
    return ""


def described(public: Public) -> Iterator[str]:
    """The Markdown of one name."""
    yield f"\n## `{public.name}`\n"
    node = public.node
    if isinstance(node, Function):
        yield code(signature(node, public.name))
    elif isinstance(node, ast.ClassDef):
        named = map(ast.unparse, node.bases)
        bases = ", ".join(base for base in named if base not in ("Shell", "OwnStore"))
        yield code(f"class {node.name}({bases})" if bases else f"class {node.name}")
    else:
        yield code(shortened(ast.unparse(node)))
    if public.doc:
        yield text(public.doc)
    if isinstance(node, ast.ClassDef):
        yield from fields(node)
        if public.name == SHARED:
            yield from whereabouts()
        elif twin := TWINS.get(public.name):
            yield f"Its methods and properties are those of [`{twin}`](#{twin.lower()}).\n"
        else:
            yield from methods(node, public.module)


def whereabouts() -> Iterator[str]:
    """The pages with the methods of the class that is spread over them."""
    for name, page in PAGES.items():
        shown = [f"`{method}`" for owner, method in entries(page) if owner == SHARED]
        if shown:
            yield f"- [{page.title}]({name}.md): {', '.join(shown)}"
    yield ""


def fields(node: ast.ClassDef) -> Iterator[str]:
    """The public attributes of a class."""
    rows: list[str] = []
    for index, item in enumerate(node.body):
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            name = item.target.id
            if name.startswith("_") or "ClassVar" in ast.unparse(item.annotation):
                continue
            default = f" = {ast.unparse(item.value)}" if item.value and simple(item.value) else ""
            doc = " ".join(text_after(node.body, index).split())
            kind = ast.unparse(item.annotation)
            rows.append(f"- `{name}: {kind}{default}`" + (f": {doc}" if doc else ""))
    if rows:
        yield "\n".join(rows) + "\n"


def simple(value: ast.expr) -> bool:
    """Whether a default says more than it costs to read."""
    return isinstance(value, ast.Constant) or ast.unparse(value) in {"()", "{}"}


def methods(node: ast.ClassDef, module: str) -> Iterator[str]:
    """The public methods and properties of a class."""
    for item in functions(node, module):
        if not item.name.startswith("_"):
            yield f"### `{item.name}`\n"
            yield from method(item, node.name)


def method(item: Function, owner: str) -> Iterator[str]:
    """The call and the text of one method or property."""
    marks = {ast.unparse(mark) for mark in item.decorator_list}
    if not {"property", "cached_property"} & marks:
        yield code(signature(item, item.name))
    yield text(told(item, owner))


PROTOCOLS = {"Store": "EventStore", "Counter": "TokenCounter"}


def told(method: Function, owner: str) -> str:
    """What a method does; one of a store or of a counter, what its protocol says."""
    whose = next((name for end, name in PROTOCOLS.items() if owner.endswith(end)), "")
    return ast.get_docstring(method) or (whose and f"See `{whose}.{method.name}`.")


def functions(node: ast.ClassDef, module: str) -> Iterator[Function]:
    """What a class defines, the operations that it is bound to, and what it has from `Shell`."""
    for item in node.body:
        match item:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield item
            case ast.Assign(value=ast.Call(func=ast.Name("bound"), args=[run, operation])):
                yield bound(method_of(node, module, run), method_of(node, module, operation))
            case ast.Assign(value=ast.Call(func=ast.Name("staticmethod"), args=[ast.Name(name)])):
                if isinstance(function := definition(module, name).node, Function):
                    yield function
            case _:
                pass
    if any(ast.unparse(base) == "Shell" for base in node.bases):
        yield from functions(*class_of(module, "Shell"))


def bound(run: Function, operation: Function) -> Function:
    """The method that an operation (it returns a `Flow[...]`) becomes when `run` drives it."""
    returns = run.returns
    if isinstance(operation.returns, ast.Subscript) and returns and ast.unparse(returns) == "_T":
        returns = operation.returns.slice
    return type(run)(**{**vars(operation), "returns": returns})


def method_of(node: ast.ClassDef, module: str, named: ast.expr) -> Function:
    """A method by its name, or by `Class.name`; of the class itself, or of a base."""
    kind, _, name = ast.unparse(named).rpartition(".")
    if kind:
        node, module = class_of(module, kind)
    for item in node.body:
        if isinstance(item, Function) and item.name == name:
            return item
    base = ast.unparse(node.bases[0])
    return method_of(node, module, ast.parse(f"{base}.{name}", mode="eval").body)


def class_of(module: str, name: str) -> tuple[ast.ClassDef, str]:
    """A class that a module defines or imports, and the module that defines it."""
    found = definition(module, name)
    if not isinstance(found.node, ast.ClassDef):
        raise TypeError(f"{module}.{name} is no class")
    return found.node, found.module


def signature(node: Function, name: str) -> str:
    """The call, without `self`."""
    arguments = ast.unparse(node.args)
    for own in ("self", "cls"):
        arguments = (
            arguments.removeprefix(own).removeprefix(", ")
            if arguments.startswith(own)
            else arguments
        )
    prefix = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return shortened(f"{prefix}{name}({arguments.removeprefix('/, ')}){returns}")


def shortened(line: str) -> str:
    """One line where it fits, else one argument or alternative a line."""
    if len(line) <= LINE_MAX:
        return line
    head, bracket, rest = line.partition("(" if "(" in line.split("=", maxsplit=1)[0] else "[")
    inner, end, tail = rest.rpartition(")" if bracket == "(" else "]")
    parts = split(inner)
    return head + bracket + "\n" + "".join(f"    {part},\n" for part in parts) + end + tail


def split(inner: str) -> list[str]:
    """Split at the commas that stand in no bracket."""
    parts, depth = [""], 0
    for character in inner:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def code(lines: str, language: str = "py") -> str:
    """A block of code that is shown, not run."""
    return f"```{language}\n{lines}\n```\n"


def text(doc: str) -> str:
    """A docstring as Markdown: its sections are lists; what else is indented is shown as it is."""
    lines, in_section = list[str](), False
    for line in doc.rstrip().splitlines():
        if found := SECTION.fullmatch(line):
            in_section = True
            lines += [f"**{found[1]}**", ""]
        elif in_section and (found := ENTRY.fullmatch(line)):
            lines.append(f"- `{found[1]}`: {found[2]}")
        elif in_section and line.startswith("        "):
            lines.append(f"  {line.strip()}")
        else:
            in_section = in_section and not line
            lines.append(line)
    return "\n".join(lines) + "\n"


SECTION = re.compile(r"(Args|Raises|Returns|Yields):")
ENTRY = re.compile(r" {4}(\w[\w*, ]*): (.*)")


def task_page(page: Page) -> str:
    """A page with all that it names, in its order."""
    lines = [f"# {page.title}\n", f"{page.about}\n"]
    shown = list(entries(page))
    for package in dict.fromkeys(owner for owner, _ in shown if owner != SHARED):
        names = ", ".join(name for owner, name in shown if owner == package)
        lines.append(
            shortened(f"from {package} import ({names})").replace("(" + names + ")", names)
        )
    lines[2:] = [code("\n".join(lines[2:]))] if lines[2:] else []
    for owner, name in shown:
        if owner == SHARED:
            lines.append(f"\n## `{SHARED}.{name}`\n")
            lines += method(shared_methods()[name], SHARED)
        else:
            lines += described(definition(owner, name))
    return "\n".join(lines).rstrip() + "\n"


@cache
def shared_methods() -> Mapping[str, Function]:
    """The public methods and properties that are spread over the pages, by name."""
    node, module = class_of("timeline", SHARED)
    return {each.name: each for each in functions(node, module) if not each.name.startswith("_")}


def command_page() -> str:
    """Every command with its arguments and options, as `--help` has them."""
    from timeline.cli._main import foldline

    context = click.Context(foldline, info_name="foldline")
    lines = [f"# {COMMANDS}\n", f"{foldline.help}\n", *map(option, foldline.params), ""]
    lines.append("Exit codes: 0 done, 1 the work failed, 2 wrong usage, 130 interrupted.\n")
    lines.append(
        "What the numbers mean: [glossary](../glossary.md). Variables: [settings](../settings.md).\n"
    )
    for name in foldline.list_commands(context):
        command = foldline.get_command(context, name)
        usage = " ".join(["foldline", name, *command.collect_usage_pieces(context)])
        lines += [f"## {name}\n", f"{command.help}\n", code(usage, "text")]
        lines += [*map(option, command.params), ""]
    return "\n".join(lines).rstrip() + "\n"


def option(param: click.Parameter) -> str:
    """An option or argument, as an entry of a list."""
    choices = param.type.choices if isinstance(param.type, click.Choice) else ()
    value = param.metavar or "|".join(choices)
    names = ", ".join(param.opts) if isinstance(param, click.Option) else ""
    return f"- `{f'{names} {value}'.strip()}`: {getattr(param, 'help', '')}"


def pages() -> dict[Path, str]:
    """Every page of the reference, by its file."""
    folder, index = DOCS / "reference", PREAMBLE
    made: dict[Path, str] = {}
    for name, page in PAGES.items():
        made[folder / f"{name}.md"] = task_page(page)
        index += f"| [{page.title}](reference/{name}.md) | {page.about} |\n"
    made[folder / "commands.md"] = command_page()
    index += f"| [{COMMANDS}](reference/commands.md) | Every command, with its arguments and options. |\n"
    return {DOCS / "reference.md": index, **made}


def main() -> None:
    """Write the pages."""
    (DOCS / "reference").mkdir(exist_ok=True)
    made = pages()
    for stale in set((DOCS / "reference").iterdir()) - set(made):
        stale.unlink()
    for page, text in made.items():
        page.write_text(text, encoding="utf-8")
        print(f"{page.relative_to(ROOT)}: {text.count(chr(10))} lines")


if __name__ == "__main__":
    main()
