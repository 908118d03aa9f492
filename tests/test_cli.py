"""The command line, run as people run it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from gristmill.cli import _COMMANDS, main


def call(*arguments, **kwargs):
    return CliRunner().invoke(main, list(arguments), catch_exceptions=False, **kwargs)


def test_help_imports_nothing_heavy():
    code = (
        "import sys\nsys.argv = ['gristmill', '--help']\nfrom gristmill.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "heavy = ('numpy', 'scipy', 'sklearn', 'rich', 'matplotlib', 'pandas')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[-1] == "[]"
    assert all(name in said for name in _COMMANDS)


@pytest.mark.parametrize("name", list(_COMMANDS))
def test_every_command_has_help(name):
    result = call(name, "--help")
    assert result.exit_code == 0
    # The line of the overview is kept apart so that it costs no import; it must not drift from the command's
    # own.
    assert _COMMANDS[name][1] in " ".join(result.output.split())


def test_an_unknown_command_is_refused_with_the_nearest():
    result = call("rum")
    assert result.exit_code == 2
    assert "Did you mean 'run'?" in result.output


def test_run_prints_a_table():
    result = call("run", "--events", "1500")
    assert result.exit_code == 0
    lines = result.output.splitlines()
    head = next(line for line in lines if line.startswith("learner"))
    assert all(word in head for word in ("error", "stored points", "memory", "events/s"))
    assert sum("Perceptron" in line or "NORMA" in line or "PA-I" in line for line in lines) == 5


def test_run_gives_json_and_the_same_for_a_seed():
    def errors(seed):
        lines = call("run", "--events", "1500", "--json", "--seed", seed).output.splitlines()
        return [json.loads(line)["metrics"]["error"] for line in lines]

    assert errors("1") == errors("1") != errors("2")
    assert all(0 < error < 0.5 for error in errors("1"))


def test_bad_options_have_exit_code_2():
    result = call("run", "--events", "0")
    assert result.exit_code == 2
    assert "--events" in result.output
