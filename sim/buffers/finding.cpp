// SPDX-License-Identifier: BSD-3-Clause
#include "finding.h"

#include <utility>

#include <fmt/format.h>

#include <rehearse/exec/observer.h>
#include <rehearse_internal/exec/this_rank.h>

namespace rehearse::sim {

void Finding::end(std::vector<int> ranks, std::string what) {
  if (!executor_.ending()) blamed_ = std::move(ranks);
  executor_.stop(std::move(what));
}

void Finding::tell(int rank, const std::string& what) { end({rank}, fmt::format("rank {}: {}", rank, what)); }

void Finding::stop_here(int rank, const std::string& what) {
  stop_here(std::vector{rank}, fmt::format("rank {}: {}", rank, what));
}

void Finding::stop_here(std::vector<int> ranks, std::string what) {
  end(std::move(ranks), std::move(what));
  exec::this_rank::wait_for_the_end(exec::FixedObserver("a call in which a checker found an error"));
}

}  // namespace rehearse::sim
