// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/job/fiber_rank_context.h>

#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <rehearse_internal/exec/this_rank.h>

namespace rehearse {

FiberRankContext::FiberRankContext(WorldServices& services, int rank, int size, c10::intrusive_ptr<c10d::Store> store,
                                   at::Generator generator, at::Device device, int incarnation)
    : services_(services),
      rank_(rank),
      size_(size),
      incarnation_(incarnation),
      store_(std::move(store)),
      generator_(std::move(generator)),
      device_(device),
      group_(services_.communicators.new_world_group(store_)) {
  comm::record_spans_in(services_.record.events);
}

Group FiberRankContext::new_group(const std::vector<int>& ranks, std::string_view name) {
  return Group(services_.communicators.new_group(ranks, name, store_));
}

Group FiberRankContext::new_local_group(const std::vector<int>& ranks, std::string_view name) {
  return Group(services_.communicators.new_local_group(ranks, name, store_));
}

void FiberRankContext::compute(VirtualDuration duration) {
  if (duration < VirtualDuration::zero()) {
    throw std::invalid_argument(
        fmt::format("RankContext::compute() was given {} ns; a computation takes 0 or more", duration.count()));
  }
  if (duration > VirtualDuration::zero()) exec::this_rank::sleep_for(duration, "a computation");
}

void FiberRankContext::progress(std::int64_t done, std::int64_t total, std::string_view text) {
  if (rank_ == 0 && services_.show) services_.show(done, total, text);
}

void FiberRankContext::push_label(std::string_view name) {
  auto known = services_.labels.find(name);
  if (known == services_.labels.end()) known = services_.labels.emplace(name).first;
  labels_.push_back(&*known);
  services_.communicators.set_label(rank_, labels_.back());
}

void FiberRankContext::pop_label() noexcept {
  labels_.pop_back();
  services_.communicators.set_label(rank_, labels_.empty() ? nullptr : labels_.back());
}

}  // namespace rehearse
