// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse/sim/report_writers.h>
#include <rehearse_internal/formatting/rank_list.h>
#include <rehearse_internal/sim/format_time.h>

#include "report/writers/culprits_text.h"
#include "report/writers/known_facts.h"
#include "report/writers/rank_lines_text.h"
#include "report/writers/text_lines.h"

namespace rehearse::sim {
namespace {

constexpr std::size_t kDifferencesShown = 3;
constexpr std::size_t kSidesShown = 6;  // per difference
constexpr std::size_t kEdgesInText = 8;
constexpr std::size_t kOddLinesShown = 4;  // for call_counts(), and for remarks()
constexpr std::size_t kEventsLeast = 3;    // shown however long the rest is
constexpr std::size_t kLinesAimedAt = 25;
constexpr std::uint64_t kDecimalSeedMax = 999'999;  // larger seeds are easier to compare in hexadecimal

// The additional parts of a report that explains dumps. Lines are wrapped at `width` bytes.

constexpr std::size_t kStacksShown = 4;
constexpr std::size_t kFramesShown = 8;                     // per stack
constexpr std::size_t kFrameBegins = 100, kFrameEnds = 60;  // bytes shown of a frame with a long name

std::string line_of(std::string_view prefix, std::string_view text, std::size_t width) {
  const auto indent = std::min(prefix.find_first_not_of(' '), prefix.size());
  return wrapped(prefix, text, width, indent + 2) + "\n";
}

// Cuts the names of C++ templates, which can fill screens.
std::string shortened(const std::string& frame) {
  if (frame.size() <= kFrameBegins + kFrameEnds) return frame;
  return frame.substr(0, kFrameBegins) + " ... " + frame.substr(frame.size() - kFrameEnds);
}

std::string stack_text(const DumpFacts::Stack& stack, std::size_t width) {
  const auto& frames = stack.own.empty() ? stack.frames : stack.own;
  if (frames.empty()) return "";
  auto text = line_of("stack of ", fmt::format("{} in {}:", describe_ranks(stack.ranks), stack.call), width);
  const auto shown = std::min(frames.size(), kFramesShown);
  for (std::size_t i = 0; i < shown; ++i) text += line_of("  ", shortened(frames[i]), width);
  if (shown < frames.size()) text += fmt::format("  ... and {} more frames\n", frames.size() - shown);
  return text;
}

// The stacks of ranks; only the user's own frames if a stack has any.
std::string stacks_text(const DumpFacts& dumps, std::size_t width) {
  std::string text;
  const auto shown = std::min(dumps.stacks.size(), kStacksShown);
  for (std::size_t i = 0; i < shown; ++i) text += stack_text(dumps.stacks[i], width);
  std::size_t left_out = 0;
  for (std::size_t i = shown; i < dumps.stacks.size(); ++i) left_out += dumps.stacks[i].ranks.size();
  if (left_out > 0 && !text.empty())
    text += fmt::format("... and those of {} more rank{}, see --json\n", left_out, left_out == 1 ? "" : "s");
  return text;
}

// For example "rehearse 1.2.3 ranks=4: 57 calls in the dumps of ranks 0-2, format 2.10, carried by nccl 2.28.9".
std::string dumps_banner(const Report& report, std::size_t width) {
  const auto transport = report.transport.empty() ? "" : ", carried by " + report.transport;
  return line_of("",
                 fmt::format("rehearse {} ranks={}: {} calls in the dump{} of {}, format {}{}", report.version,
                             report.ranks, report.operations, report.dumps->ranks.size() == 1 ? "" : "s",
                             describe_ranks(report.dumps->ranks), report.dumps->format, transport),
                 width);
}

class TextWriter {
 public:
  TextWriter(const Report& report, const TextOptions& options) : report_(report), options_(options) {}

  std::string write() const {
    const std::string above = verdict_line() + culprits_text(report_, options_.width) +
                              rank_lines_text(report_.rank_lines, clock(), options_.width) + differences() +
                              wait_cycle() + findings() + faults() + call_places() + call_counts() + stacks() +
                              remarks();
    const std::string below = checks() + banner() + files() + replay() + hint();
    return above + events(count_lines(above) + count_lines(below)) + below;
  }

