// SPDX-License-Identifier: BSD-3-Clause
#include "cli/merge/merged_report.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <rehearse_internal/formatting/rank_list.h>

#include "cli/merge/merged_lines.h"
#include "report/diagnosis/diagnosis.h"
#include "report/diagnosis/headline_parts.h"
#include "report/diagnosis/standstill.h"
#include "report/writers/culprits.h"

namespace rehearse::cli {
namespace {

class Merger {
 public:
  explicit Merger(const std::vector<RankReport>& ranks) : ranks_(ranks) {}

  Report merge() {
    add_facts();
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) merged_.rank_lines.push_back(line_of(rank));
    waits_ = sim::waits_of(merged_.rank_lines);
    // The first verdict that applies decides; merged_report.h gives the order. failed() takes only failures that are
    // causes; after waited(), ended_by(rank_failed) also takes failures that follow from those of other ranks.
    if (!(agreed() || mismatched() || crashed() || failed(Verdict::check_failed) || failed(Verdict::rank_failed) ||
          waited() || ended_by(Verdict::rank_failed) || ended_by(Verdict::livelock) || ended_by(Verdict::step_budget) ||
          interrupted() || ended_by_any())) {
      set(Verdict::ok, sim::ranks_returned(merged_.ranks, "", merged_.end_time, "real"));
    }
    diagnosis_.write_into(merged_);
    if (deciding_ != nullptr) add_evidence(*deciding_);
    return std::move(merged_);
  }

 private:
  void add_facts() {
    std::vector<std::string> remarks, events;
    merged_.transport = transports();
    for (const auto& [report, ending] : ranks_) {
      if (!report) continue;
      if (merged_.program.empty()) {
        merged_.program = report->program;
        merged_.seed = report->seed;
        merged_.schedule = report->schedule;
        merged_.version = report->version;
      }
      merged_.operations += report->operations;
      merged_.end_time = std::max(merged_.end_time, report->end_time);
      for (const auto& [what, times] : report->checks) merged_.checks[what] += times;
      remarks.insert(remarks.end(), report->remarks.begin(), report->remarks.end());
      events.insert(events.end(), report->last_events.begin(), report->last_events.end());
      merged_.places.insert(merged_.places.end(), report->places.begin(), report->places.end());
      if (merged_.hint.empty()) merged_.hint = report->hint;
      for (const auto& difference : report->differences) add_difference(difference);
    }
    merged_.remarks = merged_remarks(remarks);
    std::ranges::sort(merged_.places, {}, &Place::text);
    const auto repeated = std::ranges::unique(merged_.places);
    merged_.places.erase(repeated.begin(), repeated.end());
    merged_.last_events = merged_events(std::move(events));
    merged_.ranks = static_cast<int>(ranks_.size());
  }

  // For example "gloo (tcp on eth0)". If ranks report different transports: "gloo (tcp on eth0) of ranks 0-2, gloo (tcp
  // on lo) of rank 3".
  std::string transports() const {
    std::map<std::string, std::vector<int>> ranks_by;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const auto& report = ranks_[rank].report;
      if (report && !report->transport.empty()) ranks_by[report->transport].push_back(static_cast<int>(rank));
    }
    if (ranks_by.size() == 1) return ranks_by.begin()->first;
    std::string text;
    for (const auto& [transport, ranks] : ranks_by)
      text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", transport, describe_ranks(ranks));
    return text;
  }

  static std::size_t ranks_named_in(const Difference& difference) {
    auto count = difference.first.ranks.size() + difference.second.ranks.size();
    for (const auto& side : difference.others) count += side.ranks.size();
    return count;
  }

  // Several ranks may report the same difference. Keep the report that covers most ranks.
  void add_difference(const Difference& difference) {
    for (auto& known : merged_.differences) {
      if (std::tie(known.group, known.sequence) != std::tie(difference.group, difference.sequence)) continue;
      if (ranks_named_in(difference) > ranks_named_in(known)) known = difference;
      return;
    }
    merged_.differences.push_back(difference);
  }

