"""Draw the pictures of the page that `show` and `demo` write: light, dark, and on a phone.

    hedgerow demo && python scripts/screenshots.py hedgerow-demo.html

It needs Chromium, as Debian's package `chromium` brings it.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
SHOTS = {"page": (900, 1150, False), "page-dark": (900, 1150, True), "page-phone": (400, 1150, False)}
DARK, LIGHT = 0, 1  # Chromium's numbers for the colours that a reader prefers
BROWSERS = "chromium", "chromium-browser", "google-chrome"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path, help="a page that hedgerow show or hedgerow demo wrote")
    parser.add_argument("--out", type=Path, default=PICTURES, help="the folder of the pictures")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for name, (width, height, is_dark) in SHOTS.items():
        shoot(args.page.resolve().as_uri(), args.out / f"{name}.png", width, height, is_dark)


def shoot(address: str, picture: Path, width: int, height: int, is_dark: bool = False) -> None:
    """Draw the first screen of a page of this size."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit(f"none of {', '.join(BROWSERS)} is installed")
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                *(browser, "--headless", "--no-sandbox", "--hide-scrollbars", f"--user-data-dir={profile}"),
                *(f"--window-size={width},{height}", f"--screenshot={picture}"),
                *(f"--blink-settings=preferredColorScheme={DARK if is_dark else LIGHT}", address),
            ],
            check=True,
            stderr=subprocess.DEVNULL,
            timeout=120,
        )


if __name__ == "__main__":
    main()
