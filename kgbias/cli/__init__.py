"""The command line: a command calls the front door (`kgbias.open`) and prints the result. Its
module is imported only when the command is called, which keeps `kgbias --help` instant.

To add a command to the core, write a function in a module here, which calls a method of `Study` or
`Run`; its decorator says where `kgbias --help` lists it and with what line (`kgbias.cli.commands`).
A method's command is an entry point of the group "kgbias.commands".
"""

import errno
import gc
import os
import signal
import sys
import threading
import traceback
from pathlib import Path
from typing import NoReturn

import click
from click.shell_completion import CompletionItem

from kgbias.cli import crash
from kgbias.cli.command import NAME_VALUE
from kgbias.cli.commands import COMMANDS, import_command, list_other_commands, list_sections
from kgbias.cli.settings import (
    CONFIG_VARIABLE,
    SET_VALUES_KEY,
    SHARED_SETTINGS,
    file_addresses,
    file_defaults,
    merge_values,
    move_settings_first,
    parse_set_values,
    read_settings_file,
    refuse_outside_paths,
    values_for_call,
)
from kgbias.cli.show import end_process, fail, fail_usage, prepare_streams
from kgbias.errors import KgbiasError, UsageError, nearest
from kgbias.io.caller_state import wait_passively
from kgbias.io.resources import __version__
from kgbias.io.stopping import note_stop
from kgbias.io.text import shorten


