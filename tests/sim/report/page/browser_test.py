# SPDX-License-Identifier: BSD-3-Clause
"""Tests report pages in a browser: browser_test.py PAGE_SAMPLES SOURCES setting.folder [test...].

page_samples writes the pages, each with the report.json of its run beside it. The exit status is 77 if there is no
browser.
"""

import json
import os
import sys

import page_case
from look_tests import Looks, Phones
from page_case import PageTest, as_shown, report_of, setting, texts_in

FIRST_PAINT_MS_MOST = 2000
BYTES_MOST = 15_000_000
LOOKS = (Looks, Phones)  # the runner finds them here
STATE_TEXTS = {"stopped": "still running"}  # states for which the page has other words than report.json
UNMEASURED = ("seed", "schedule", "identity")  # pages of dumps do not have these


class Reports(PageTest):
    def test_every_golden_report_is_shown(self):
        names = sorted(path.stem for path in setting.folder.glob("report_*.html") if path.stem != "report_large")
        self.assertEqual(len(names), 16)
        for name in names:
            with self.subTest(name):
                self.open(name)
                self.page.value("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
                report, shown = report_of(name), as_shown(self.page.text("body"))
                self.assertEqual(self.page.text("#verdict"), report["verdict"])
                left_out = UNMEASURED if "dumps" in report else ("seed",)
                for cause in report.get("causes", []):
                    del cause["kind"]  # the headline has it in words
                for text in texts_in({key: value for key, value in report.items() if key not in left_out}):
                    self.assertIn(as_shown(STATE_TEXTS.get(text, text)), shown)
                self.check_ranks(report)
                if "dumps" not in report:
                    self.assertIn(f"seed {int(report['seed'], 16)}", shown)
                self.assertEqual(self.page.problems(), [])

    def check_ranks(self, report):
        found = {}
        rows = self.page.value("[...document.querySelectorAll('[data-ranks]')].map((row) => row.dataset.ranks)")
        for row, state in zip(rows, self.page.texts("[data-ranks] .state")):
            ends = [int(number) for number in row.split()]
            for first, last in zip(ends[::2], ends[1::2]):
                found.update(dict.fromkeys(range(first, last + 1), state))
        expected = {line["rank"]: STATE_TEXTS.get(line["state"], line["state"]) for line in report["rank_lines"]}
        self.assertEqual(found, expected)

    def test_differences_stand_side_by_side_and_what_differs_is_marked(self):
        self.open("report_mismatch")
        self.assertEqual(self.page.texts(".side h4"), ["ranks 0-2", "rank 3"])
        self.assertEqual(self.page.texts(".side mark"), ["sum", "max"])
        self.assertEqual(self.page.texts(".side.odd h4"), ["rank 3"])
        (_, top, _, _), (_, other_top, _, _) = self.page.box(".side"), self.page.box(".side.odd")
        self.assertEqual(top, other_top)
        self.assertEqual(self.page.texts("td mark"), ["max"])

    def test_groups_that_ranks_made_differently_have_no_number(self):
        self.open("new_group")
        self.assertEqual(self.page.texts("#differences-0 h3"), ["new_group()"])
        self.assertEqual(self.page.texts(".side mark"), ["{0, 3}", "{1, 2}"])
        self.assertNotIn("undefined", self.page.text("body"))

    def test_further_sides_have_cards_of_their_own(self):
        self.open("everything")
        self.assertEqual(self.page.texts(".side.odd h4"), ["rank 3", "rank 5"])
        self.assertEqual(self.page.texts(".side mark"), ["allreduce", "sum", "max", "barrier"])

    def test_waits_are_a_picture_and_sentences(self):
        self.open("report_deadlock")
        self.assertEqual(self.page.texts("#waits-0 .lines li"),
                         ['ranks 0-1,3-7 wait for rank 2 (allreduce #7 on group "world")'])
        self.assertEqual(self.page.value("document.querySelectorAll('.graph .box').length"), 2)
        self.assertEqual(self.page.value("document.querySelectorAll('.graph .edge').length"), 1)
        self.open("report_deadlock_cycle")
        self.assertEqual(self.page.value("document.querySelectorAll('.graph .edge.ring').length"), 2)

    def test_stacks_of_dumps_mark_the_frames_of_the_job(self):
        self.open("report_dumps")
        self.assertEqual(self.page.texts("#dumps-0 h3"), ["ranks 0-1 in allreduce #7"])
        self.assertEqual(self.page.texts("#dumps-0 > .lines li"), ["step at /job/train.py:41"])
        self.assertNotIn("all_reduce at c10d.py:9", self.page.text("#dumps-0"))
        self.page.click("#dumps-0 summary")
        whole = "#dumps-0 details li"
        self.assertEqual(self.page.texts(whole), ["step at /job/train.py:41", "all_reduce at c10d.py:9"])
        self.assertEqual(self.page.texts(f"{whole} b"), ["step at /job/train.py:41"])
        self.assertIn("Nothing is known of rank 2, which left no dump.", self.page.text("#dumps-0"))

    def test_parts_of_an_event_stay_apart(self):
        self.open("report_deadlock")
        self.assertIn("1.203 ms  rank 0  allreduce #7", self.page.texts("#events-0 li")[0])

    def test_what_is_not_known_is_not_shown(self):
        self.open("report_dumps")
        facts = as_shown(self.page.text(".facts"))
        for name in ("seed", "virtual time", "identity", "decisions"):
            self.assertNotIn(name, facts)
        self.assertNotIn("identity", self.page.text("body"))
        self.assertEqual(self.page.value("document.querySelectorAll('.filters').length"), 0)

    def test_ok_of_some_ranks_does_not_look_whole(self):
        self.open("partial_ok")
        self.assertEqual(self.page.text("#verdict"), "OK")
        self.assertIn("as far as is known", self.page.text("#headline"))
        self.assertEqual(self.page.value("getComputedStyle(document.querySelector('h1')).color"), "rgb(125, 82, 0)")
        self.assertEqual(self.page.value("getComputedStyle(document.querySelector('.badge'), '::before').content"),
                         '"?"')

    def test_culprit_is_shown_by_word_shape_and_colour(self):
        self.open("everything")
        self.assertEqual(as_shown(self.page.text(".culprits")), "Culprit rank 2")
        self.assertEqual(list(map(as_shown, self.page.texts(".guilty-row th"))), ["2 (culprit)"])

    def test_long_tables_grow_by_a_button(self):
        self.open("report_large")
        count = "document.querySelectorAll('[data-ranks]').length"
        self.assertEqual(self.page.value(count), 100)
        self.assertEqual(self.page.text("#ranks-0 .more"), "Show 100 more of 512 rows")
        self.page.click("#ranks-0 .more")
        self.assertEqual(self.page.value(count), 200)

    def test_texts_of_programs_stay_texts(self):
        self.open("hostile")
        self.assertNotEqual(self.page.value("document.title"), "taken")
        self.assertIn("<img src=x", self.page.value("document.title"))
        self.assertEqual(self.page.value("document.querySelectorAll('img').length"), 0)
        self.assertEqual(self.page.value("document.scripts.length"), 2)
        self.assertIn("</script><script>", self.page.text("#headline"))
        self.page.value("document.querySelector('canvas').focus()")
        self.page.press("ArrowRight")
        self.assertIn("</script><script>", self.chosen())

    def test_checkers_compiler_and_faults_have_their_parts(self):
        self.open("everything")
        self.assertIn("written at train.cpp:32 in train_step", self.page.text("#findings-0"))
        self.assertIn("call 3 at 300 us: x.size(0) is 4, guard x.size(0) == 8 of entry 0 at train.cpp:27",
                      as_shown(self.page.text("#compiled-0")))
        self.assertEqual(self.page.texts("#compiled-0 li"), ["forward of submod_0", "backward of submod_0"])
        self.assertIn("rank 5 in allreduce #4 on group \"world\" at 420 us; began again at 560 us",
                      as_shown(self.page.text("#faults-0")))

    def test_places_lead_to_their_lines(self):
        self.open("everything")
        self.assertIn("ctx.group().allreduce(gradient)->wait();", self.page.texts(".excerpt li.named")[0])
        self.page.click(".side a")
        self.assertEqual(self.page.value("location.hash"), "#line-0-train.cpp-41")
        self.assertIn("the mean, for the log", self.page.text("li:target"))
        top = self.page.value("document.querySelector('li:target').getBoundingClientRect().top")
        self.assertTrue(0 < top < 880, top)


class Standstills(PageTest):
    def test_timeline_shows_what_happened_and_not_the_wait_for_the_timeout(self):
        self.open("timed_out")
        self.assertEqual(report_of("timed_out")["end_time_ns"], 1_800_000_000_000)
        self.assertLess(self.range()[1], 2_000_000)
        self.page.click(".calls summary")
        waits = [row for row in self.page.texts(".calls tbody tr") if "failed" in row]
        self.assertEqual(len(waits), 3)
        self.page.value("document.querySelector('canvas').focus()")
        self.page.press("ArrowRight", *["ArrowRight"] * 9)
        self.assertIn("took failed", self.chosen())


class Timelines(PageTest):
    def setUp(self):
        super().setUp()
        self.open("everything")

    def test_the_table_says_what_the_calls_were(self):
        self.page.click(".calls summary")
        while self.page.value("!document.querySelector('.calls .more').hidden"):
            self.page.click(".calls .more")
        rows = self.page.value("[...document.querySelectorAll('.calls tbody tr')].map((row) =>"
                               " [...row.cells].map((cell) => cell.textContent).join('|'))")
        self.assertEqual(rows, (setting.folder / "everything.calls").read_text().splitlines())

    def test_buttons_zoom_and_move(self):
        whole = self.range()
        self.page.click("[aria-label='Zoom in']")
        near = self.range()
        self.assertAlmostEqual(near[1] - near[0], (whole[1] - whole[0]) / 1.6, delta=1)
        self.page.click("[aria-label='Later']")
        self.assertGreater(self.range()[0], near[0])
        self.page.click("[aria-label='All of the time']")
        self.assertEqual(self.range(), whole)

    def test_wheel_zooms_at_the_mouse_and_drag_moves(self):
        left, top, width, height = self.page.box("canvas")
        x, y = left + width / 2, top + height / 2
        before = self.range()
        self.page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-240, modifiers=2)
        after = self.range()
        self.assertLess(after[1] - after[0], (before[1] - before[0]) / 2)
        self.page.drag("canvas", 200)
        self.assertLess(self.range()[0], after[0])
        self.assertEqual(self.chosen(), "")  # a drag selects nothing

    def test_click_chooses_a_call_and_tells_of_it(self):
        end = report_of("everything")["end_time_ns"]
        low, high = self.range()
        _, _, width, _ = self.page.box("canvas")
        x = 132 + (end - 5000 - low) / (high - low) * (width - 144)
        self.page.click("canvas", x, 30 + 19)
        self.assertIn('rank 0 call allreduce #21 of "fc1.weight"', self.chosen())
        self.assertIn("until the end: not everybody came", self.chosen())
        self.assertIn("train.cpp:31 in train_step", self.chosen())

    def test_keys_go_through_the_calls(self):
        self.page.value("document.querySelector('canvas').focus()")
        self.page.press("ArrowRight")
        self.assertIn('rank 0 call allreduce #1 of "fc1.weight"', self.chosen())
        self.assertIn("last to come rank", self.chosen())
        self.page.press("ArrowRight", "ArrowDown", "ArrowDown")
        self.assertIn('rank 2 call allreduce #2 of "fc1.weight"', self.chosen())
        whole = self.range()
        self.page.press("+", "+")
        self.assertLess(self.range()[1] - self.range()[0], (whole[1] - whole[0]) / 2)
        self.page.press("0")
        self.assertEqual(self.range(), whole)
        self.page.press("Escape")
        self.assertEqual(self.chosen(), "")

    def test_a_message_tells_its_peer(self):
        self.page.choose("#filter-kind", "message")
        self.page.value("document.querySelector('canvas').focus()")
        self.page.press("ArrowRight")
        self.assertIn("rank 0 call send #1", self.chosen())
        self.assertIn("peer rank 1, tag 0", self.chosen())
        self.page.press("ArrowDown")
        self.assertIn("rank 1 call recv #1", self.chosen())
        self.assertIn("peer rank 0, tag 0", self.chosen())

    def test_mouse_over_a_call_tells_of_it(self):
        left, top, width, _ = self.page.box("canvas")
        self.page.mouse("mouseMoved", left + 60, top + 30 + 2 * 38 + 19)
        self.assertEqual(self.page.text(".tip"), "rank 2: returned")
        low, high = self.range()
        x = 132 + (300_000 - low) / (high - low) * (width - 144)
        self.page.mouse("mouseMoved", left + x, top + 30 + 38 + 19)
        self.assertTrue(self.page.text(".tip").startswith("compiles forward in call 3: x.size(0) is 4"))

    def test_filters_hold_for_timeline_and_tables(self):
        self.page.write("#filter-rank", "2, 5-6")
        self.assertEqual(self.rows(), 3)
        self.assertEqual(len(self.page.texts("[data-ranks]")), 2)
        self.assertEqual(self.page.text(".told"), "Shown: 2 of 2 rows of ranks; 3 of 8 ranks")
        self.page.write("#filter-rank", "2")
        self.assertEqual(len(self.page.texts("[data-ranks]")), 1)
        self.page.click(".calls summary")
        self.page.choose("#filter-kind", "message")
        self.assertTrue(all("send #" in row or "recv #" in row for row in self.page.texts(".calls tbody tr")))
        self.assertEqual(len(self.page.texts(".calls tbody tr")), 3)
        self.page.choose("#filter-kind", "unfinished")
        self.assertEqual(self.page.texts(".calls tbody tr"), [])
        self.page.click("#filter-reset")
        self.assertEqual(self.rows(), 8)
        self.page.choose("#filter-kind", "=broadcast")
        self.page.choose("#filter-group", "world")
        self.page.write("#filter-rank", "0")
        self.assertEqual(len(self.page.texts(".calls tbody tr")), 3)
        self.page.choose("#filter-kind", "")
        self.page.write("#filter-text", "pipeline.cpp:12")
        self.assertEqual(len(self.page.texts(".calls tbody tr")), 3)

    def test_what_is_no_list_of_ranks_is_said(self):
        self.page.write("#filter-rank", "two")
        self.assertEqual(self.page.text(".told"), '"two" is no list of ranks, as "0-3, 7" is one')
        self.assertEqual(self.page.value("document.querySelector('#filter-rank').ariaInvalid"), "true")
        self.assertEqual(self.rows(), 8)

    def test_ranks_fold_on_demand(self):
        self.page.click("#fold-0")
        self.assertEqual(self.rows(), 4)  # even, odd, the one that faults hit, and the culprit

    def test_bars_are_drawn(self):
        self.page.frame()
        colours = self.page.value("(() => { const canvas = document.querySelector('canvas'); const seen = new Set();"
                                  " const data = canvas.getContext('2d').getImageData(140, 32, 1000, 300).data;"
                                  " for (let i = 0; i < data.length; i += 4) seen.add(data.slice(i, i + 3).join());"
                                  " return [...seen]; })()")
        for colour in ("0,114,178", "0,128,93", "184,123,0", "201,75,0", "128,135,148"):
            self.assertIn(colour, colours)


