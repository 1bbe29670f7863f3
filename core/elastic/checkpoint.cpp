// SPDX-License-Identifier: BSD-3-Clause
// Keys of the store, under "checkpoint/" (of a second run "checkpoint of run 2/"): "last" is "<round> <steps>", and
// "<round>/<steps>" what was saved then.
#include <rehearse/elastic/checkpoint.h>

#include <map>
#include <sstream>
#include <string>
#include <utility>

#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/serialize/archive.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <rehearse/job/rank_context.h>

namespace rehearse::elastic {
namespace {

struct Version {
  std::int64_t round = -1;  // none
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

std::string prefix(int run) { return run == 1 ? "checkpoint" : fmt::format("checkpoint of run {}", run); }

std::string layout_of(const at::Tensor& tensor) {
  return fmt::format("{}[{}]", c10::toString(tensor.scalar_type()), fmt::join(tensor.sizes(), ", "));
}

// Module::load() takes tensors of any shape for its own.
void load_module(torch::nn::Module& module, torch::serialize::InputArchive& archive) {
  std::map<std::string, std::string> before;
  const auto for_each = [&](const auto& visit) {
    for (const auto& each : module.named_parameters()) visit(each.key(), layout_of(each.value()));
    for (const auto& each : module.named_buffers()) visit(each.key(), layout_of(each.value()));
  };
  for_each([&](const std::string& name, const std::string& layout) { before[name] = layout; });
  module.load(archive);
  for_each([&](const std::string& name, const std::string& layout) {
    TORCH_CHECK(before[name] == layout, "elastic::Checkpoint::load(): \"", name, "\" is ", before[name],
                " in the module and ", layout, " in the checkpoint, which is of another module");
  });
}

}  // namespace

Checkpoint::Checkpoint(Round& round, torch::nn::Module& module, torch::optim::Optimizer& optimizer,
                       c10::intrusive_ptr<c10d::Store> store)
    : round_(round),
      module_(module),
      optimizer_(optimizer),
      store_(c10::make_intrusive<c10d::PrefixStore>(prefix(round.run()),
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
  return last.steps;
}

void Checkpoint::save(std::int64_t steps_done) {
  if (round_.group().rank() != 0) return;
  const Version version{round_.number(), steps_done};
  store_->set(version.key(), saved(module_, optimizer_));
  for (auto last = store_->compareSet("last", "", "");;) {
    const auto before = version_of(last);
    if (before.round > version.round) {  // this round is over, and the rank has yet to find out
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
