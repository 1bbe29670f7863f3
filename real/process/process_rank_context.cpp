// SPDX-License-Identifier: BSD-3-Clause
#include "process_rank_context.h"

#include <numeric>
#include <thread>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>

namespace rehearse::real {

ProcessRankContext::ProcessRankContext(const LaunchedProcess& process, ProcessGroups& groups, RankServices& services,
                                       RunRecord& record, const ShowProgress& show, at::Device device)
    : RankContextBase(record, show, at::detail::getDefaultCPUGenerator(), device),
      process_(process),
      groups_(groups),
      services_(services) {
  std::vector<int> ranks(static_cast<std::size_t>(process.size));
  std::iota(ranks.begin(), ranks.end(), 0);
  group_ = Group(groups_.new_group(ranks, "world"));
}

Group ProcessRankContext::new_group(const std::vector<int>& ranks, std::string_view name) {
  return Group(groups_.new_group(ranks, name));
}

Group ProcessRankContext::new_local_group(const std::vector<int>& ranks, std::string_view name) {
  return Group(groups_.new_local_group(ranks, name));
}

VirtualTime ProcessRankContext::now() const noexcept { return services_.journal.now(); }

void ProcessRankContext::spend(VirtualDuration duration) { std::this_thread::sleep_for(duration); }

}  // namespace rehearse::real
