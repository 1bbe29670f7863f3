// SPDX-License-Identifier: BSD-3-Clause
#include "python/module/checks.h"

#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <pybind11/functional.h>

#include <rehearse/checks/check_options.h>
#include <rehearse/checks/model_state.h>
#include <rehearse_internal/checks/world_checks.h>

#include "python/module/rank.h"

namespace rehearse::python {
namespace {

namespace py = pybind11;
using WithoutLock = py::call_guard<py::gil_scoped_release>;

using Rows = std::optional<std::pair<std::vector<std::int64_t>, std::int64_t>>;
using State = std::vector<std::tuple<std::string, at::Tensor, bool, Rows>>;

checks::ModelState state_of(const State& state) {
  std::vector<checks::NamedTensor> tensors;
  for (const auto& [name, tensor, is_buffer, rows] : state) {
    tensors.push_back({name, tensor, is_buffer});
    if (rows) tensors.back().rows = {rows->first, rows->second};
  }
  return tensors;
}

std::vector<checks::ModelState> states_of(const std::vector<State>& parts) {
  std::vector<checks::ModelState> states;
  for (const auto& part : parts) states.push_back(state_of(part));
  return states;
}

checks::CheckOptions options_of(std::string name, std::vector<int> ranks, double tolerance) {
  return {.name = std::move(name), .ranks = std::move(ranks), .buffers = true, .tolerance = tolerance};
}

bool compares_replicas() {
  const auto* const checks = checks::world_checks();
  return checks != nullptr && checks->automatic().compares_replicas();
}

// What a model of torch's has at a forward, or at its end.
void show_replicas(const std::string& model, const std::vector<int>& ranks, const State& shown, bool at_end) {
  static const std::vector<std::string> none_ignored;
  const checks::WorldChecks::Forward forward{none_ignored, false, ranks, model, 0};
  auto& checks = *checks::world_checks();
  const auto state = state_of(shown);
  at_end ? checks.at_sharded_end(rank_or_host(), state, forward)
         : checks.at_sharded_forward(rank_or_host(), state, forward, true);
}

}  // namespace

void define_checks(py::module_& module) {
  module.def("compares_replicas", compares_replicas);
  module.def("show_replicas", show_replicas, WithoutLock());
  module.def(
      "check_replicas",
      [](const State& model, std::string name, std::vector<int> ranks) {
        context_of_rank().check_replicas(state_of(model), options_of(std::move(name), std::move(ranks), 0));
      },
      WithoutLock());
  module.def(
      "check_gradients",
      [](const State& model, const std::function<at::Tensor()>& loss_of_all, std::string name, std::vector<int> ranks,
         double tolerance) {
        context_of_rank().check_gradients(state_of(model), loss_of_all,
                                          options_of(std::move(name), std::move(ranks), tolerance));
      },
      WithoutLock());
  module.def(
      "check_step",
      [](const State& model, const State& reference, const std::function<void()>& step_of_one, std::string name,
         std::vector<int> ranks, double tolerance) {
        auto options = options_of(std::move(name), std::move(ranks), tolerance);
        options.buffers = std::nullopt;
        context_of_rank().check_step(state_of(model), state_of(reference), step_of_one, options);
      },
      WithoutLock());
  module.def(
      "check_finite",
      [](const State& model, std::string name) {
        auto options = options_of(std::move(name), {}, 0);
        options.buffers = std::nullopt;
        context_of_rank().check_finite(state_of(model), options);
      },
      WithoutLock());
  module.def(
      "saved_record", [](const std::vector<State>& parts) { return context_of_rank().saved_record(states_of(parts)); },
      WithoutLock());
  module.def(
      "check_saved",
      [](const std::vector<std::string>& records, const std::vector<State>& parts) {
        context_of_rank().check_saved(records, states_of(parts));
      },
      WithoutLock());
}

}  // namespace rehearse::python
