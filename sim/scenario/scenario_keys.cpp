// SPDX-License-Identifier: BSD-3-Clause
#include "scenario_keys.h"

#include <limits>
#include <utility>

#include <fmt/format.h>

#include "key_kinds.h"
#include "run/run_files.h"

namespace rehearse::sim {
namespace {

constexpr std::int64_t kRanksMost = 65'536;
constexpr std::int64_t kIntegerMost = std::numeric_limits<std::int64_t>::max();
constexpr double kJitterMost = 100;

constexpr auto kWorld = &Scenario::world;
constexpr auto kNetwork = &WorldOptions::network;
constexpr auto kCompute = &WorldOptions::compute;
constexpr auto kCompileTime = &WorldOptions::compile_time;

ScenarioSection top_level() {
  auto program = keys::text("program", "a program of the executable", at(&Scenario::program));
  auto executable =
      keys::text("executable", "the file or target that holds the program; errors name it", at(&Scenario::executable));
  executable.fallback = "`\"\"`";
  auto mode = keys::choice<Mode>("mode", {{"simulation", Mode::simulation}, {"real", Mode::real}},
                                 ": on GPUs, or in processes ([how](REAL.md))", at(kWorld, &WorldOptions::mode));
  std::vector<std::pair<std::string, Transport>> transports;
  for (const auto& name : transport_names()) transports.emplace_back(name, static_cast<Transport>(transports.size()));
  auto with = keys::choice<Transport>("with", std::move(transports), ": the transport of a real run",
                                      at(kWorld, &WorldOptions::transport));
  mode = keys::unless_default(std::move(mode));
  mode.fallback = "`\"simulation\"`";
  with = keys::unless_default(std::move(with));
  with.fallback = "`\"automatic\"`";
  std::vector<std::pair<std::string, Verdict>> verdicts;
  for (const auto verdict : all_verdicts()) verdicts.emplace_back(to_string(verdict), verdict);
  auto expect = keys::unless_default(
      keys::choice<Verdict>("expect", std::move(verdicts),
                            ": the verdict that the run must have; then the exit code is 0", at(&Scenario::expect)));
  expect.fallback = "`\"OK\"`";
  return {"", {program, executable, mode, with, expect}};
}

ScenarioSection world_section() {
  auto preempt =
      keys::flag("preempt", "`true`: store calls, file calls, sends, locks and unlocks may switch ranks, too",
                 at(kWorld, &WorldOptions::preempt));
  preempt.fallback = "in sweeps `true` for most seeds, else `false`";
  auto patience = keys::optional_duration(
      "patience", "how long a rank that can run may be made to wait while time passes, as in a slow process",
      at(kWorld, &WorldOptions::patience));
  patience.fallback = "in sweeps `\"10ms\"`, else `\"0ns\"`";
  auto file_time = keys::unless_default(keys::duration(
      "file_time", "2ms", "a duration: each call of the program on a file takes a drawn time between 0 and this",
      at(kWorld, &WorldOptions::file_time)));
  file_time.fallback = "`\"0ns\"`";
  auto pct_depth =
      keys::unless_default(keys::integer("pct_depth", 1, kPctDepthMost,
                                         "for `\"pct\"`, 1 to 64: how many conditions on the order of events must "
                                         "hold for a bug to show ([more](DETERMINISM.md#priorities))",
                                         at(kWorld, &WorldOptions::pct, &PctOptions::depth)));
  auto pct_steps = keys::unless_default(
      keys::integer("pct_steps", 1, kIntegerMost, "for `\"pct\"` and `\"deviations\"`: how many choices a run makes",
                    at(kWorld, &WorldOptions::pct, &PctOptions::steps)));
  auto memory = keys::memory("memory",
                             "how much memory each rank's tensors may take (`\"80GiB\"`); a rank that needs more ends "
                             "the run as OUT OF MEMORY",
                             at(kWorld, &WorldOptions::memory_bytes));
  pct_depth.fallback = "`3`";
  pct_steps.fallback = "sweeps count the choices of a run; else each seed draws a number";
  return {"world",
          {
              keys::integer("ranks", 1, kRanksMost,
                            "1 to 65536. Each rank takes two memory maps, and Linux allows 65530 by default "
                            "(`vm.max_map_count`), enough for about 32,000 ranks",
                            at(kWorld, &WorldOptions::ranks)),
              keys::seed("seed", "an integer; as a text above 2^63 - 1: `\"0xf00d000000000001\"`",
                         at(kWorld, &WorldOptions::seed)),
              keys::schedule("schedule", at(kWorld, &WorldOptions::schedule)),
              pct_depth,
              pct_steps,
              preempt,
              patience,
              file_time,
              keys::milliseconds("timeout", "the timeout of every operation, in virtual time; `\"0s\"`: none",
                                 at(kWorld, &WorldOptions::timeout)),
              keys::flag("buffered_sends", "`true`: a send ends before its receive is called",
                         at(kWorld, &WorldOptions::buffered_sends)),
              keys::flag("coalesced_as_one", "`true`: sends and receives of a batch move together, as with NCCL",
                         at(kWorld, &WorldOptions::coalesced_as_one)),
              memory,
              keys::stack("stack", "the stack of each rank", at(kWorld, &WorldOptions::stack_bytes)),
              keys::integer("steps_max", 1, kIntegerMost, "switches after which the run ends as STEP BUDGET",
                            at(kWorld, &WorldOptions::steps_max)),
          }};
}

ScenarioSection network_section() {
  return {"network",
          {
              keys::duration("latency", "5us", "a duration", at(kWorld, kNetwork, &NetworkModel::latency)),
              keys::bandwidth("bandwidth", "a bandwidth, as in \"50GB/s\" or \"400Gbit/s\"",
                              "a size and `/s`, or `Mbit/s`, `Gbit/s`, `Tbit/s`",
                              at(kWorld, kNetwork, &NetworkModel::bytes_per_second)),
              keys::number("jitter", 0, kJitterMost, "0 to 100; with `0.5`, an operation takes up to 1.5 times as long",
                           at(kWorld, kNetwork, &NetworkModel::jitter)),
              keys::duration(
                  "store", "0ns",
                  "a duration: how long each call of the store takes, except `check`, `getNumKeys`, `listKeys` and "
                  "`queueLen`",
                  at(kWorld, kNetwork, &NetworkModel::store)),
          }};
}

ScenarioSection compute_section() {
  return {"compute",
          {
              keys::flops("flops",
                          "operations a second (`\"20TFLOP/s\"`), from which the time of operators follows "
                          "([how](decisions/0006-compute-in-virtual-time.md))",
                          at(kWorld, kCompute, &ComputeModel::flops_per_second)),
              keys::bandwidth("bandwidth", "a bandwidth, as in \"2TB/s\"",
                              "a size and `/s`: the speed of memory, for the time of operators",
                              at(kWorld, kCompute, &ComputeModel::bytes_per_second)),
              keys::duration("per_operator", "5us", "a duration that each operator takes in addition",
                             at(kWorld, kCompute, &ComputeModel::per_operator)),
          },
          [](const Scenario& scenario) { return scenario.world.compute.on(); }};
}

ScenarioSection compile_section() {
  return {"compile",
          {
              keys::duration("per_node", "2ms", "a duration that compiling takes for each node of a graph",
                             at(kWorld, kCompileTime, &compiler::CompileTimeModel::per_node)),
              keys::number("jitter", 0, kJitterMost, "0 to 100; with `0.5`, compiling takes up to 1.5 times as long",
                           at(kWorld, kCompileTime, &compiler::CompileTimeModel::jitter)),
              keys::choice<CompileDivergence>(
                  "divergence", {{"remark", CompileDivergence::remark}, {"fail", CompileDivergence::fail}},
                  ": what happens if some ranks recompile a function alone and the run ends well all the same",
                  at(kWorld, &WorldOptions::compile_divergence)),
          },
          [](const Scenario& scenario) {
            const auto& time = scenario.world.compile_time;
            return time.per_node != VirtualDuration::zero() || time.jitter != 0 ||
                   scenario.world.compile_divergence != CompileDivergence::remark;
          }};
}

ScenarioSection swarm_section() {
  constexpr auto kSwarm = &WorldOptions::swarm;
  constexpr std::int64_t kFaultsMost = 1'000;
  constexpr std::int64_t kCallsMost = 1'000'000;
  auto within =
      keys::unless_default(keys::duration("within", "10ms", "a duration: faults may also come at a time before it",
                                          at(kWorld, kSwarm, &SwarmOptions::within)));
  within.fallback = "none: at calls only";
  return {"swarm",
          {
              keys::fault_families(
                  "families",
                  "an array of faults that leave the rank, the time or both open; `--swarm` draws from them "
                  "([how](FAULTS.md#many-at-once))",
                  at(kWorld, kSwarm, &SwarmOptions::families)),
              keys::flag("on", "`true`: draws faults without `--swarm`, too", at(kWorld, kSwarm, &SwarmOptions::on)),
              keys::integer("faults_most", 1, kFaultsMost, "1 to 1000: how many faults one run has at most",
                            at(kWorld, kSwarm, &SwarmOptions::faults_most)),
              keys::integer("calls", 1, kCallsMost,
                            "1 to 1000000: a fault at a call hits one of the first calls, up to this number",
                            at(kWorld, kSwarm, &SwarmOptions::calls)),
              within,
          },
          [](const Scenario& scenario) { return scenario.world.swarm.on || !scenario.world.swarm.families.empty(); }};
}

ScenarioSection checks_section() {
  constexpr auto kChecks = &WorldOptions::checks;
  using checks::AutomaticChecks, checks::Draws;
  auto draws = keys::choice<std::optional<Draws>>(
      "draws", {{"off", {}}, {"same", Draws::same}, {"different", Draws::different}},
      ": whether the random generators of the ranks must draw the same numbers, or different ones",
      at(kWorld, kChecks, &AutomaticChecks::draws));
  auto buffers =
      keys::flag("buffers", "finds tensors that are touched between a call and its wait ([how](CHECKERS.md))",
                 at(kWorld, &WorldOptions::check_buffers));
  auto sharing = keys::flag("sharing", "finds memory that two ranks give to their calls",
                            at(kWorld, &WorldOptions::check_sharing));
  buffers.fallback = sharing.fallback = "`true`";
  auto replicas = keys::flag("replicas",
                             "compares the replicas of each `DistributedDataParallel` at each of its forwards and at "
                             "its end ([how](STATE_CHECKS.md)); without this key, most differences are only a remark",
                             at(kWorld, kChecks, &AutomaticChecks::replicas));
  replicas.fallback = "a remark";
  std::vector<std::pair<std::string, CheckLevel>> levels;
  for (const auto& name : check_level_names()) levels.emplace_back(name, static_cast<CheckLevel>(levels.size()));
  auto level = keys::unless_default(keys::choice<CheckLevel>(
      "level", std::move(levels),
      ": `\"default\"` turns on `buffers` and `sharing`, `\"all\"` also `replicas` and `finite`",
      at(kWorld, &WorldOptions::check_level)));
  level.fallback = "`\"default\"`";
  return {"checks",
          {
              level,
              replicas,
              draws,
              keys::flag("finite",
                         "finds a NaN or Inf that enters or leaves a sum, and a NaN that enters a minimum or maximum, "
                         "and says where it comes from",
                         at(kWorld, kChecks, &AutomaticChecks::finite)),
              buffers,
              sharing,
          },
          [](const Scenario& scenario) {
            const auto& world = scenario.world;
            return world.checks.any() || world.check_buffers || world.check_sharing ||
                   world.check_level != CheckLevel::standard;
          }};
}

ScenarioSection output_section() {
  auto directory =
      keys::path("directory", "relative to the current directory", at(&Scenario::output, &OutputOptions::directory));
  directory.fallback = "`\"rehearse-out/<file>\"`";
  ScenarioSection section{"output", {directory}};
  for (const auto& file : report_files()) section.keys.push_back(keys::report_file(file));
  return section;
}

}  // namespace

const std::vector<ScenarioSection>& scenario_sections() {
  static const std::vector<ScenarioSection> sections = {
      top_level(),      world_section(),     network_section(), compute_section(),        compile_section(),
      checks_section(), {kFaultSection, {}}, swarm_section(),   {kParametersSection, {}}, output_section()};
  return sections;
}

std::string scenario_keys_as_markdown() {
  std::string text = "| key | default | values |\n|---|---|---|\n";
  const Scenario unprinted;
  for (const auto& section : scenario_sections()) {
    const auto place = section.name.empty() ? "" : fmt::format("[{}]", section.name);
    if (section.name == kParametersSection) {
      text += fmt::format("| `{}` | | the program's own, which `list` prints |\n", place);
    }
    if (section.name == kFaultSection) {
      text += "| `[[fault]]` | | what goes wrong on purpose, a table for each ([how](FAULTS.md)) |\n";
    }
    for (const auto& key : section.keys) {
      auto fallback = key.print(unprinted);
      if (!fallback.empty()) fallback = fmt::format("`{}`", fallback);
      if (!key.fallback.empty()) fallback = key.fallback;
      text += fmt::format("| `{}{}{}` |{}{} | {} |\n", place, place.empty() ? "" : " ", key.name,
                          fallback.empty() ? "" : " ", fallback, key.takes);
    }
  }
  return text;
}

}  // namespace rehearse::sim
