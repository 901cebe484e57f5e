"""Queries over small tables look for a threshold, too; otherwise only those over many large files do."""

from __future__ import annotations

from unittest.mock import patch

from hedgerow.core.index import top_k

eager_thresholds = patch.multiple(top_k, _FEWEST=1, _FEWEST_IF_SURE=1, _FEWEST_ROWS=1)
