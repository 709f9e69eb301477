"""The command line: ``snnmap COMMAND``, one file a command, nothing but argv, calls and printing.

A command module ``snnmap/cli/NAME.py`` exposes either ``command`` (one function, becomes
``snnmap NAME``) or ``app`` (a `typer.Typer`, becomes a group such as ``snnmap suite list``). It
imports heavy rooms inside its functions, so that ``snnmap --help`` stays instant. Users' mistakes
are raised as `SnnmapError`; only :func:`main` prints them. Work runs inside
``with snnmap.cli.progress.listening(...) as progress``, which draws bars and handles Ctrl-C.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from typing import Annotated, Any

import typer

from snnmap.errors import OutputError, SnnmapError

PANELS: dict[str, tuple[str, ...]] = {
    "Map a network": ("check", "map", "verify", "plot", "simulate"),
    "One step at a time": ("info", "partition", "place", "export", "convert"),
    "What there is": ("networks", "profiles", "suite"),
    "Measure and prepare": ("bench", "warmup"),
}
"""Every command, in the order and under the headings of ``snnmap --help``."""

EXIT_FAULT = 70
"""Exit code for a fault of snnmap itself (sysexits' EX_SOFTWARE); users' mistakes give 2."""

_SIGNAL_OF: dict[type, int] = {
    SystemExit: signal.SIGTERM,
    KeyboardInterrupt: signal.SIGINT,
}
"""Which signal's handler raises what."""


def _show_version(wanted: bool) -> None:
    if wanted:
        from snnmap import __version__

        typer.echo(f"snnmap {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and leave."
        ),
    ] = False,
) -> None:
    """Put spiking neural networks onto neuromorphic chips: partition, place, see what it costs.

    Start with **snnmap map lenet --profile loihi64 -o out**, or ask first whether a network fits:
    **snnmap check lenet --profile loihi64**. Every command explains itself with **--help**.

    Exit codes: 0 done, 1 the answer is no (check, verify), 2 a mistake in what was asked
    (one line on stderr says which), 130 interrupted.
    """


def build_app() -> typer.Typer:
    """The Typer application with every command registered."""
    app = typer.Typer(
        name="snnmap",
        callback=_root,
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for panel, names in PANELS.items():
        for name in names:
            module: Any = import_module(f"snnmap.cli.{name}")
            if hasattr(module, "app"):
                for member in module.app.registered_commands:
                    member.callback = _interruptible(member.callback)
                app.add_typer(module.app, name=name, rich_help_panel=panel)
            else:
                app.command(name, rich_help_panel=panel)(_interruptible(module.command))
    return app


class _InterruptionError(Exception):
    """KeyboardInterrupt on its way out, by a name that the argument parser leaves alone."""


def _interruptible(command: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(command)
    def run(*args: Any, **options: Any) -> Any:
        try:
            return command(*args, **options)
        except KeyboardInterrupt:
            raise _InterruptionError from None

    return run


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; no exception but a fault's leaves it.

    Args:
        arguments: words after the program's name; default ``sys.argv[1:]``.
    """
    try:
        with _terminable():
            build_app()(args=None if arguments is None else list(arguments), prog_name="snnmap")
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    except SnnmapError as error:
        return _refuse(error)
    except BrokenPipeError:  # the reader of our output left, e.g. `snnmap ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (KeyboardInterrupt, _InterruptionError):
        print("snnmap: interrupted; nothing was written", file=sys.stderr)
        return 130
    except MemoryError as error:
        return _refuse(SnnmapError(f"out of memory: {error or 'no detail'}; use a smaller network"))
    except OSError as error:
        if error.filename is None and error.errno is None:
            return _fault()
        reason = error.strerror or str(error)
        return _refuse(OutputError(f"{error.filename or 'system'}: {reason}"))
    except Exception:
        return _fault()
    return 0


def _refuse(error: SnnmapError) -> int:
    text = " ".join(str(error).split())
    print(f"snnmap: {text}", file=sys.stderr)
    if os.environ.get("SNNMAP_DEBUG"):
        traceback.print_exc()
    return error.exit_code


def _fault() -> int:
    traceback.print_exc()
    print(
        "snnmap: this is a fault of snnmap itself; please report the lines above", file=sys.stderr
    )
    return EXIT_FAULT


@contextmanager
def _terminable() -> Iterator[None]:
    """Turn SIGTERM into an ordinary exit, so that temporary files are cleared away.

    Where Python loses what a signal's handler raises, in a finalizer, the signal comes once more.
    """

    def leave(_signal: int, _frame: object) -> None:
        sys.exit(128 + signal.SIGTERM)

    def lost(what: sys.UnraisableHookArgs) -> None:
        number = _SIGNAL_OF.get(what.exc_type)
        if number is None:
            hook(what)
            return
        again = threading.Timer(0.01, os.kill, (os.getpid(), number))
        again.daemon = True  # the program may be over by then
        again.start()

    try:
        before = signal.signal(signal.SIGTERM, leave)
    except ValueError:  # not the main thread
        yield
        return
    hook, sys.unraisablehook = sys.unraisablehook, lost
    try:
        yield
    finally:
        sys.unraisablehook = hook
        signal.signal(signal.SIGTERM, before)
