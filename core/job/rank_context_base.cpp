// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/job/rank_context_base.h>

#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <rehearse_internal/comm/call_label.h>

namespace rehearse {

RankContextBase::RankContextBase(RunRecord& record, const ShowProgress& show, at::Generator generator,
                                 at::Device device)
    : record_(record), show_(show), generator_(std::move(generator)), device_(device) {}

void RankContextBase::compute(VirtualDuration duration) {
  if (duration < VirtualDuration::zero()) {
    throw std::invalid_argument(
        fmt::format("RankContext::compute() was given {} ns; a computation takes 0 or more", duration.count()));
  }
  if (duration > VirtualDuration::zero()) spend(duration);
}

void RankContextBase::progress(std::int64_t done, std::int64_t total, std::string_view text) {
  if (rank() == 0 && show_) show_(done, total, text);
}

std::shared_ptr<void> RankContextBase::begin_label(std::string_view name) {
  return std::make_shared<comm::LabelScope>(std::string(name));
}

void RankContextBase::count_check(std::string_view what) { ++record_.checks[std::string(what)]; }

void RankContextBase::keep_result(std::string_view name, at::Tensor value) {
  record_.results.push_back({rank(), std::string(name), std::move(value)});
}

}  // namespace rehearse
