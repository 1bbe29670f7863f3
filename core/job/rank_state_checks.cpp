// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/job/rank_context.h>
#include <rehearse_internal/checks/rank_remarks.h>
#include <rehearse_internal/checks/world_checks.h>
#include <rehearse_internal/exec/executor.h>
#include <rehearse_internal/exec/this_rank.h>

#include "checks/local_checks.h"

namespace rehearse {
namespace {

// If a finding has ended the world, the rank that made it must not go on.
void leave_ended_world() {
  const auto* const executor = exec::RankExecutor::current();
  if (executor != nullptr && executor->ending()) exec::this_rank::yield();
}

void note_checked(int rank) {
  if (auto* const remarks = checks::rank_remarks()) remarks->note_checked(rank);
}

}  // namespace

void RankContext::check_replicas(const checks::ModelState& model, const checks::CheckOptions& options) {
  auto* const world = checks::world_checks();
  if (world == nullptr) return;
  note_checked(rank());
  world->replicas(rank(), model, options);
  leave_ended_world();
}

void RankContext::check_draws(checks::Draws wanted, const checks::CheckOptions& options) {
  auto* const world = checks::world_checks();
  if (world == nullptr) return;
  world->draws(rank(), generator(), wanted, options);
  leave_ended_world();
}

void RankContext::check_gradients(const checks::ModelState& model, const std::function<at::Tensor()>& loss_of_all,
                                  const checks::CheckOptions& options) {
  if (auto* const world = checks::world_checks()) {
    note_checked(rank());
    world->gradients(rank(), model, generator(), loss_of_all, options);
    return leave_ended_world();
  }
  if (model.lend_whole()) return;  // no rank of a real run has the whole model
  if (const auto finding = checks::gradients_here(rank(), size(), model, generator(), loss_of_all, options))
    throw CheckError(checks::text_of(*finding));
  count_check(options.name.empty() ? checks::kGradientsName : std::string_view(options.name));
}

void RankContext::check_step(const checks::ModelState& model, const checks::ModelState& reference,
                             const std::function<void()>& step_of_one, const checks::CheckOptions& options) {
  auto* const world = checks::world_checks();
  if (world == nullptr) return;
  note_checked(rank());
  world->step(rank(), model, reference, generator(), step_of_one, options);
  leave_ended_world();
}

void RankContext::check_finite(const checks::ModelState& model, const checks::CheckOptions& options) {
  if (auto* const world = checks::world_checks()) {
    world->finite(rank(), model, options);
    return leave_ended_world();
  }
  if (const auto finding = checks::finite_here(rank(), model, options)) throw CheckError(checks::text_of(*finding));
  count_check(options.name.empty() ? checks::kFiniteName : std::string_view(options.name));
}

std::string RankContext::saved_record(const std::vector<checks::ModelState>& parts) const {
  return checks::record_of(rank(), size(), parts);
}

void RankContext::check_saved(const std::vector<std::string>& records, const std::vector<checks::ModelState>& parts) {
  const auto wrong = checks::unlike_saved(records, rank(), size(), parts);
  expect(wrong.empty(), "saved", wrong);
}

}  // namespace rehearse