 private:
  std::string line(std::string_view text, std::size_t indent = 2) const {
    const std::size_t words = std::min(text.find_first_not_of(' '), text.size());
    return wrapped(text.substr(0, words), text.substr(words), options_.width, indent) + "\n";
  }

  std::string verdict_line() const {
    const std::string name(to_string(report_.verdict));
    std::string text = line(report_.headline.empty() ? name : fmt::format("{}: {}", name, report_.headline));
    if (!options_.color) return text;
    const char* color = is_partial(report_)              ? "\x1b[1;33m"
                        : report_.verdict == Verdict::ok ? "\x1b[1;32m"
                                                         : "\x1b[1;31m";
    return color + name + "\x1b[0m" + text.substr(name.size());
  }

  // For example "shape ([4], [2, 2], [3])".
  static std::string values_text(const Difference::Field& field) {
    std::vector<std::string> values{field.first, field.second};
    const std::size_t shown = std::min(field.others.size(), kSidesShown - values.size());
    for (std::size_t i = 0; i < shown; ++i) values.push_back(field.others[i]);
    const auto left = field.others.size() - shown;
    if (left > 0) values.push_back(fmt::format("{} more", left));
    return fmt::format("{} ({})", field.name, fmt::join(values, ", "));
  }

  std::string difference(const Difference& difference) const {
    const auto number = difference.sequence > 0 ? fmt::format(", #{}", difference.sequence) : "";
    const auto of = difference.group.empty() ? "" : fmt::format("{} on group \"{}\"", number, difference.group);
    std::string text = line(fmt::format("different calls{}:", of));
    std::vector<const Difference::Side*> sides{&difference.first, &difference.second};
    for (const auto& side : difference.others) sides.push_back(&side);
    const std::size_t shown = std::min(sides.size(), kSidesShown);
    std::size_t width = 0;
    for (std::size_t i = 0; i < shown; ++i) width = std::max(width, describe_ranks(sides[i]->ranks).size());
    for (std::size_t i = 0; i < shown; ++i) {
      const std::string where = sides[i]->where.empty() ? "" : " " + sides[i]->where.at();
      const std::string label = fmt::format("  {:{}}  ", describe_ranks(sides[i]->ranks), width);
      text += wrapped(label, sides[i]->fingerprint + where, options_.width, 6) + "\n";
    }
    std::size_t left_out = 0;
    for (std::size_t i = shown; i < sides.size(); ++i) left_out += sides[i]->ranks.size();
    if (left_out > 0) text += fmt::format("  ... and the calls of {} more ranks\n", left_out);
    std::vector<std::string> fields;
    for (const auto& field : difference.fields) fields.push_back(values_text(field));
    if (!fields.empty()) text += line(fmt::format("  differ in {}", fmt::join(fields, ", ")), 6);
    return text;
  }

  std::string differences() const {
    std::string text;
    const std::size_t shown = std::min(report_.differences.size(), kDifferencesShown);
    for (std::size_t i = 0; i < shown; ++i) text += difference(report_.differences[i]);
    if (shown < report_.differences.size()) text += more(report_.differences.size() - shown, "different calls");
    return text;
  }

  std::string wait_cycle() const {
    if (report_.wait_cycle.empty()) return "";
    std::string text = "wait-for cycle:\n";
    const std::size_t shown = std::min(report_.wait_cycle.size(), kEdgesInText);
    for (std::size_t i = 0; i < shown; ++i) text += line("  " + report_.wait_cycle[i], 4);
    if (shown < report_.wait_cycle.size()) text += more(report_.wait_cycle.size() - shown, "waits");
    return text;
  }

  std::string findings() const {
    std::string text;
    for (const auto& finding : report_.findings) {
      if (finding.headline != report_.headline) text += line("found: " + finding.headline, 4);
      for (const auto& detail : finding.details) text += line("found: " + detail, 4);
    }
    return text;
  }

