// SPDX-License-Identifier: BSD-3-Clause
#include "options/world_rows.h"

#include <limits>
#include <utility>

#include <rehearse_internal/sim/seed.h>

#include "options/kinds.h"

namespace rehearse::sim {
namespace {

using checks::AutomaticChecks, checks::Draws;
using compiler::CompileTimeModel;
using kinds::at;

constexpr std::int64_t kWorldRanksMost = 65'536;
constexpr std::int64_t kIntegerMost = std::numeric_limits<std::int64_t>::max();
constexpr std::string_view kReal = "real";  // the CMake component
constexpr double kJitterMost = 100;
constexpr auto kNetwork = &WorldOptions::network;
constexpr auto kCompute = &WorldOptions::compute;
constexpr auto kCompileTime = &WorldOptions::compile_time;
constexpr auto kChecks = &WorldOptions::checks;

// --with asks for a real run, too.
Value<WorldOptions> transport() {
  auto value = kinds::enumerator<Transport>(at(&WorldOptions::transport), transport_names());
  value.set = [set = value.set](WorldOptions& world, std::string_view text, Spelling spelling) {
    auto wrong = set(world, text, spelling);
    if (spelling == Spelling::typed && wrong.empty()) world.mode = Mode::real;
    return wrong;
  };
  return value;
}

// A file keeps large seeds as texts, because TOML's integers end at 2^63 - 1.
std::string print_seed(std::uint64_t seed, Spelling spelling) {
  const bool is_text = spelling == Spelling::file && !std::in_range<std::int64_t>(seed);
  return is_text ? fmt::format("{:#x}", seed) : fmt::format("{}", seed);
}

// A file names the schedule alone. A typed text, as in "pct:3+preempt", also sets the options that go with it.
Value<WorldOptions> schedule() {
  std::vector<std::pair<std::string, Schedule>> choices;
  for (const auto each : all_schedules()) choices.emplace_back(to_string(each), each);
  auto value = kinds::choice<Schedule>(at(&WorldOptions::schedule), std::move(choices));
  value.set = [set = value.set](WorldOptions& world, std::string_view text, Spelling spelling) {
    if (spelling == Spelling::file) return set(world, text, spelling);
    const auto strategy = parse_strategy(text);
    if (!strategy) return fmt::format("; it takes {}", kStrategyTakes);
    take(*strategy, world);
    return std::string();
  };
  value.print = [print = value.print](const WorldOptions& world, Spelling spelling) {
    if (spelling == Spelling::file || !world.schedule) return print(world, spelling);
    return std::vector{to_string(strategy_of(world))};
  };
  return value;
}

std::optional<std::chrono::milliseconds> whole_milliseconds(std::string_view text) {
  const auto parsed = units::parse_duration(text);
  if (!parsed) return std::nullopt;
  const auto whole = std::chrono::duration_cast<std::chrono::milliseconds>(*parsed);
  return whole == *parsed ? std::optional(whole) : std::nullopt;
}

std::optional<std::uint64_t> size_of_stack(std::string_view text) {
  constexpr std::uint64_t kLeast = std::uint64_t{64} << 10;
  constexpr std::uint64_t kMost = std::uint64_t{16} << 30;
  const auto parsed = units::parse_bytes(text);
  return parsed && *parsed >= kLeast && *parsed <= kMost ? parsed : std::nullopt;
}

// A list of faults. `parse` throws FaultError.
template <class Get, class Parse>
Value<WorldOptions> faults(Get field, std::string takes, Parse parse) {
  Value<WorldOptions> value{Form::texts, takes};
  value.set = [=, takes = std::move(takes)](WorldOptions& world, std::string_view text,
                                            Spelling spelling) -> std::string {
    try {
      field(world).push_back(parse(text));
      return "";
    } catch (const FaultError& error) {
      return fmt::format("{}: {}", spelling == Spelling::file ? "; it takes " + takes : "", error.what());
    }
  };
  value.print = [=](const WorldOptions& world, Spelling) {
    std::vector<std::string> texts;
    for (const auto& fault : field(world)) texts.push_back(to_string(fault));
    return texts;
  };
  return value;
}

Options<WorldOptions> mode_rows() {
  return {
      {.key = "mode",
       .value = kinds::choice<Mode>(at(&WorldOptions::mode), {{"simulation", Mode::simulation}, {"real", Mode::real}}),
       .guide = ": on GPUs, or in processes ([how](REAL.md))",
       .unless_default = true,
       .flag = {"--real", "", "", "on GPUs, or in processes, instead of in simulation; docs/REAL.md", "real", 9,
                kReal}},
      {.key = "with",
       .value = transport(),
       .guide = ": the transport of a real run",
       .unless_default = true,
       .flag = {"--with", "TRANSPORT", "gloo",
                "the transport of a real run: automatic, nccl (this process, its GPUs), gloo (a process per rank, on "
                "the CPU) or processes (a process per GPU)",
                "", 10, kReal}},
  };
}

Options<WorldOptions> run_rows() {
  Options<WorldOptions> rows = {
      {.key = "ranks",
       .value = kinds::integer(at(&WorldOptions::ranks), 1, kWorldRanksMost),
       .guide = "1 to 65536. Each rank takes two memory maps, and Linux allows 65530 by default (`vm.max_map_count`), "
                "enough for about 32,000 ranks",
       .flag = {"--ranks", "N", "8", "instead of the scenario's [world] ranks", "", 2}},
      {.key = "seed",
       .value =
           kinds::parsed(at(&WorldOptions::seed), Form::integer_or_text,
                         {"an integer from 0 to 2^64 - 1, or one in a text, as in \"0x8f3a\"", std::string(kSeedTakes)},
                         parse_seed, print_seed),
       .guide = "an integer; as a text above 2^63 - 1: `\"0xf00d000000000001\"`",
       .flag = {"--seed", "N", "7", "instead of the scenario's [world] seed", "", 1},
       .variable = "REHEARSE_SEED"},
      {.key = "schedule",
       .value = schedule(),
       .fallback = "`\"random\"`; in sweeps the seeds [take turns](DETERMINISM.md#many-seeds)",
       .flag = {"--schedule", "SCHEDULE", "pct+preempt",
                "how ranks are scheduled, in the words of a report; docs/DETERMINISM.md", "", 5},
       .variable = "REHEARSE_SCHEDULE"},
      {"pct_depth", kinds::integer(at(&WorldOptions::pct, &PctOptions::depth), 1, kPctDepthMost),
       "for `\"pct\"`, 1 to 64: how many conditions on the order of events must hold for a bug to show "
       "([more](DETERMINISM.md#priorities))",
       "", true},
      {"pct_steps", kinds::integer(at(&WorldOptions::pct, &PctOptions::steps), 1, kIntegerMost),
       "for `\"pct\"` and `\"deviations\"`: how many choices a run makes",
       "sweeps count the choices of a run; else each seed draws a number", true},
      {.key = "preempt",
       .value = kinds::flag(at(&WorldOptions::preempt)),
       .guide = "`true`: store calls, file calls, sends, locks and unlocks may switch ranks, too",
       .fallback = "in sweeps `true` for most seeds, else `false`",
       .variable = "REHEARSE_PREEMPT"},
      {"patience",
       kinds::parsed(at(&WorldOptions::patience), Form::text, {"a duration, as in \"10ms\""}, units::parse_duration,
                     units::print_duration),
       "how long a rank that can run may be made to wait while time passes, as in a slow process",
       "in sweeps `\"10ms\"`, else `\"0ns\"`"},
      {"file_time", kinds::duration(at(&WorldOptions::file_time), "2ms"),
       "a duration: each call of the program on a file takes a drawn time between 0 and this", "", true},
  };
  return in_section("world", std::move(rows));
}

Options<WorldOptions> limit_rows() {
  Options<WorldOptions> rows = {
      {"timeout",
       kinds::parsed(at(&WorldOptions::timeout), Form::text,
                     {"a duration of whole milliseconds, as in \"30min\", or \"0s\" for none"}, whole_milliseconds,
                     units::print_duration),
       "the timeout of every operation, in virtual time; `\"0s\"`: none"},
      {.key = "date",
       .value = kinds::parsed(at(&WorldOptions::date), Form::text,
                              {"a date of UTC from 1970 to 2199, as in \"2026-12-01\" or \"2026-12-01T09:30:00Z\""},
                              units::parse_date, units::print_date),
       .guide = "when the run begins, by the ranks' clocks: a date of UTC, with a time (`\"2026-12-01T09:30:00Z\"`) or "
                "without",
       .unless_default = true,
       .flag = {"--date", "DATE", "2026-12-01", "when the run begins, by the ranks' clocks", "", 12},
       .simulation_only = [](const WorldOptions& world) { return world.date != WorldOptions().date; }},
      {"buffered_sends", kinds::flag(at(&WorldOptions::buffered_sends)),
       "`true`: a send ends before its receive is called"},
      {"coalesced_as_one", kinds::flag(at(&WorldOptions::coalesced_as_one)),
       "`true`: sends and receives of a batch move together, as with NCCL"},
      {.key = "memory",
       .value = kinds::positive(at(&WorldOptions::memory_bytes), "a size above 0, as in \"80GiB\"", units::parse_bytes,
                                units::print_bytes),
       .guide = "how much memory each rank's tensors may take (`\"80GiB\"`); a rank that needs more ends the run as "
                "OUT OF MEMORY",
       .fallback = "no limit",
       .simulation_only = [](const WorldOptions& world) { return world.memory_bytes > 0; }},
      {"stack",
       kinds::parsed(at(&WorldOptions::stack_bytes), Form::text, {"a size from 64KiB to 16GiB, as in \"8MiB\""},
                     size_of_stack, units::print_bytes),
       "the stack of each rank"},
      {"steps_max", kinds::integer(at(&WorldOptions::steps_max), 1, kIntegerMost),
       "switches after which the run ends as STEP BUDGET"},
  };
  return in_section("world", std::move(rows));
}

Options<WorldOptions> model_rows() {
  auto rows = in_section<WorldOptions>(
      "network",
      {{"latency", kinds::duration(at(kNetwork, &NetworkModel::latency), "5us"), "a duration"},
       {"bandwidth",
        kinds::positive(at(kNetwork, &NetworkModel::bytes_per_second), "a bandwidth, as in \"50GB/s\" or \"400Gbit/s\"",
                        units::parse_bandwidth, units::print_bandwidth),
        "a size and `/s`, or `Mbit/s`, `Gbit/s`, `Tbit/s`"},
       {"jitter", kinds::number(at(kNetwork, &NetworkModel::jitter), 0, kJitterMost),
        "0 to 100; with `0.5`, an operation takes up to 1.5 times as long"},
       {"store", kinds::duration(at(kNetwork, &NetworkModel::store), "0ns"),
        "a duration: how long each call of the store takes, except `check`, `getNumKeys`, `listKeys` and "
        "`queueLen`"}});
  auto compute = in_section<WorldOptions>(
      "compute", {{"flops",
                   kinds::positive(at(kCompute, &ComputeModel::flops_per_second),
                                   "operations a second, as in \"20TFLOP/s\"", units::parse_flops, units::print_flops),
                   "operations a second (`\"20TFLOP/s\"`), from which the time of operators follows "
                   "([how](decisions/0006-compute-in-virtual-time.md))",
                   "none: no time"},
                  {"bandwidth",
                   kinds::positive(at(kCompute, &ComputeModel::bytes_per_second), "a bandwidth, as in \"2TB/s\"",
                                   units::parse_bandwidth, units::print_bandwidth),
                   "a size and `/s`: the speed of memory, for the time of operators", "none: no time"},
                  {"per_operator", kinds::duration(at(kCompute, &ComputeModel::per_operator), "5us"),
                   "a duration that each operator takes in addition"}});
  auto compile = in_section<WorldOptions>(
      "compile",
      {{"per_node", kinds::duration(at(kCompileTime, &CompileTimeModel::per_node), "2ms"),
        "a duration that compiling takes for each node of a graph"},
       {"jitter", kinds::number(at(kCompileTime, &CompileTimeModel::jitter), 0, kJitterMost),
        "0 to 100; with `0.5`, compiling takes up to 1.5 times as long"},
       {"divergence",
        kinds::choice<CompileDivergence>(at(&WorldOptions::compile_divergence),
                                         {{"remark", CompileDivergence::remark}, {"fail", CompileDivergence::fail}}),
        ": what happens if some ranks recompile a function alone and the run ends well all the same"}});
  for (auto* const more : {&compute, &compile}) rows.insert(rows.end(), more->begin(), more->end());
  return rows;
}

Options<WorldOptions> check_rows() {
  Options<WorldOptions> rows = {
      {.key = "level",
       .value = kinds::enumerator<CheckLevel>(at(&WorldOptions::check_level), check_level_names()),
       .guide = ": `\"default\"` turns on `buffers` and `sharing`, `\"all\"` also `replicas` and `finite`",
       .unless_default = true,
       .flag = {"--checks", "LEVEL", "all",
                "which checkers run: none, default (memory) or all (also replicas, NaN and Inf); docs/CHECKERS.md", "",
                6},
       .simulation_only = [](const WorldOptions& world) { return world.check_level == CheckLevel::all; }},
      {.key = "replicas",
       .value = kinds::flag(at(kChecks, &AutomaticChecks::replicas)),
       .guide = "compares the replicas of each `DistributedDataParallel` at each of its forwards and at its end "
                "([how](STATE_CHECKS.md)); without this key, most differences are only a remark",
       .fallback = "a remark",
       .simulation_only = [](const WorldOptions& world) { return world.checks.replicas.value_or(false); }},
      {.key = "draws",
       .value = kinds::choice<std::optional<Draws>>(
           at(kChecks, &AutomaticChecks::draws), {{"off", {}}, {"same", Draws::same}, {"different", Draws::different}}),
       .guide = ": whether the random generators of the ranks must draw the same numbers, or different ones",
       .simulation_only = [](const WorldOptions& world) { return world.checks.draws.has_value(); }},
      {.key = "finite",
       .value = kinds::flag(at(kChecks, &AutomaticChecks::finite)),
       .guide = "finds a NaN or Inf that enters or leaves a sum, and a NaN that enters a minimum or maximum, and says "
                "where it comes from",
       .simulation_only = [](const WorldOptions& world) { return world.checks.finite; }},
      {.key = "buffers",
       .value = kinds::flag(at(&WorldOptions::check_buffers)),
       .guide = "finds tensors that are touched between a call and its wait ([how](CHECKERS.md))",
       .fallback = "`true`",
       .flag = {"--check-buffers", "", "",
                "find tensors that are touched between a call and its wait; docs/CHECKERS.md", "1", 7},
       .simulation_only = [](const WorldOptions& world) { return world.check_buffers.value_or(false); }},
      {.key = "sharing",
       .value = kinds::flag(at(&WorldOptions::check_sharing)),
       .guide = "finds memory that two ranks give to their calls",
       .fallback = "`true`",
       .flag = {"--check-sharing", "", "", "find memory that two ranks give to their calls; docs/CHECKERS.md", "1", 8},
       .simulation_only = [](const WorldOptions& world) { return world.check_sharing.value_or(false); }},
  };
  return in_section("checks", std::move(rows));
}

Options<WorldOptions> fault_rows() {
  constexpr auto kSwarm = &WorldOptions::swarm;
  constexpr std::int64_t kFaultsMost = 1'000;
  constexpr std::int64_t kCallsMost = 1'000'000;
  auto rows = in_section<WorldOptions>(
      "swarm",
      {{"families",
        faults(at(kSwarm, &SwarmOptions::families), "faults in an array, as in [\"crash\", \"pause for=5ms\"]",
               parse_fault_family),
        "an array of faults that leave the rank, the time or both open; `--swarm` draws from them "
        "([how](FAULTS.md#many-at-once))"},
       {.key = "on",
        .value = kinds::flag(at(kSwarm, &SwarmOptions::on)),
        .guide = "`true`: draws faults without `--swarm`, too",
        .flag = {"--swarm", "", "", "draw faults from the scenario's [swarm] families; docs/FAULTS.md", "1", 4},
        .simulation_only = [](const WorldOptions& world) { return world.swarm.on; }},
       {"faults_most", kinds::integer(at(kSwarm, &SwarmOptions::faults_most), 1, kFaultsMost),
        "1 to 1000: how many faults one run has at most"},
       {"calls", kinds::integer(at(kSwarm, &SwarmOptions::calls), 1, kCallsMost),
        "1 to 1000000: a fault at a call hits one of the first calls, up to this number"},
       {"within", kinds::duration(at(kSwarm, &SwarmOptions::within), "10ms"),
        "a duration: faults may also come at a time before it", "none: at calls only", true}});
  rows.insert(rows.begin(),
              {.value = faults(at(&WorldOptions::faults), "", parse_fault),
               .guide = "what goes wrong on purpose, a table for each ([how](FAULTS.md))",
               .flag = {"--fault", "FAULT", "'crash rank=3 at=allreduce#12'",
                        "a fault to inject, in addition to the scenario's; may be repeated; docs/FAULTS.md", "", 3},
               .simulation_only = [](const WorldOptions& world) { return !world.faults.empty(); },
               .section = kFaultSection});
  return rows;
}

}  // namespace

const Options<WorldOptions>& world_rows() {
  static const auto rows = [] {
    Options<WorldOptions> all;
    for (auto* const part : {mode_rows, run_rows, limit_rows, model_rows, check_rows, fault_rows})
      for (auto& row : part()) all.push_back(std::move(row));
    return all;
  }();
  return rows;
}

}  // namespace rehearse::sim
