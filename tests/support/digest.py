"""A short digest, by which tests notice that generated data or queries have changed."""

import hashlib


def digest(value: object) -> str:
    """Return a digest of a text, or of what `repr` shows of another value."""
    return hashlib.sha256((value if isinstance(value, str) else repr(value)).encode()).hexdigest()[:16]