  std::string faults() const {
    std::string text;
    for (const auto& fault : report_.faults) text += line(fmt::format("fault: {}: {}", fault.fault, became(fault)), 4);
    return text;
  }

  // For example "fired on rank 3 in barrier #2 on group "world" at 1.2 ms, rank 5 at 1.3 ms, and 2 more"; without a
  // rank: "fired at 1.2 ms".
  static std::string became(const FaultLine& fault) {
    if (fault.times == 0) return fmt::format("{}: {}", did_not_fire(fault), fault.why_not);
    constexpr std::size_t kFiringsShown = 2;
    std::vector<std::string> firings;
    for (const auto& firing : fault.fired) {
      if (firings.size() == kFiringsShown) break;
      const auto who = firing.rank < 0 ? "" : fmt::format("rank {}", firing.rank);
      firings.push_back(fmt::format("{}{}{}{}at {}", who, firing.call.empty() ? "" : " in ", firing.call,
                                    who.empty() ? "" : " ", format_time(firing.at)));
      if (firing.began_again) firings.back() += fmt::format(" (began again at {})", format_time(*firing.began_again));
    }
    if (fault.times > firings.size()) firings.push_back(fmt::format("and {} more", fault.times - firings.size()));
    const auto not_fired = fault.why_not.empty() ? "" : fmt::format("; {} {}", did_not_fire(fault), fault.why_not);
    return fmt::format("fired {}{}{}", fault.fired.front().rank < 0 ? "" : "on ", fmt::join(firings, ", "), not_fired);
  }

  static std::string did_not_fire(const FaultLine& fault) {
    return fault.optional ? "did not fire (optional)" : "did not fire";
  }

  std::string call_places() const {
    if (report_.call_places.empty()) return "";
    std::string text = "calls made from different lines (perhaps out of step):\n";
    for (const auto& call : report_.call_places) {
      std::vector<std::string> sides;
      for (const auto& side : call.sides) sides.push_back(describe_ranks(side.ranks) + side.where.at());
      if (sides.size() > kSidesShown) {
        const auto others = sides.size() - kSidesShown;
        sides.resize(kSidesShown);
        sides.push_back(fmt::format("and {} more places", others));
      }
      text += line(fmt::format("  #{} on group \"{}\":  {}", call.sequence, call.group, fmt::join(sides, ",  ")), 4);
    }
    return text;
  }

  std::string call_counts() const {
    if (report_.call_counts.empty()) return "";
    std::string text = "lines that some ranks called more often than others:\n";
    const std::size_t shown = std::min(report_.call_counts.size(), kOddLinesShown);
    for (std::size_t i = 0; i < shown; ++i) {
      const auto& counts = report_.call_counts[i];
      std::vector<std::string> sides;
      for (const auto& side : counts.sides) sides.push_back(times(side.times) + " on " + describe_ranks(side.ranks));
      if (sides.size() > kSidesShown) {
        std::size_t left_out = 0;
        for (std::size_t side = kSidesShown; side < sides.size(); ++side) left_out += counts.sides[side].ranks.size();
        sides.resize(kSidesShown);
        sides.push_back(fmt::format("another number of times on {} more rank{}", left_out, left_out == 1 ? "" : "s"));
      }
      text += line(fmt::format("  {}, group \"{}\":  {}", counts.where.text, counts.group, fmt::join(sides, ",  ")), 4);
    }
    if (shown < report_.call_counts.size()) text += more(report_.call_counts.size() - shown, "lines");
    return text;
  }

  std::string stacks() const { return report_.dumps ? stacks_text(*report_.dumps, options_.width) : ""; }

  std::string remarks() const {
    std::string text;
    const std::size_t shown = std::min(report_.remarks.size(), kOddLinesShown);
    for (std::size_t i = 0; i < shown; ++i) text += line("remark: " + report_.remarks[i]);
    if (shown < report_.remarks.size()) text += more(report_.remarks.size() - shown, "remarks");
    return text;
  }

