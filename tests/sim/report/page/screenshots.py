# SPDX-License-Identifier: BSD-3-Clause
"""Takes pictures of a report page: screenshots.py PAGE FOLDER."""

import pathlib
import sys

import browser

# Name, width, height, whether it is a phone, and colours.
PICTURES = (
    ("report", 1280, 1280, False, "light"),
    ("report-dark", 1280, 860, False, "dark"),
    ("report-phone", 400, 860, True, "light"),
)


def main(page, folder):
    with browser.Browser() as chromium:
        for name, width, height, mobile, scheme in PICTURES:
            tab = chromium.page(width, height, mobile)
            tab.colours(scheme)
            tab.open(pathlib.Path(page).resolve())
            tab.frame()
            place = pathlib.Path(folder) / f"{name}.png"
            tab.screenshot(place)
            print(f"{place}: {place.stat().st_size // 1000} KB")
            tab.close()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
