// SPDX-License-Identifier: BSD-3-Clause
#include "report/calls/event_lines.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <rehearse_internal/formatting/rank_list.h>
#include <rehearse_internal/sim/format_time.h>

namespace rehearse::sim {
namespace {

using comm::Event;

struct Line {
  std::string time, what;
  std::vector<int> ranks;
};

bool is_standstill(Verdict verdict) { return verdict == Verdict::deadlock || verdict == Verdict::livelock; }

// "  (failed at 30 s)"; empty for a call that is complete.
std::string end_of(const Event& event, const exec::RunOutcome& outcome, Verdict verdict) {
  if (event.completed()) return "";
  const auto since = stuck_since(outcome, verdict);
  const bool hung = since && event.time_ended > *since;
  if (hung || (is_standstill(verdict) && !event.ended())) return "  (never completes)";
  return event.ended() ? fmt::format("  (failed at {})", format_time(event.time_ended)) : "  (not complete)";
}

}  // namespace

std::optional<VirtualTime> stuck_since(const exec::RunOutcome& outcome, Verdict verdict) {
  return is_standstill(verdict) && !outcome.hang.empty() ? std::optional(outcome.hang_began) : std::nullopt;
}

std::vector<std::string> last_event_lines(const RunRecord& record, Verdict verdict, const Places& places) {
  const comm::EventLog& log = record.events;
  std::vector<Line> lines;
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  const auto events = log.kept();
  // Go backwards, so that calls that are not shown need no text.
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    const auto where = places.place(log.call_site(*event)).at();
    const std::string& note = log.note(*event);
    Line line{format_time(event->time_created),
              fmt::format("{}{}{}{}", log.title(*event), note.empty() ? "" : " (" + note + ")",
                          end_of(*event, record.outcome, verdict), where.empty() ? "" : " " + where),
              {}};
    const auto same = known.find({line.time, line.what});
    if (same == known.end() && lines.size() == kEventLinesShown) break;
    const auto index = same != known.end() ? same->second : lines.size();
    if (same == known.end()) {
      known.emplace(std::pair(line.time, line.what), index);
      lines.push_back(std::move(line));
    }
    lines[index].ranks.push_back(event->rank);
  }
  std::ranges::reverse(lines);
  std::vector<std::string> texts;
  for (auto& line : lines) {
    std::ranges::sort(line.ranks);
    texts.push_back(fmt::format("{}  {}  {}", line.time, describe_ranks(line.ranks), line.what));
  }
  return texts;
}

}  // namespace rehearse::sim