  static const RankLine* line_in(const Report& report, std::size_t rank) {
    const auto& lines = report.rank_lines;
    const auto own =
        std::ranges::find_if(lines, [rank](const RankLine& line) { return line.rank == static_cast<int>(rank); });
    return own == lines.end() ? nullptr : &*own;
  }

  // The line that the rank reports about itself. Without such a line, a line that says how the rank ended.
  RankLine line_of(std::size_t rank) const {
    const auto& [report, ending] = ranks_[rank];
    if (report) {
      if (const auto* own = line_in(*report, rank)) return *own;
    }
    RankLine line;
    line.rank = static_cast<int>(rank);
    line.state = RankOutcome::failed;
    line.doing = report ? report->headline : "left no report: " + ending;
    line.at = report ? report->end_time : RankLine::kNotKnown;
    return line;
  }

  void set(Verdict verdict, std::string headline) { diagnosis_ = {verdict, {std::move(headline)}}; }

  void set_from(const Report& report) { diagnosis_ = {report.verdict, {report.headline, report.causes}}; }

  const Report* first_with(Verdict verdict) const {
    for (const auto& [report, ending] : ranks_) {
      if (report && report->verdict == verdict) return &*report;
    }
    return nullptr;
  }

  bool ended_by(Verdict verdict) {
    deciding_ = first_with(verdict);
    if (deciding_ == nullptr) return false;
    set_from(*deciding_);
    return true;
  }

  // The last rule: if any rank's verdict is not OK, the job's verdict is not OK either. For example, the text of a
  // failed check may speak of a lost connection. Then failed() skips it, because it seems to follow from other ranks.
  bool ended_by_any() {
    const auto verdicts = all_verdicts();
    return std::ranges::any_of(verdicts,
                               [this](Verdict verdict) { return verdict != Verdict::ok && ended_by(verdict); });
  }

  // True if the report describes all ranks. Then the rank that wrote it had received the job outcome.
  bool tells_of_all(const Report& report) const { return report.rank_lines.size() == ranks_.size(); }

  // If all reports describe all ranks and agree, their verdict stands.
  bool agreed() {
    for (const auto& [report, ending] : ranks_) {
      if (!report || !tells_of_all(*report) || report->verdict != ranks_.front().report->verdict) return false;
    }
    const auto& first = *ranks_.front().report;
    // merge() decides these three below: see merged_report.h.
    constexpr Verdict kByAllLines[] = {Verdict::ok, Verdict::timeout, Verdict::interrupted};
    if (std::find(std::begin(kByAllLines), std::end(kByAllLines), first.verdict) != std::end(kByAllLines)) return false;
    const auto culprits = sim::culprits_of(first);
    deciding_ = culprits.empty() ? &first : &*ranks_[static_cast<std::size_t>(culprits.front())].report;
    set_from(*deciding_);
    return true;
  }

  // Takes the report whose difference covers most ranks.
  bool mismatched() {
    const Report* best = nullptr;
    for (const auto& [report, ending] : ranks_) {
      if (!report || report->verdict != Verdict::mismatch) continue;
      const auto ranks_named = [](const Report& each) {
        return each.differences.empty() ? 0 : ranks_named_in(each.differences.front());
      };
      if (best == nullptr || ranks_named(*report) > ranks_named(*best)) best = &*report;
    }
    if (best == nullptr) return false;
    set_from(*best);
    deciding_ = best;
    return true;
  }

  std::vector<comm::WaitEdge> waits_for(int rank) const {
    std::vector<comm::WaitEdge> waits;
    for (const auto& wait : waits_) {
      if (std::ranges::find(wait.waits_for, rank) != wait.waits_for.end())
        waits.push_back({wait.rank, rank, wait.call});
    }
    return waits;
  }

