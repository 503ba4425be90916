"""Makes `engine_builders` importable for the tables of this directory, which are built before any fixture."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

NAME = "engine_builders"

if NAME not in sys.modules:
    spec = importlib.util.spec_from_file_location(NAME, Path(__file__).with_name("builders.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    spec.loader.exec_module(module)