class Several(PageTest):
    def test_sweep_shows_bugs_how_often_they_came_and_links_to_their_seeds(self):
        self.open("sweep")
        rows = [as_shown(row) for row in self.page.texts("#bugs tbody tr")]
        self.assertEqual(len(rows), 2)
        self.assertIn("DEADLOCK allreduce #7: missing rank 2 fault: crash rank=3 at=allreduce#12 replay:", rows[0])
        self.assertIn("train.cpp:31 in train_step 6 of 30", rows[0])
        self.assertIn("<b>replicas</b> differ fault: crash rank=3", rows[1])
        self.assertIn("train.cpp:20 in check 1 of 30 11", rows[1])
        links = self.page.value("[...document.querySelectorAll('#bugs tbody tr:last-child a')].map((a) => a.href)")
        self.assertEqual(links, [f"file://{setting.folder}/seed%20{seed}/report.html" for seed in (11, 11)])
        self.assertEqual(len(self.page.texts(".seed")), 30)
        self.assertEqual(self.page.texts("a.seed"), ["1", "1", "2", "1", "1", "1", "1"])

    def test_validation_has_both_runs_one_above_the_other(self):
        self.open("validation")
        self.assertEqual(self.page.texts(".timelines h2"), ["Timeline: simulation", "Timeline: gloo"])
        self.assertEqual(as_shown(self.page.text(".facts")), "program train ranks 4 seed 7")
        self.assertEqual(self.page.texts("#comparison tbody tr:first-child td"), ["DEADLOCK", "OK"])
        self.assertIn("the verdict is DEADLOCK by simulation, OK by gloo", self.page.text("#comparison"))
        self.assertEqual(self.page.texts("h2.run"), ["simulation", "gloo"])
        self.assertIn("Ranks: gloo", self.page.texts("nav a"))
        self.page.write("#filter-rank", "1-2")
        rows = self.page.value("[...document.querySelectorAll('canvas')].map((canvas) => canvas.dataset.rows)")
        self.assertEqual(rows, ["2", "2"])


