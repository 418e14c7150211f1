"""An adapter whose framework is not installed says what to install."""

import importlib
import re
import sys
from pathlib import Path

import pytest

import timeline.integrations
from blocks import MisuseError, install_command
from tests.timeline.integrations._frameworks import FRAMEWORKS

HERE = Path(timeline.integrations.__file__).parent
ADAPTERS = [name for name in FRAMEWORKS if (HERE / f"{name.replace('-', '_')}.py").exists()]


@pytest.mark.parametrize("name", ADAPTERS)
def test_without_its_framework_an_adapter_names_its_extra(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = f"timeline.integrations.{name.replace('-', '_')}"
    for loaded in [m for m in sys.modules if m.partition(".")[0] == FRAMEWORKS[name]]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, FRAMEWORKS[name], None)
    with pytest.raises(MisuseError, match=rf"needs \S+ .*: {re.escape(install_command(name))}"):
        importlib.import_module(module)
