// SPDX-License-Identifier: BSD-3-Clause
#include <limits>

#include <fmt/format.h>
#include <rehearse/job/parameter_text.h>
#include <rehearse/sim/scenario.h>

#include "run/run_files.h"
#include "units.h"

namespace rehearse::sim {
namespace {

std::string toml_text(std::string_view text) { return in_quotes(text, std::string_view::npos); }

std::string seed(std::uint64_t value) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return value <= kMost ? fmt::format("{}", value) : fmt::format("\"{:#x}\"", value);
}

std::string value_text(const ParameterValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr ? toml_text(*text) : rehearse::shown(value);
}

std::string world_table(const WorldOptions& world) {
  return fmt::format(
      "\n[world]\nranks = {}\nseed = {}\nschedule = \"{}\"\n{}timeout = \"{}\"\nbuffered_sends = {}\n"
      "coalesced_as_one = {}\nstack = \"{}\"\nsteps_max = {}\n",
      world.ranks, seed(world.seed), to_string(world.schedule),
      world.preempt ? fmt::format("preempt = {}\n", *world.preempt) : "", units::print_duration(world.timeout),
      world.buffered_sends, world.coalesced_as_one, units::print_bytes(world.stack_bytes), world.steps_max);
}

std::string network_table(const NetworkModel& network) {
  return fmt::format("\n[network]\nlatency = \"{}\"\nbandwidth = \"{}\"\njitter = {}\n",
                     units::print_duration(network.latency), units::print_bandwidth(network.bytes_per_second),
                     with_point(network.jitter));
}

// Left out where it is off, so that what is written about runs without it stays as it was.
std::string compute_table(const ComputeModel& compute) {
  if (!compute.on()) return "";
  std::string text = "\n[compute]\n";
  if (compute.flops_per_second > 0)
    text += fmt::format("flops = \"{}\"\n", units::print_flops(compute.flops_per_second));
  if (compute.bytes_per_second > 0) {
    text += fmt::format("bandwidth = \"{}\"\n", units::print_bandwidth(compute.bytes_per_second));
  }
  return text + fmt::format("per_operator = \"{}\"\n", units::print_duration(compute.per_operator));
}

std::string compile_table(const WorldOptions& world) {
  const auto& time = world.compile_time;
  const bool fails = world.compile_divergence == CompileDivergence::fail;
  if (time.per_node == VirtualDuration::zero() && time.jitter == 0 && !fails) return "";
  return fmt::format("\n[compile]\nper_node = \"{}\"\njitter = {}\ndivergence = \"{}\"\n",
                     units::print_duration(time.per_node), with_point(time.jitter), fails ? "fail" : "remark");
}

}  // namespace

std::string to_toml(const Scenario& scenario) {
  std::string text = fmt::format("program = {}\n", toml_text(scenario.program));
  if (!scenario.executable.empty()) text += fmt::format("executable = {}\n", toml_text(scenario.executable));
  text += world_table(scenario.world);
  text += network_table(scenario.world.network);
  text += compute_table(scenario.world.compute);
  text += compile_table(scenario.world);
  if (!scenario.parameters.all().empty()) text += "\n[parameters]\n";
  for (const auto& [name, value] : scenario.parameters.all()) {
    text += fmt::format("{} = {}\n", toml_text(name), value_text(value));
  }
  const auto& output = scenario.output;
  text += fmt::format("\n[output]\ndirectory = {}\n", toml_text(output.directory.string()));
  for (const auto& file : report_files()) text += fmt::format("{} = {}\n", file.key, output.wants(file.key));
  return text;
}

}  // namespace rehearse::sim
