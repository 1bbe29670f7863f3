# SPDX-License-Identifier: BSD-3-Clause
"""The look of pages: colours and their contrast, in print, on phones, by keyboard and with a screen reader."""

import json

from page_case import PageTest


class Looks(PageTest):
    def test_dark_mode_follows_the_system_and_the_button(self):
        ground = "getComputedStyle(document.body).backgroundColor"
        self.page.colours("dark")
        self.open("everything")
        self.assertEqual(self.page.value(ground), "rgb(13, 15, 19)")
        self.page.click("#theme")
        self.assertEqual(self.page.text("#theme"), "Colours: light")
        self.assertEqual(self.page.value(ground), "rgb(244, 245, 247)")
        self.assertEqual(self.page.value("[...document.querySelector('canvas').getContext('2d')"
                                         ".getImageData(2, 2, 1, 1).data].slice(0, 3)"), [255, 255, 255])

    def test_texts_stand_out_in_both_schemes(self):
        for scheme in ("light", "dark"):
            self.page.colours(scheme)
            self.open("everything")
            for selector in ("body", "h1", ".facts dt", "nav a", "section a", ".chip.guilty", ".state.blocked",
                             ".side.odd", "li.named", "li.named span", "caption", "mark", "th", ".legend li"):
                with self.subTest(scheme=scheme, selector=selector):
                    self.assertGreaterEqual(self.page.value(CONTRAST % json.dumps(selector)), 4.5)

    def test_bars_and_marks_stand_out_in_both_schemes(self):
        names = ("collective", "message", "waiting", "stuck", "work", "fault", "good", "soft")
        for scheme in ("light", "dark"):
            self.page.colours(scheme)
            self.open("everything")
            for ground in ("paper", "stripe"):
                for name in names:
                    with self.subTest(scheme=scheme, ground=ground, name=name):
                        self.page.value(f"document.querySelector('#headline').style = 'color: var(--{name});"
                                        f" background-color: var(--{ground})'")
                        self.assertGreaterEqual(self.page.value(CONTRAST % json.dumps("#headline")), 3)

    def test_marks_keep_their_contrast_on_bars(self):
        self.open("everything")
        self.page.frame()
        # The background shows left and right of the fault's triangle in rank 5's row, although a bar lies below it.
        around = self.page.value("""(() => {
          const canvas = document.querySelector("canvas"), scale = devicePixelRatio, row = 30 + 5 * 38 + 19;
          const data = canvas.getContext("2d").getImageData(132 * scale, row * scale, 1100 * scale, 1).data;
          const at = (x) => [...data.slice(4 * x, 4 * x + 3)].join();
          for (let x = 4; 4 * x < data.length; ++x) {
            if (at(x) === "165,66,125") return [at(x - 3), at(x - 2), at(x - 1)];
          }
          return [];
        })()""")
        self.assertIn("255,255,255", around)

    def test_print_has_no_controls_and_light_colours(self):
        self.open("everything")
        self.page.call("Emulation.setEmulatedMedia", media="print")
        for selector in ("nav", ".filters", ".tools", "#theme"):
            self.assertEqual(self.page.value(f"getComputedStyle(document.querySelector('{selector}')).display"), "none")
        self.assertGreater(len(self.page.call("Page.printToPDF")["data"]), 20000)

    def test_accessibility_tree_has_landmarks_and_names(self):
        self.open("everything")
        nodes = self.page.call("Accessibility.getFullAXTree")["nodes"]
        roles = {}
        for node in nodes:
            if not node.get("ignored"):
                roles.setdefault(node["role"]["value"], []).append(node.get("name", {}).get("value", ""))
        for role in ("banner", "navigation", "main", "contentinfo", "search"):
            self.assertEqual(len(roles.get(role, [])), 1, role)
        self.assertEqual(roles["application"], ["Timeline of ranks; the table below says the same"])
        self.assertEqual(roles["heading"][0], "DEADLOCK")
        self.assertIn("Calls that disagree", roles["region"])
        for role in ("button", "combobox", "searchbox", "checkbox", "link", "region", "application", "image", "table"):
            self.assertTrue(all(roles.get(role, ["named"])), f"{role}: {roles.get(role)}")

    def test_tab_comes_to_everything(self):
        self.open("everything")
        self.page.press("Tab")
        self.assertEqual(self.page.value("document.activeElement.className"), "skip")
        self.page.press("Enter")
        self.assertEqual(self.page.value("document.activeElement.id"), "main")
        seen = set()
        for _ in range(16):
            self.page.press("Tab")
            seen.add(self.page.value("document.activeElement.id || document.activeElement.tagName"))
        self.assertLessEqual({"filter-rank", "filter-group", "filter-kind", "filter-text", "fold-0", "CANVAS"}, seen)


CONTRAST = """(() => {
  const light = (text) => {
    const [r, g, b] = text.match(/[\\d.]+/g).slice(0, 3).map((each) => each / 255)
      .map((each) => each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const element = document.querySelector(%s);
  let behind = element;
  while (/, 0\\)|transparent/.test(getComputedStyle(behind).backgroundColor)) behind = behind.parentElement;
  const a = light(getComputedStyle(element).color), b = light(getComputedStyle(behind).backgroundColor);
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
})()"""


class Phones(PageTest):
    width, mobile = 400, True

    def test_nothing_is_wider_than_the_screen(self):
        for name in ("everything", "sweep", "validation", "report_large", "report_deadlock_cycle", "hostile",
                     "ranks_64"):
            with self.subTest(name):
                self.open(name)
                self.assertEqual(self.page.value("document.documentElement.scrollWidth"), 400)

    def test_each_cell_has_the_name_of_its_column(self):
        self.open("report_deadlock")
        names = self.page.value("[...document.querySelector('[data-ranks]').children].map((cell) =>"
                                " getComputedStyle(cell, '::before').content)")
        self.assertEqual(names[:2] + names[-1:], ['"ranks: "', '"how it ended: "', '"time: "'])

    def test_ring_of_waits_needs_no_scrolling(self):
        self.open("report_deadlock_cycle")
        self.assertTrue(self.page.value("(() => { const graph = document.querySelector('.graph');"
                                        " return graph.scrollWidth <= graph.clientWidth; })()"))
        self.assertEqual(self.page.value("document.querySelectorAll('.graph .edge.ring').length"), 2)

    def test_two_fingers_zoom(self):
        self.open("everything")
        before = self.range()
        self.page.pinch("canvas", 60, 180)
        after = self.range()
        self.assertLess(after[1] - after[0], (before[1] - before[0]) / 2)
