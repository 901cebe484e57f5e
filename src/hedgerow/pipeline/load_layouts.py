"""Reads what `learn`, `learn_tables` or `learn_partitions` saved."""

from __future__ import annotations

from pathlib import Path

from hedgerow.pipeline.learned import OF_PARTITIONS, OF_TABLES, Learned, read_text
from hedgerow.pipeline.learned_partitions import LearnedPartitions
from hedgerow.pipeline.learned_tables import LearnedTables


def load_layouts(path: str | Path) -> Learned | LearnedTables | LearnedPartitions:
    """Read a saved layout of one table, or the saved layouts of several tables or partitions."""
    text = read_text(path)
    if text.startswith(OF_TABLES):
        return LearnedTables.from_json(text)
    return (LearnedPartitions if text.startswith(OF_PARTITIONS) else Learned).from_json(text)
