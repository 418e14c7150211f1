"""`python -m timeline.fake_provider`: the fake provider as a command."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from blocks import FoldlineError
from timeline.fake_provider import Exchange, FakeProvider, FakeServer, Player, tutorial_responder

_DONE, _FAILED = 0, 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until interrupted; return the exit code: 0 done, 1 failed, 2 wrong usage."""
    parser = argparse.ArgumentParser(
        prog="python -m timeline.fake_provider",
        description="A local server that speaks Anthropic's and OpenAI's APIs, for tests. Any API key will do.",
    )
    parser.add_argument("--port", type=int, default=8787, help="default 8787; 0: any free one")
    parser.add_argument("--window", type=_positive, metavar="N", help="tokens of the window")
    parser.add_argument("--script", type=Path, metavar="FILE", help="answers, a JSON list")
    options = parser.parse_args(arguments)
    try:
        responder = Player.read(options.script) if options.script else tutorial_responder
        provider = FakeProvider(responder=responder, window=options.window, listener=_report)
        server = FakeServer(provider, port=options.port)
        server.listen()
        _say(f"fake provider on {server.url} (Ctrl-C ends it)")
        server.run()
    except KeyboardInterrupt:
        return _DONE
    except (FoldlineError, OSError) as error:
        why = str(error)
        if isinstance(error, OSError):
            why = f"{error.filename or options.port}: {error.strerror}"
        sys.stderr.write(f"{why}\n")
        return _FAILED
    return _DONE


def _positive(text: str) -> int:
    number = int(text)
    if number <= 0:
        raise ValueError(text)
    return number


def _report(exchange: Exchange) -> None:
    """Print one line about a request."""
    if error := exchange.error:
        _say(f"refused: {error.status} {error.message}")
    elif (answer := exchange.answer) and (step := exchange.step):
        _say(
            f"{answer.stop_reason}: prompt {exchange.tokens} "
            f"(cache read {step.read}, written {step.write}), output {answer.output_tokens} tokens"
        )


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
