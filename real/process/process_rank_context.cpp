// SPDX-License-Identifier: BSD-3-Clause
#include "process_rank_context.h"

#include <numeric>
#include <stdexcept>
#include <thread>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

namespace rehearse::real {

ProcessRankContext::ProcessRankContext(const LaunchedProcess& process, ProcessGroups& groups, RankServices& services,
                                       RunRecord& record, const ShowProgress& show, at::Device device)
    : process_(process),
      groups_(groups),
      services_(services),
      record_(record),
      show_(show),
      device_(device),
      generator_(at::detail::getDefaultCPUGenerator()) {
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

void ProcessRankContext::push_label(std::string_view name) {
  labels_.push_back(services_.journal.kept_label(std::string(name)));
  services_.journal.set_label(labels_.back());
}

void ProcessRankContext::pop_label() noexcept {
  labels_.pop_back();
  services_.journal.set_label(labels_.empty() ? nullptr : labels_.back());
}

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
