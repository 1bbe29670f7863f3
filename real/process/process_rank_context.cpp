// SPDX-License-Identifier: BSD-3-Clause
#include "process_rank_context.h"

#include <numeric>
#include <stdexcept>
#include <thread>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>
#include <rehearse/exec/machine_time.h>

namespace rehearse::real {

ProcessRankContext::ProcessRankContext(const LaunchedProcess& process, ProcessGroups& groups,
                                       c10::intrusive_ptr<c10d::Store> store, RunRecord& record,
                                       const ShowProgress& show, VirtualDuration began, at::Device device)
    : process_(process),
      groups_(groups),
      store_(std::move(store)),
      record_(record),
      show_(show),
      began_(began),
      device_(device),
      generator_(at::detail::getDefaultCPUGenerator()) {
  std::vector<int> ranks(static_cast<std::size_t>(process.size));
  std::iota(ranks.begin(), ranks.end(), 0);
  group_ = Group(groups_.new_group(ranks, "world", store_));
}

Group ProcessRankContext::new_group(const std::vector<int>& ranks, std::string_view name) {
  return Group(groups_.new_group(ranks, name, store_));
}

VirtualTime ProcessRankContext::now() const noexcept { return VirtualTime{exec::machine_time() - began_}; }

void ProcessRankContext::compute(VirtualDuration duration) {
  if (duration < VirtualDuration::zero()) {
    throw std::invalid_argument(
        fmt::format("RankContext::compute() was given {} ns; a computation takes 0 or more", duration.count()));
  }
  std::this_thread::sleep_for(duration);
}

void ProcessRankContext::progress(std::int64_t done, std::int64_t total, std::string_view text) {
  if (process_.rank == 0 && show_) show_(done, total, text);
}

void ProcessRankContext::keep_result(std::string_view name, at::Tensor value) {
  record_.results.push_back({process_.rank, std::string(name), std::move(value)});
}

}  // namespace rehearse::real