FIRST_PAINT = """new Promise((done) => new PerformanceObserver((list) => done(list.getEntries()[0].startTime))
  .observe({ type: "paint", buffered: true }))"""


class Sizes(PageTest):
    def open_and_paint(self, name):
        """The time of the first paint. Takes the least of several while it is too long, because other work on the
        machine can delay a paint but not hasten it."""
        least = float("inf")
        for _ in range(8):
            self.open(name)
            least = min(least, self.page.value(FIRST_PAINT))
            if least < FIRST_PAINT_MS_MOST:
                break
        return least

    def test_large_runs_are_small_files_that_are_shown_at_once(self):
        told = []
        for name, rows in (("ranks_8", 8), ("ranks_64", 3), ("ranks_1024", 3), ("ranks_65536", 3)):
            with self.subTest(name):
                paint = self.open_and_paint(name)
                size = os.path.getsize(setting.folder / f"{name}.html")
                self.assertLess(size, BYTES_MOST)
                self.assertLess(paint, FIRST_PAINT_MS_MOST)
                self.assertEqual(self.rows(), rows)
                self.assertEqual(self.page.text("#verdict"), "DEADLOCK")
                told.append(f"{name}: {size / 1e6:.1f} MB, first paint after {paint:.0f} ms")
        print("\n".join(told))

    def test_all_calls_of_1024_ranks_are_there(self):
        self.open("ranks_1024")
        self.page.write("#filter-rank", "1023")
        self.page.click(".calls summary")
        self.assertEqual(self.page.text(".calls .more"), "Show 100 more of 1000 calls")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.exit(page_case.run(__name__, *sys.argv[1:4], sys.argv[4:]))
