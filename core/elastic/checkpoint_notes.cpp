// SPDX-License-Identifier: BSD-3-Clause
#include "checkpoint_notes.h"

#include <string_view>
#include <utility>
#include <vector>

#include <torch/nn/module.h>

#include <rehearse/exec/call_site.h>
#include <rehearse/hash/word_hash.h>
#include <rehearse/job/rank_context.h>
#include <rehearse_internal/checks/unwatched.h>
#include <rehearse_internal/exec/world_local.h>
#include <rehearse_internal/job/checkpoint_journal.h>

namespace rehearse::elastic {
namespace {

std::uint64_t hash_of(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return 0;
  const at::Tensor values = tensor.detach().cpu().contiguous();
  WordHash hash(1);
  hash.add(std::string_view(static_cast<const char*>(values.const_data_ptr()), values.nbytes()));
  return hash.value();
}

std::vector<CheckpointJournal::TensorHash> hashes_of(const torch::nn::Module& module) {
  const checks::Unwatched unwatched;
  std::vector<CheckpointJournal::TensorHash> hashes;
  for (const auto& each : module.named_parameters()) hashes.push_back({each.key(), hash_of(each.value())});
  for (const auto& each : module.named_buffers()) hashes.push_back({each.key(), hash_of(each.value())});
  return hashes;
}

RoundNumber number_of(const Round& round) { return {round.run(), round.number()}; }

}  // namespace

void note_saved(const Round& round, const torch::nn::Module& module, std::int64_t steps) {
  auto* const journal = exec::WorldLocal<CheckpointJournal>::find();
  if (journal == nullptr) return;
  CheckpointJournal::Saved saved{round.context().rank(), number_of(round), steps, round.group().rank() == 0, {}, {}};
  if (journal->has_details()) {
    saved.where = exec::CallSite::capture();
    saved.tensors = hashes_of(module);
  }
  journal->add(std::move(saved));
}

void note_restored(const Round& round, int saved_in, std::int64_t steps) {
  auto* const journal = exec::WorldLocal<CheckpointJournal>::find();
  if (journal == nullptr) return;
  CheckpointJournal::Restored restored{round.context().rank(), number_of(round), {round.run(), saved_in}, steps, {}};
  if (journal->has_details()) restored.where = exec::CallSite::capture();
  journal->add(std::move(restored));
}

}  // namespace rehearse::elastic