  bool crashed() {
    std::string headline;
    int others = -1;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const auto& report = ranks_[i].report;
      // A rank whose report describes all ranks has survived.
      const bool survived =
          report && (report->verdict != Verdict::crashed || (ranks_.size() > 1 && tells_of_all(*report)));
      if (survived) continue;
      if (++others > 0) continue;
      const auto rank = static_cast<int>(i);
      const auto what = report ? report->headline : merged_.rank_lines[i].doing;
      const bool named = what.starts_with(fmt::format("rank {} ", rank));
      headline = named ? what : fmt::format("rank {}: {}", rank, what);
      if (const auto waits = waits_for(rank); !waits.empty()) headline += "; " + sim::waits_text(waits, 1, true);
      if (report) deciding_ = &*report;
    }
    if (others < 0) return ended_by(Verdict::crashed);
    set(Verdict::crashed, headline + sim::and_more(others));
    if (deciding_ == nullptr) deciding_ = with_waits();
    return true;
  }

  // A rank that waited for nobody when it failed is a cause. The other failures follow from it.
  bool failed(Verdict verdict) {
    int others = -1;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const auto& report = ranks_[rank].report;
      const auto& line = merged_.rank_lines[rank];
      if (!report || report->verdict != verdict || sim::failed_by_others(line)) continue;
      if (verdict == Verdict::rank_failed && line.state != RankOutcome::failed) continue;
      if (++others > 0) continue;
      set_from(*report);
      deciding_ = &*report;
    }
    if (others < 0) return false;
    diagnosis_.headline.text += sim::and_more(others);
    return true;
  }

  const Report* with_waits() const {
    return waits_.empty() ? nullptr : &*ranks_[static_cast<std::size_t>(waits_.front().rank)].report;
  }

  // The ranks that waited, or gave up, in this call, whether or not they knew for whom.
  std::vector<int> ranks_in(const std::string& call) const {
    std::vector<int> ranks;
    for (const auto& line : merged_.rank_lines) {
      if (line.doing.starts_with(call)) ranks.push_back(line.rank);
    }
    return ranks;
  }

  static const sim::AwaitedRanks& earliest(const std::vector<sim::AwaitedRanks>& waits) {
    return *std::ranges::min_element(waits, [](const auto& a, const auto& b) { return a.at < b.at; });
  }

  // Tells about the earliest wait that ranks gave up and to which `late` came afterwards.
  void set_late(const std::vector<int>& late) {
    const auto is_late = [&](int rank) { return std::ranges::binary_search(late, rank); };
    std::set<std::string_view> calls;
    for (const auto& wait : waits_) {
      if (is_late(wait.rank)) calls.insert(wait.call);
    }
    auto missed = waits_;
    std::erase_if(missed, [&](const sim::AwaitedRanks& wait) { return !calls.contains(wait.call); });
    const auto& first = earliest(missed);
    auto ranks = ranks_in(first.call);
    const auto waiting = std::stable_partition(ranks.begin(), ranks.end(), is_late);
    diagnosis_ = {Verdict::timeout,
                  sim::came_late({ranks.begin(), waiting}, first.call, first.at, {waiting, ranks.end()})};
  }

  // Adds the ranks that neither waited for known ranks nor returned.
  void add_ranks_under_way(sim::Standstill& all) const {
    for (const auto& line : merged_.rank_lines) {
      const auto waits = [&](const sim::AwaitedRanks& wait) { return wait.rank == line.rank; };
      if (line.state == RankOutcome::returned || std::ranges::any_of(waits_, waits)) continue;
      all.add({line.rank, line.state == RankOutcome::blocked ? line.doing : "", {}, line.where});
    }
  }

  // Applies if a rank reports a timeout or a deadlock. Decides between the two: TIMEOUT if the missing ranks came too
  // late or might still have come, DEADLOCK if they would never have come.
  bool waited() {
    if (first_with(Verdict::timeout) == nullptr && first_with(Verdict::deadlock) == nullptr) return false;
    if (waits_.empty()) return ended_by(Verdict::deadlock) || ended_by(Verdict::timeout);
    deciding_ = with_waits();
    if (const auto late = sim::late_ranks(waits_); !late.empty()) {
      set_late(late);
      return true;
    }
    sim::Standstill all(merged_.ranks);
    for (const auto& wait : waits_) all.add({wait.rank, wait.call, wait.waits_for, wait.where});
    const bool hopeless = std::ranges::all_of(
        waits_, [&](const sim::AwaitedRanks& wait) { return all.is_hopeless(wait.rank, merged_.rank_lines); });
    std::optional<VirtualTime> timeout;
    if (!hopeless) {
      add_ranks_under_way(all);
      timeout = earliest(waits_).at;
    }
    auto found = all.diagnose(timeout);
    diagnosis_ = {hopeless ? Verdict::deadlock : Verdict::timeout, std::move(found.headline),
                  std::move(found.wait_cycle)};
    return true;
  }

  // The ranks for which others waited, as far as the rank lines name them.
  std::vector<int> missing_ranks() const {
    Report standstill;
    standstill.verdict = Verdict::deadlock;
    standstill.rank_lines = merged_.rank_lines;
    return sim::culprits_of(standstill);
  }

  std::string who_was_missing(const std::vector<int>& missing) const {
    if (missing.empty()) return "";
    const auto rank = missing.front();
    return sim::missing_at_end(merged_.rank_lines[static_cast<std::size_t>(rank)], waits_for(rank)) +
           sim::and_more(static_cast<int>(missing.size()) - 1);
  }

  enum class Evidence { of_itself, waits_for_nobody, is_missing, of_all };

  // How much a rank's report tells about why an interrupted job hung. A report that describes all ranks tells most.
  // Next come ranks for which somebody waits, then ranks that wait for nobody, and then all others.
  Evidence evidence_of(std::size_t rank, const std::vector<int>& missing) const {
    if (tells_of_all(*ranks_[rank].report)) return Evidence::of_all;
    if (std::ranges::binary_search(missing, static_cast<int>(rank))) return Evidence::is_missing;
    const auto& line = merged_.rank_lines[rank];
    const bool in_a_call = line.state == RankOutcome::blocked && line.doing.find(" on group \"") != std::string::npos;
    return in_a_call || line.state == RankOutcome::returned ? Evidence::of_itself : Evidence::waits_for_nobody;
  }

  bool interrupted() {
    const auto missing = missing_ranks();
    std::map<Evidence, std::vector<const Report*>> reports;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const auto& report = ranks_[rank].report;
      if (report && report->verdict == Verdict::interrupted) reports[evidence_of(rank, missing)].push_back(&*report);
    }
    if (reports.empty()) return false;
    const auto& [evidence, best] = *reports.rbegin();
    deciding_ = best.front();
    const bool is_of_one = evidence == Evidence::waits_for_nobody && deciding_->headline.starts_with("rank ");
    const auto more = is_of_one ? sim::and_more(static_cast<int>(best.size()) - 1) : "";
    set(Verdict::interrupted, deciding_->headline + more + who_was_missing(missing));
    return true;
  }

  void add_evidence(const Report& report) {
    merged_.call_places = report.call_places;
    merged_.call_counts = report.call_counts;
    if (merged_.wait_cycle.empty()) merged_.wait_cycle = report.wait_cycle;
  }

  const std::vector<RankReport>& ranks_;
  Report merged_;
  sim::Diagnosis diagnosis_;
  std::vector<sim::AwaitedRanks> waits_;
  const Report* deciding_ = nullptr;
};

}  // namespace

Report merged_report(const std::vector<RankReport>& ranks) { return Merger(ranks).merge(); }

}  // namespace rehearse::cli
