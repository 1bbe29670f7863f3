// SPDX-License-Identifier: BSD-3-Clause
#include "report/diagnosis/real_remarks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rehearse::sim {

std::vector<std::string> real_remarks(const WorldOptions& options) {
  if (options.mode != Mode::real) return {};
  std::vector<std::string> checks, all;
  if (options.check_level == CheckLevel::all) checks.emplace_back("level");
  if (options.checks.replicas.value_or(false)) checks.emplace_back("replicas");
  if (options.checks.draws) checks.emplace_back("draws");
  if (options.checks.finite) checks.emplace_back("finite");
  if (options.check_buffers.value_or(false)) checks.emplace_back("buffers");
  if (options.check_sharing.value_or(false)) checks.emplace_back("sharing");
  if (!checks.empty()) all.push_back(fmt::format("[checks] {}", fmt::join(checks, ", ")));
  if (options.memory_bytes > 0) all.emplace_back("[world] memory");
  if (all.empty()) return {};
  const bool one = checks.size() + (options.memory_bytes > 0 ? 1 : 0) == 1;
  return {fmt::format("{} work{} in simulations only: this real run ignored {}", fmt::join(all, " and "),
                      one ? "s" : "", one ? "it" : "them")};
}

}  // namespace rehearse::sim
