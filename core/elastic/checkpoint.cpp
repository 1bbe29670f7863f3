// SPDX-License-Identifier: BSD-3-Clause
// The keys in the store, below "checkpoint/" (for a second run, "checkpoint of run 2/"): "last" is "<round> <steps>",
// and "<round>/<steps>" holds what was saved then. A rank writes a checkpoint before "last" names it, and deletes a
// checkpoint only when "last" names another one.
#include <rehearse/elastic/checkpoint.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>
#include <torch/serialize/archive.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <rehearse/exec/call_site.h>
#include <rehearse/hash/word_hash.h>
#include <rehearse/job/rank_context.h>
#include <rehearse_internal/checks/unwatched.h>
#include <rehearse_internal/comm/byte_tensors.h>
#include <rehearse_internal/exec/world_local.h>
#include <rehearse_internal/job/checkpoint_journal.h>

#include "run_name.h"

namespace rehearse::elastic {
namespace {

struct Version {
  std::int64_t round = -1;  // -1: none
  std::int64_t steps = 0;
  std::string key() const { return fmt::format("{}/{}", round, steps); }
  std::string text() const { return fmt::format("{} {}", round, steps); }
};

Version version_of(const std::string& text) {
  Version version;
  std::istringstream(text) >> version.round >> version.steps;
  return text.empty() ? Version{} : version;
}

struct Stored {
  Version version;
  std::string bytes;
};

// Returns an empty text if there is no such key: a get() would wait for it.
std::string read(c10d::Store& store, const std::string& key) { return store.compareSet(key, "", ""); }

// A rank that has not yet noticed that its round is over may save between the two reads. It then deletes the checkpoint
// that "last" named at the first read, and "last" names a newer one.
Stored last_stored(c10d::Store& store) {
  for (auto text = read(store, "last");;) {
    const Version version = version_of(text);
    if (version.round < 0) return {};
    if (auto bytes = read(store, version.key()); !bytes.empty()) return {version, std::move(bytes)};
    const auto now = read(store, "last");
    TORCH_CHECK_WITH(DistStoreError, now != text, "elastic::Checkpoint::load(): the store has lost the checkpoint of ",
                     "round ", version.round, " after ", version.steps, " steps, the last one. Nothing but this class ",
                     "may delete keys under \"checkpoint\"");
    text = now;
  }
}

// Broadcasts what the group's first rank has read. Only that rank reads the store, so all ranks resume from the same
// checkpoint, even if another rank deletes it meanwhile.
Stored from_first_rank(const Group& group, const Stored& own) {
  auto head = at::full({3}, own.version.round, at::kLong);
  head[1].fill_(own.version.steps);
  head[2].fill_(static_cast<std::int64_t>(own.bytes.size()));
  group.broadcast(head)->wait();
  const auto size = head[2].item<std::int64_t>();
  const Version version{head[0].item<std::int64_t>(), head[1].item<std::int64_t>()};
  if (version.round < 0) return {};
  const auto bytes = comm::bytes_of(own.bytes, size);
  group.broadcast(bytes)->wait();
  return {version, comm::text_in(bytes, size)};
}

std::string saved(const torch::nn::Module& module, const torch::optim::Optimizer& optimizer) {
  torch::serialize::OutputArchive archive, of_module(archive.compilation_unit()),
      of_optimizer(archive.compilation_unit());
  module.save(of_module);
  optimizer.save(of_optimizer);
  archive.write("module", of_module);
  archive.write("optimizer", of_optimizer);
  std::ostringstream stream;
  archive.save_to(stream);
  return stream.str();
}

std::string layout_of(const at::Tensor& tensor) {
  return fmt::format("{}[{}]", c10::toString(tensor.scalar_type()), fmt::join(tensor.sizes(), ", "));
}

// Module::load() replaces the module's own tensors by tensors of any shape. If a shape or dtype differs, restores the
// old tensors and throws c10::Error.
void load_module(torch::nn::Module& module, torch::serialize::InputArchive& archive) {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (const auto& each : module.named_parameters()) tensors.emplace_back(each.key(), each.value());
  for (const auto& each : module.named_buffers()) tensors.emplace_back(each.key(), each.value());
  std::vector<at::Tensor> before;
  for (const auto& [name, tensor] : tensors) before.push_back(tensor.detach());
  module.load(archive);
  std::string wrong;
  for (std::size_t i = 0; i < tensors.size() && wrong.empty(); ++i) {
    const auto& [name, tensor] = tensors[i];
    if (layout_of(before[i]) == layout_of(tensor)) continue;
    wrong = fmt::format("\"{}\" is {} in the module and {} in the checkpoint", name, layout_of(before[i]),
                        layout_of(tensor));
  }
  for (std::size_t i = 0; i < tensors.size() && !wrong.empty(); ++i) tensors[i].second.set_data(before[i]);
  TORCH_CHECK(wrong.empty(), "elastic::Checkpoint::load(): ", wrong, ", which is of another module");
}

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

// These functions note in the journal of the world (CheckpointJournal), if there is one, what a Checkpoint does.

// The calling rank has called save(), with `module` in the state after `steps` steps.
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

// The calling rank has resumed from the checkpoint that the round `saved_in` saved after `steps` steps.
void note_restored(const Round& round, int saved_in, std::int64_t steps) {
  auto* const journal = exec::WorldLocal<CheckpointJournal>::find();
  if (journal == nullptr) return;
  CheckpointJournal::Restored restored{round.context().rank(), number_of(round), {round.run(), saved_in}, steps, {}};
  if (journal->has_details()) restored.where = exec::CallSite::capture();
  journal->add(std::move(restored));
}

}  // namespace

Checkpoint::Checkpoint(Round& round, torch::nn::Module& module, torch::optim::Optimizer& optimizer,
                       c10::intrusive_ptr<c10d::Store> store)
    : round_(round),
      module_(module),
      optimizer_(optimizer),
      store_(c10::make_intrusive<c10d::PrefixStore>(name_in_run(round.run(), "checkpoint"),
                                                    store != nullptr ? store : round.context().store())) {}

std::int64_t Checkpoint::load() {
  const auto& group = round_.group();
  auto [last, bytes] = from_first_rank(group, group.rank() == 0 ? last_stored(*store_) : Stored{});
  if (last.round < 0) return 0;
  std::istringstream stream(std::move(bytes));
  torch::serialize::InputArchive archive, of_module, of_optimizer;
  archive.load_from(stream);
  archive.read("module", of_module);
  archive.read("optimizer", of_optimizer);
  load_module(module_, of_module);
  optimizer_.load(of_optimizer);
  note_restored(round_, static_cast<int>(last.round), last.steps);
  return last.steps;
}

void Checkpoint::save(std::int64_t steps_done) {
  note_saved(round_, module_, steps_done);
  if (round_.group().rank() != 0) return;
  const Version version{round_.number(), steps_done};
  store_->set(version.key(), saved(module_, optimizer_));
  for (auto last = store_->compareSet("last", "", "");;) {
    const auto before = version_of(last);
    if (before.round > version.round) {  // this round is over, and the rank does not know it yet
      store_->deleteKey(version.key());
      return;
    }
    const auto now = store_->compareSet("last", last, version.text());
    if (now != version.text()) {
      last = now;
      continue;
    }
    if (before.round >= 0 && before.key() != version.key()) store_->deleteKey(before.key());
    return;
  }
}

}  // namespace rehearse::elastic
