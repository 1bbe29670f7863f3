// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <rehearse/compile/explanation.h>
#include <rehearse/exec/time.h>

// What a training left behind.
struct Training {
  std::vector<double> losses;
  std::vector<at::Tensor> parameters;
  rehearse::VirtualDuration last_step{};
  rehearse::compiler::Explanation explained;  // nothing where nothing was compiled
};

inline std::string microseconds(rehearse::VirtualDuration duration) {
  return fmt::format("{:.1f} us", std::chrono::duration<double, std::micro>(duration).count());
}

inline std::string row_of(const char* name, const Training& training) {
  const auto& stats = training.explained.stats;
  return fmt::format("{:<10}  {:>6}  {:>8}  {:>4}  {:>9}\n", name, stats.graphs, stats.compiles, stats.hits,
                     microseconds(training.last_step));
}

// Buckets, graphs, recompilations, and what the overlap of backward and network saves in a step (virtual time).
inline std::string table_of(const Training& as_it_is, const Training& whole, const Training& split) {
  std::string text = "\n            graphs  compiles  hits  last step\n" + row_of("as it is", as_it_is) +
                     row_of("whole", whole) + row_of("in pieces", split);
  text += fmt::format("overlap saves {} of {} in a step\n", microseconds(whole.last_step - split.last_step),
                      microseconds(whole.last_step));
  return text + "\n" + split.explained.text();
}
