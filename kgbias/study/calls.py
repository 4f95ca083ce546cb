"""What every public call has in common: its options are known by name, whole, to `help` and to
completion; a misspelt one is refused with the nearest there is; and the call leaves no trace in the
process but its result."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from types import FunctionType
from typing import Any, ForwardRef, TypeVar, get_args, is_typeddict

from kgbias.errors import UsageError, no_such
from kgbias.io.caller_state import restore_state
from kgbias.parameters import check_plain_value, expand_home, python_number

Call = TypeVar("Call", bound=Callable[..., Any])


class _LeftOut:
    """What stands in a signature for the default of an option that may be left out."""

    def __repr__(self) -> str:
        return "..."


def public_call(function: Call) -> Call:
    """The function as a public one. Its typed options (`**options: Unpack[...]`) are spelt out in
    its signature; an option that it does not take is a UsageError, and so is a text, a number or a
    path that is none; numbers of numpy are Python's; and what it changes in the process is put back
    (`kgbias.io.caller_state`)."""
    spelt = _spell_out_options(signature(function))
    parameters = spelt.parameters.values()
    takes_any = any(p.kind is Parameter.VAR_KEYWORD for p in parameters)
    names = [p.name for p in parameters if p.name != "self"]
    positions = [
        p.name
        for p in parameters
        if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    ]
    annotations = {p.name: p.annotation for p in parameters}

    @wraps(function)
    def call(*given: Any, **options: Any) -> Any:
        for name in options if not takes_any else ():
            if name not in names:
                raise UsageError(no_such("option", name, names, f" of {function.__name__}"))
        values = [python_number(value) for value in given]
        numbers = {name: python_number(value) for name, value in options.items()}
        for name, value in (*zip(positions, values, strict=False), *numbers.items()):
            check_plain_value(name, value, annotations.get(name, Any))
        paths = {name for name, annotation in annotations.items() if "Path" in str(annotation)}
        for place, name in enumerate(positions[: len(values)]):
            values[place] = expand_home(values[place]) if name in paths else values[place]
        numbers |= {n: expand_home(value) for n, value in numbers.items() if n in paths}
        with restore_state():
            return function(*values, **numbers)

    call.__signature__ = spelt  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


class PublicCalls:
    """A base of classes whose public methods are public calls."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, value in list(vars(cls).items()):
            # `working` returns before the work it is for, and a public call undoes its traces then.
            if isinstance(value, FunctionType) and not name.startswith("_") and name != "working":
                setattr(cls, name, public_call(value))


def _spell_out_options(found: Signature) -> Signature:
    """The signature with the options of a typed dict, which it takes by `**`, one by one."""
    parameters = []
    for parameter in found.parameters.values():
        unpacked = get_args(parameter.annotation)  # of `Unpack[...]`
        takes_options = parameter.kind is Parameter.VAR_KEYWORD and unpacked
        if not takes_options or not is_typeddict(unpacked[0]):
            parameters.append(parameter)
            continue
        parameters += [
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=_LeftOut(),
                annotation=_unquote_annotation(annotation),
            )
            for name, annotation in unpacked[0].__annotations__.items()
        ]
    return found.replace(parameters=parameters)


def _unquote_annotation(annotation: Any) -> Any:
    """An annotation in quotes as its text: what it names may be long to import."""
    return annotation.__forward_arg__ if isinstance(annotation, ForwardRef) else annotation
