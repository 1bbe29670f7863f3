// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/sim/world.h>

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rehearse/sim/report_writers.h>
#include <rehearse_internal/archive/archive.h>
#include <rehearse_internal/exec/file_interceptor.h>
#include <rehearse_internal/exec/interpreter.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/exec/world_local.h>
#include <rehearse_internal/job/launched.h>
#include <rehearse_internal/sim/determinism.h>
#include <rehearse_internal/sim/oracles.h>

#include "compute/operator_cost.h"
#include "faults/swarm.h"
#include "faults/text/fault_fields.h"
#include "network/network_cost.h"
#include "report/diagnosis/report_builder.h"
#include "simulation.h"
#include "spare_process.h"

namespace rehearse {
namespace {

// What a process tells its copy, which repeats its run.
struct FirstRun {
  std::uint64_t decisions = 0;  // DecisionLog::hash()
  exec::Ending ending{};
  bool has_findings = false;
  std::string report;  // as JSON
};

template <class Archive>
void fields(Archive& archive, FirstRun& run) {
  archive(run.decisions, run.ending, run.has_findings, run.report);
}

// Records the files outside of scratch folders to which ranks write, as far as a FileInterceptor sees the writes. A run
// with another seed may read what this run leaves in such a file. `outside` must outlive this object.
class FileWatch final : public exec::FileInterceptor {
 public:
  FileWatch(const ScratchFolders& scratch, std::set<std::string>& outside)
      : scratch_(std::filesystem::weakly_canonical(scratch.folder()).string() + "/"), outside_(outside) {}

  // Ignores stdout and stderr, which may be files as well, and files without a name, which only this process can reach.
  Answer before_write(int, int file, std::size_t bytes) override {
    struct stat status{};
    const bool has_name =
        file > STDERR_FILENO && fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink > 0;
    std::error_code error;
    const auto path =
        has_name ? std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", file), error).string() : std::string();
    if (!path.empty() && !path.starts_with(scratch_)) outside_.insert(path);
    return {.bytes = bytes};
  }

 private:
  const std::string scratch_;  // ends with a slash
  std::set<std::string>& outside_;
};

WorldOptions checked(WorldOptions options) {
  constexpr std::size_t kStackBytesMin = std::size_t{64} << 10;
  if (options.ranks < 1) {
    throw std::invalid_argument(fmt::format("WorldOptions::ranks is {}; a world has at least 1 rank", options.ranks));
  }
  if (options.timeout.count() < 0) {
    throw std::invalid_argument(
        fmt::format("WorldOptions::timeout is {} ms; it is 0 (none) or more", options.timeout.count()));
  }
  if (options.stack_bytes < kStackBytesMin) {
    throw std::invalid_argument(fmt::format("WorldOptions::stack_bytes is {}; LibTorch needs at least {}",
                                            options.stack_bytes, kStackBytesMin));
  }
  // The launcher of the processes has decided how many ranks there are.
  if (options.mode == Mode::real) {
    if (const auto process = launched_process()) options.ranks = process->size;
  }
  if (options.pct.depth < 1) {
    throw std::invalid_argument(fmt::format("WorldOptions::pct has a depth of {}; it is 1 or more", options.pct.depth));
  }
  if (options.runs != 1) {
    throw std::invalid_argument(
        fmt::format("WorldOptions::runs is {}; a World runs one seed, and check() takes `runs`", options.runs));
  }
  if (options.patience && *options.patience < VirtualDuration::zero()) {
    throw std::invalid_argument(
        fmt::format("WorldOptions::patience is {} ns; it is 0 or more", options.patience->count()));
  }
  if (options.file_time < VirtualDuration::zero()) {
    throw std::invalid_argument(
        fmt::format("WorldOptions::file_time is {} ns; it is 0 or more", options.file_time.count()));
  }
  sim::require_valid(options.network);
  sim::require_valid(options.compute);
  sim::require_valid(options.faults, options.ranks);
  sim::require_valid(options.swarm, options.ranks);
  if (options.mode == Mode::real && !options.faults.empty()) {
    throw FaultError(fmt::format("fault \"{}\": faults are injected in simulation, and this run is a real one",
                                 to_string(options.faults.front())));
  }
  if (options.mode == Mode::real && options.swarm.on) {
    throw FaultError("the swarm draws faults for the simulation, and this run is a real one");
  }
  const auto& compile_time = options.compile_time;
  if (compile_time.per_node < VirtualDuration::zero() || !(compile_time.jitter >= 0) ||
      !std::isfinite(compile_time.jitter)) {
    throw std::invalid_argument(fmt::format(
        "WorldOptions::compile_time is {} ns for each node with a jitter of {}; both are 0 or more, and finite",
        compile_time.per_node.count(), compile_time.jitter));
  }
  return options;
}

}  // namespace

class World::Impl {
 public:
  explicit Impl(WorldOptions options) : options_(checked(std::move(options))) {}

