// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse/compile/explanation.h>
#include <rehearse/exec/time.h>

// The result of a training. Times are those of its last step, in virtual time.
struct Training {
  std::vector<double> losses;
  std::vector<at::Tensor> parameters;
  rehearse::VirtualDuration step{}, backward{};
  std::vector<rehearse::VirtualDuration> starts;  // starts of the all-reduces, from the beginning of backward
  rehearse::compiler::Explanation explained;      // empty if nothing was compiled
};

inline std::string microseconds(rehearse::VirtualDuration duration) {
  return fmt::format("{:.0f}", std::chrono::duration<double, std::micro>(duration).count());
}

inline std::string row_of(const char* name, const Training& training) {
  std::vector<std::string> starts;
  for (const auto start : training.starts) starts.push_back(microseconds(start));
  const auto& stats = training.explained.stats;
  return fmt::format("{:<10}  {:>6}  {:>8}  {:>4}   {:<22}  {:>8}  {:>4}\n", name, stats.graphs, stats.compiles,
                     stats.hits, fmt::format("{}", fmt::join(starts, ", ")), microseconds(training.backward),
                     microseconds(training.step));
}

// The pieces of the first compilation, and the reasons for later ones.
inline std::string story_of(const rehearse::compiler::Explanation& explained) {
  std::string text = "\npiece     nodes    bytes  parameters\n";
  for (const auto& graph : explained.entries.front().graphs) {
    text += fmt::format("{:<8}  {:>5}  {:>7}  {}\n", graph.name, graph.nodes, graph.bucket_bytes,
                        fmt::join(graph.parameters, ", "));
  }
  for (const auto& recompile : explained.recompiles) {
    for (const auto& failure : recompile.failures) {
      text += fmt::format("call {} compiled again: {}\n", recompile.call, text_of(failure));
    }
  }
  return text;
}

// Graphs, compilations and hits, the starts of the all-reduces, and the times of the last step.
inline std::string table_of(const Training& as_it_is, const Training& whole, const Training& split) {
  return "\n            graphs  compiles  hits   all-reduces start at    backward  step  (us of the last step)\n" +
         row_of("as it is", as_it_is) + row_of("whole", whole) + row_of("in pieces", split) +
         story_of(split.explained) + "\n";
}
