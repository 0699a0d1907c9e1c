"""``kafka-quotas demo``: every step from manifests to drift, on a real Kafka that it starts and stops."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

from reconciler.cli import exit_codes, options, output
from reconciler.cli.arguments import OutputArguments, typed


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoArguments(OutputArguments):
    """The command line of ``demo``."""

    seconds: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``demo``."""
    parser.add_argument(
        "--seconds", type=float, default=20.0, metavar="S", help="let the clients send for this time [default: %(default)g]"
    )
    options.add_output_options(parser, formats=("text",))


def parse(namespace: argparse.Namespace) -> DemoArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(DemoArguments, namespace)


def run(args: DemoArguments) -> int:
    """Run the demonstration; 0 when every step ended as it must."""
    from reconciler.features.sandbox.demo import Screen, run_demo
    from reconciler.render import Line, Style, line

    def show(*lines: Line) -> None:
        output.print_lines(args, lines)

    run_demo(
        Screen(
            heading=lambda text: show(line(), line((text, Style.STRONG)), line()),
            say=lambda text: show(line(text)),
            quote=lambda text: show(*(line((f"    {row}", Style.FAINT)) for row in text.splitlines()), line()),
            command=lambda text: show(line(), line((f"$ {text}", Style.CREATE))),
        ),
        seconds=args.seconds,
        progress=output.StderrProgress(args),
    )
    sys.stdout.flush()
    return exit_codes.DONE