  Report run(const Body& body) {
    if (exec::this_rank::is_fiber()) throw std::logic_error("a world cannot run inside a rank of another");
    if (options_.mode == Mode::real) return run_for_real(body);
    std::unique_ptr<Oracle> seeded;
    if (oracle_ == nullptr) seeded = sim::make_oracle(options_);
    ScratchFolders scratch(options_.scratch, options_.seed);
    files_written_.clear();
    FileWatch watch(scratch, files_written_);
    const exec::WorldLocal<exec::FileInterceptor>::Lent lent(watch);
    Report report = simulated(seeded ? *seeded : *oracle_, body, scratch);
    if (report.verdict == Verdict::ok) {
      scratch.remove();
    } else if (scratch.any()) {
      report.remarks.push_back(fmt::format("what ranks wrote is kept in {}", scratch.folder().string()));
    }
    return report;
  }

  Report simulated(Oracle& oracle, const Body& body, ScratchFolders& scratch) {
    explained_.reset();
    std::optional<sim::SpareProcess> spare;
    if (exec::interpreter() != nullptr && options_.explain_failures && !options_.call_sites) spare.emplace();
    if (spare && spare->word())
      return explained_in_copy(archive::unpacked<FirstRun>(*spare->word(), "a run"), oracle, body, scratch);
    record_ = sim::simulate(options_, oracle, body, scratch, show_);
    bool lacks_places = false;
    Report report = sim::build_report(options_, *record_, &lacks_places);
    // A user who interrupts a run does not want to wait for a second one.
    if (report.verdict == Verdict::interrupted || options_.call_sites) return report;
    const bool worth_it =
        report.verdict != Verdict::ok || (options_.explain_remarks && !report.remarks.empty() && lacks_places);
    if (!worth_it || !options_.explain_failures) return report;
    if (spare) {
      const auto& outcome = record_->outcome;
      spare->go_on_with(archive::packed(
          FirstRun{record_->decisions.hash(), outcome.ending, !record_->findings.empty(), sim::to_json(report)}));
    }
    return explained(std::move(report), body, scratch);
  }

  // Makes the run whose first report is in `first` once more, with call sites. Here nothing has happened yet, so the
  // oracle takes the same decisions by itself.
  Report explained_in_copy(const FirstRun& first, Oracle& oracle, const Body& body, ScratchFolders& scratch) {
    WorldOptions again = options_;
    again.call_sites = true;
    again.checks.explain = first.has_findings;
    if (say_repeat_) say_repeat_();
    scratch.begin_again();
    record_ = sim::simulate(again, oracle, body, scratch, {});
    const bool is_same = record_->decisions.hash() == first.decisions && record_->outcome.ending == first.ending;
    if (!is_same) return with_other_way(sim::report_from_json(first.report), "it took other decisions");
    return sim::build_report(again, *record_);
  }

  // The machine schedules the ranks, so there is no oracle, and no second run could be the same.
  Report run_for_real(const Body& body) {
    explained_.reset();
    record_ = make_real_runner()->run(sim::request_of(options_), body, show_);
    return sim::build_report(options_, *record_);
  }

