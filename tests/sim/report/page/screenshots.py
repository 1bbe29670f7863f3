# SPDX-License-Identifier: BSD-3-Clause
"""Takes the pictures of report pages for docs/: screenshots.py INTO RUN SAMPLES.

RUN is the folder of a run of docs/examples/planted_bug, SAMPLES the folder that page_samples wrote.
"""

import pathlib
import sys

import browser


def picture(chromium, page, place, width, height, scheme="light", act=None):
    """Calls `act` with the page before it takes the picture. Up to 620 pixels of width, the page is on a phone."""
    tab = chromium.page(width, height, mobile=width <= 620)
    tab.colours(scheme)
    tab.open(page)
    if act:
        act(tab)
    tab.value("scrollTo(0, 0)")
    tab.frame()
    tab.screenshot(place)
    print(f"{place}: {place.stat().st_size // 1000} KB")
    tab.close()


def zoomed_in_on_a_call(tab):
    """Zooms in on the end, where all ranks wait for one, and selects one of the calls."""
    tab.value("document.querySelector('canvas').focus()")
    tab.press("ArrowRight", *["ArrowRight"] * 13, "ArrowDown", "ArrowDown", "ArrowDown", "+", "+", "+")


def main(into, run, samples):
    into, run, samples = (pathlib.Path(folder).resolve() for folder in (into, run, samples))
    with browser.Browser() as chromium:
        picture(chromium, run / "report.html", into / "report.png", 1280, 1180)
        picture(chromium, run / "report.html", into / "report-phone.png", 400, 1240)
        picture(chromium, samples / "everything.html", into / "report-dark.png", 1280, 900, "dark", zoomed_in_on_a_call)
        picture(chromium, samples / "sweep.html", into / "sweep.png", 1280, 640)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