class LazyCommandGroup(click.Group):
    """Imports each command when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = import_command(name)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands' names, which need no import, and the options of this group."""
        names = [name for name in COMMANDS if name.startswith(incomplete)]
        items = [CompletionItem(name, help=COMMANDS[name].help) for name in names]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, move_settings_first(args))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command, with the values from --set and the folder's kgbias.toml."""
        if not (args[0] in COMMANDS or args[0].startswith("-") or ctx.resilient_parsing):
            nearest_command = nearest(args[0], COMMANDS)
            hint = f" (did you mean {nearest_command}?)" if nearest_command else ""
            raise UsageError(f"no command {args[0]!r}{hint}; kgbias --help lists them")
        name, command, remaining = super().resolve_command(ctx, args)
        if name is None or command is None:
            return name, command, remaining
        path, data = read_settings_file()
        set_values = ctx.meta.get(SET_VALUES_KEY, {})
        if data:
            ctx.default_map = {name: file_defaults(path, data, COMMANDS, name, command)}
            # Found in the folder, it may be a stranger's.
            if not os.environ.get(CONFIG_VARIABLE):
                refuse_outside_paths(path, data)
                from kgbias.models.http import withhold_keys

                typed = [*args, *(value for values in set_values.values() for value in values)]
                ctx.with_resource(withhold_keys(file_addresses(data, typed)))
        if set_values:
            call_defaults = {name: values_for_call(set_values, command)}
            ctx.default_map = merge_values(ctx.default_map or {}, call_defaults)
        return name, command, remaining

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The main way and the methods, a line each; of the other commands the names."""
        for title, commands in list_sections().items():
            with formatter.section(title):
                formatter.write_dl(commands)
        with formatter.section("Further commands, each with its own --help"):
            formatter.write_dl(list_other_commands())
        with formatter.section("Settings that commands share, for --set NAME=VALUE or kgbias.toml"):
            formatter.write_dl(
                [
                    (f"{name}={shared_setting.metavar}", shared_setting.help)
                    for name, shared_setting in SHARED_SETTINGS.items()
                ]
            )


@click.group(cls=LazyCommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--set",
    type=NAME_VALUE,
    multiple=True,
    metavar="NAME=VALUE",
    callback=parse_set_values,
    expose_value=False,
    help="A setting for this call only, such as --set device=cpu (repeatable, anywhere).",
)
@click.version_option(__version__)
def cli() -> None:
    """A map of what a language model believes about groups of people.

    Crawl a model for stereotype triples, keep them as a graph with full provenance, measure the
    graph, and report it. A crawl is a sample of what a model says, not of what is true; much of it
    is false, offensive or hurtful.
    """


def _describe_os_error(error: OSError) -> str:
    """What the system said, with advice where the cause is known."""
    reason = error.strerror or str(error)
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return (
            f"{reason}: the system allows no more open files (ulimit -n): allow more, or ask less "
            "at a time (--set concurrency=4)"
        )
    if error.filename:
        return f"{reason}: {shorten(str(error.filename), 200)}"
    if error.errno == errno.EAGAIN and reason == os.strerror(errno.EAGAIN):  # of a new process
        return (
            f"{reason}: the system allows no more processes (ulimit -u): allow more, or close "
            "programs"
        )
    if error.errno == errno.ENOENT and not _has_folder():
        return "the folder that you are in was removed: change to another"
    if error.errno in _OUTPUT_ERRORS:
        return f"cannot write the output: {reason}"
    return f"the system says: {reason}"


def _has_folder() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return False
    return True


_OUTPUT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)  # of writing alone


def _stop_once(*_: object) -> NoReturn:
    """The first Ctrl-C ends the work, which says what is kept; a second one ends the process."""
    signal.signal(signal.SIGINT, _stop_at_once)
    note_stop()
    raise KeyboardInterrupt


def _stop_at_once(*_: object) -> NoReturn:
    os.write(2, b"\nkgbias: stopped\n")
    os._exit(130)


def _report_thread(failed: threading.ExceptHookArgs) -> None:
    """Say an error in a thread in one line. One of ours ends the process: what waits for its work
    would wait for ever."""
    if not isinstance(failed.exc_value, Exception):
        return
    crash.print_crash(failed.exc_value)
    if any(
        frame.f_globals.get("__name__", "").partition(".")[0] == "kgbias"
        for frame, _ in traceback.walk_tb(failed.exc_traceback)
    ):
        os._exit(crash.EXIT_CODE)


def _report_ignored(ignored: "sys.UnraisableHookArgs") -> None:
    """Say an error that Python could give to nobody, as of a finaliser, in one line."""
    if isinstance(ignored.exc_value, Exception) and not sys.is_finalizing():
        crash.print_crash(ignored.exc_value)


def main() -> None:
    """Run the command line. An error that the user can fix is one line on stderr, no traceback."""
    # Most of what a command allocates lives until it ends: a collection every 700 objects costs a
    # tenth of its time.
    gc.set_threshold(10_000)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not ignored, as by nohup
        signal.signal(signal.SIGINT, _stop_once)
    wait_passively()
    threading.excepthook = _report_thread
    sys.unraisablehook = _report_ignored
    try:
        prepare_streams()
        code = cli.main(standalone_mode=False)
        sys.stdout.flush()
    except (click.exceptions.Abort, KeyboardInterrupt):
        fail("stopped; run the same command again to continue", 130)
    except click.ClickException as error:
        fail_usage(error)
    except KgbiasError as error:
        fail(str(error), error.exit_code)
    except BrokenPipeError:
        end_process(1)  # whoever read our output is gone: nothing more to say
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            fail(f"the file name is too long: {shorten(str(error.filename), 60)}", 2)
        fail(_describe_os_error(error), 2)
    except MemoryError:
        fail("not enough memory", 2)
    except UnicodeEncodeError as error:
        if "surrogates" not in str(error):
            fail(crash.save_crash(error), crash.EXIT_CODE)
        name = shorten(ascii(error.object), 200)
        fail(f"the name of a file or folder is not UTF-8, which this cannot write to: {name}", 2)
    except RuntimeError as error:
        if "start new thread" in str(error):
            fail("the system allows no more threads (ulimit -u): allow more, or close programs", 2)
        fail(crash.save_crash(error), crash.EXIT_CODE)
    except Exception as error:
        if isinstance(error, ValueError) and "null byte" in str(error):
            fail("a file name cannot contain a NUL character", 2)
        fail(crash.save_crash(error), crash.EXIT_CODE)
    end_process(code if isinstance(code, int) else 0)