  // Repeats the run with the same decisions, and records where each operation is called.
  Report explained(Report report, const Body& body, ScratchFolders& scratch) {
    WorldOptions again = options_;
    again.call_sites = true;
    again.checks.explain = !record_->findings.empty();
    const auto& decisions = record_->decisions.decisions();
    sim::ReplayOracle oracle({decisions.begin(), decisions.end()}, sim::PastEnd::random, options_.seed);
    const ShowProgress silent;
    if (say_repeat_) say_repeat_();
    scratch.begin_again();
    try {
      auto record = sim::simulate(again, oracle, body, scratch, silent);
      if (record->outcome.ending == exec::Ending::interrupted) return report;
      // If a body depends on more than the seed, it may run differently the second time. Then the caller gets the first
      // report.
      if (record->decisions.hash() != record_->decisions.hash() || record->outcome.ending != record_->outcome.ending) {
        return with_other_way(std::move(report), first_difference(*record_, *record));
      }
      if (failed_after_recovery(report, *record)) record->without_faults = without_faults(again, body);
      explained_ = std::move(record);
      return sim::build_report(again, *explained_);
    } catch (const sim::ReplayError& error) {
      return with_other_way(std::move(report), error.what());
    }
  }

  // A static variable that the first run has initialised is no reason for a remark about a run that is OK.
  static Report with_other_way(Report report, const std::string& where) {
    if (report.verdict == Verdict::ok) return report;
    report.remarks.insert(report.remarks.begin(), fmt::format("{} (a clock, an address, a thread, an earlier run): {}",
                                                              sim::kOutsideOfTheSeed, where));
    return report;
  }

  static std::string first_difference(const RunRecord& one, const RunRecord& two) {
    auto first = sim::path_of(one.decisions, one.events.hash()),
         second = sim::path_of(two.decisions, two.events.hash());
    const auto has_all_calls = [](const RunRecord& run) { return run.events.kept().size() == run.events.size(); };
    if (has_all_calls(one) && has_all_calls(two)) {
      first.calls = sim::calls_of(one.events);
      second.calls = sim::calls_of(two.events);
    }
    const auto difference = sim::first_difference(first, second);
    return difference ? difference->text : "it ended in another way";
  }

  static bool failed_after_recovery(const Report& report, const RunRecord& record) {
    const bool is_of_state = report.verdict == Verdict::check_failed || report.verdict == Verdict::rank_failed;
    return is_of_state && !report.faults.empty() && !record.checkpoints.restored().empty();
  }

  // The ranks' states without faults, from another run with the same seed.
  static std::optional<RunRecord::WithoutFaults> without_faults(WorldOptions options, const Body& body) {
    options.faults.clear();
    options.swarm.on = false;
    options.checks.explain = false;
    const auto oracle = sim::make_oracle(options);
    ScratchFolders scratch({}, options.seed);
    const auto record = sim::simulate(options, *oracle, body, scratch, {});
    scratch.remove();
    const Report report = sim::build_report(options, *record);
    if (report.verdict == Verdict::interrupted) return std::nullopt;
    RunRecord::WithoutFaults result{std::move(record->checkpoints), ""};
    if (report.verdict != Verdict::ok)
      result.failure = fmt::format("{}: {}", to_string(report.verdict), report.headline);
    return result;
  }

  const WorldOptions options_;
  Oracle* oracle_ = nullptr;
  ShowProgress show_;
  std::function<void()> say_repeat_;
  const RunRecord& most_telling() const noexcept { return explained_ ? *explained_ : *record_; }

  std::unique_ptr<RunRecord> record_, explained_;  // `explained_` is null unless a run was explained
  std::set<std::string> files_written_;
};

World::World(WorldOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
World::~World() = default;

void World::use_oracle(Oracle& oracle) { impl_->oracle_ = &oracle; }

void World::on_progress(std::function<void(std::int64_t, std::int64_t, std::string_view)> show) {
  impl_->show_ = std::move(show);
}

void World::on_repeat(std::function<void()> say) { impl_->say_repeat_ = std::move(say); }

Report World::run(const Body& body) { return impl_->run(body); }

const std::set<std::string>& World::files_written() const noexcept { return impl_->files_written_; }
const DecisionLog& World::decisions() const noexcept { return impl_->record_->decisions; }
const comm::EventLog& World::events() const noexcept { return impl_->record_->events; }
const std::vector<RankResult>& World::results() const noexcept { return impl_->record_->results; }
const comm::EventLog& World::explained_events() const noexcept { return impl_->most_telling().events; }
const compiler::Journal& World::compiled() const noexcept { return impl_->most_telling().journal; }

}  // namespace rehearse
