// SPDX-License-Identifier: BSD-3-Clause
// The keys in the store, below "checkpoint/" (for a second run, "checkpoint of run 2/"): "last" is "<round> <steps>",
// and "<round>/<steps>" holds what was saved then.
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

#include <rehearse/job/rank_context.h>

#include "checkpoint_notes.h"
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

// Module::load() replaces the module's own tensors by tensors of any shape. If shapes differ, the old ones are
// restored.
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

}  // namespace

Checkpoint::Checkpoint(Round& round, torch::nn::Module& module, torch::optim::Optimizer& optimizer,
                       c10::intrusive_ptr<c10d::Store> store)
    : round_(round),
      module_(module),
      optimizer_(optimizer),
      store_(c10::make_intrusive<c10d::PrefixStore>(name_in_run(round.run(), "checkpoint"),
                                                    store != nullptr ? std::move(store) : round.context().store())) {}

std::int64_t Checkpoint::load() {
  Version last;
  if (round_.group().rank() == 0) last = version_of(store_->compareSet("last", "", ""));
  auto told = at::full({2}, last.round, at::kLong);
  told[1].fill_(last.steps);
  round_.group().broadcast(told)->wait();
  last = {told[0].item<std::int64_t>(), told[1].item<std::int64_t>()};
  if (last.round < 0) return 0;
  const auto bytes = store_->get(last.key());
  std::istringstream stream(std::string(bytes.begin(), bytes.end()));
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