  // The newest events: as many as there is room for, but at least kEventsLeast.
  std::string events(std::size_t other_lines) const {
    const std::size_t all = report_.last_events.size();
    if (all == 0) return "";
    const std::size_t taken = other_lines + 1;  // with the heading
    const std::size_t room = taken < kLinesAimedAt ? kLinesAimedAt - taken : 0;
    const std::size_t shown = std::min(all, std::max(kEventsLeast, room));
    std::string text = shown == all ? "last events:\n" : fmt::format("last events ({} of {}):\n", shown, all);
    for (std::size_t i = all - shown; i < all; ++i) text += line("  " + report_.last_events[i], 4);
    return text;
  }

  std::string checks() const {
    if (report_.checks.empty()) return "";
    std::vector<std::string> held;
    for (const auto& [what, times] : report_.checks)
      held.push_back(fmt::format("{} (held {})", what, times == 1 ? "once" : fmt::format("{} times", times)));
    return line(fmt::format("checks: {}", fmt::join(held, ", ")));
  }

  std::string banner() const {
    if (report_.dumps) return dumps_banner(report_, options_.width);
    const std::string program = report_.program.empty() ? "" : " program=" + report_.program;
    const std::string seed =
        report_.seed <= kDecimalSeedMax ? fmt::format("{}", report_.seed) : fmt::format("{:#x}", report_.seed);
    const auto what = fmt::format("rehearse {}{} ranks={} seed={} {}={}", report_.version, program, report_.ranks, seed,
                                  is_real(report_) ? "mode" : "schedule", report_.schedule);
    if (!is_measured(report_)) return line(what);
    if (is_real(report_)) {
      const auto ran = fmt::format("ran {} in {} of real time", operations(), format_time(report_.end_time));
      return line(what) + line(ran) + (report_.transport.empty() ? "" : line("transport: " + report_.transport));
    }
    return line(fmt::format("{} identity={:016x}", what, report_.identity)) +
           line(fmt::format("ran {} in {} of virtual time, with {} and {} between ranks{}", operations(),
                            format_time(standstill_or_end()), count_text(report_.decisions, "scheduling decision", "s"),
                            count_text(report_.switches, "switch", "es"), after_the_standstill()));
  }

  static std::string count_text(std::uint64_t count, std::string_view what, std::string_view plural) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : plural);
  }

  std::string operations() const { return count_text(report_.operations, "operation", "s"); }

  std::string_view clock() const { return is_real(report_) ? "real time" : "virtual time"; }

  // The time at which the last rank stopped. If a timeout ended a hang, the run's end is later, but nothing happened in
  // between.
  VirtualTime standstill_or_end() const {
    if (report_.verdict != Verdict::deadlock && report_.verdict != Verdict::livelock) return report_.end_time;
    VirtualTime last{};
    for (const RankLine& rank : report_.rank_lines) last = std::max(last, rank.at);
    return last;
  }

  std::string after_the_standstill() const {
    if (standstill_or_end() == report_.end_time) return "";
    return fmt::format("; then nothing happened until the timeout at {}", format_time(report_.end_time));
  }

  std::string files() const {
    if (report_.files.empty()) return "";
    return line(fmt::format("files: {}", fmt::join(report_.files, ", ")));
  }

  // Never wrapped, because people paste it.
  std::string replay() const { return report_.replay.empty() ? "" : "replay: " + report_.replay + "\n"; }

  std::string hint() const { return report_.hint.empty() ? "" : line("hint: " + report_.hint); }

  static std::string times(std::uint64_t count) {
    return count == 0 ? "never" : count == 1 ? "once" : fmt::format("{} times", count);
  }

  static std::string more(std::size_t count, std::string_view what) {
    return fmt::format("  ... and {} more {}\n", count, what);
  }

  const Report& report_;
  const TextOptions& options_;
};

}  // namespace

std::string to_text(const Report& report, const TextOptions& options) { return TextWriter(report, options).write(); }

}  // namespace rehearse::sim
