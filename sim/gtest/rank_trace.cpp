// SPDX-License-Identifier: BSD-3-Clause
#include "trace_text.h"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rehearse_internal/exec/this_rank.h>

namespace rehearse {
namespace {

using FiberName = std::pair<int, std::uint32_t>;  // rank, fiber_of_rank

thread_local std::map<FiberName, std::vector<std::string>> traces;  // outermost first

FiberName this_fiber() { return {exec::this_rank::rank(), exec::this_rank::fiber_of_rank()}; }

}  // namespace

RankTrace::RankTrace(const char* file, int line, std::string message) {
  if (exec::this_rank::is_fiber()) {
    traces[this_fiber()].push_back(fmt::format("{}:{}: {}", file, line, message));
  } else {
    outside_.emplace(file, line, message);
  }
}

RankTrace::~RankTrace() {
  if (outside_ || !exec::this_rank::is_fiber()) return;
  const auto own = traces.find(this_fiber());
  if (own == traces.end()) return;
  own->second.pop_back();
  if (own->second.empty()) traces.erase(own);
}

std::string traces_of_this_fiber() {
  const auto own = traces.find(this_fiber());
  if (own == traces.end()) return "";
  std::string text;
  for (auto trace = own->second.rbegin(); trace != own->second.rend(); ++trace) text += "\n" + *trace;
  return text;
}

void forget_traces() { traces.clear(); }

}  // namespace rehearse
