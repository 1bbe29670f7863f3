// SPDX-License-Identifier: BSD-3-Clause
#include "compile/partitions/output_fit.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse/compile/errors.h>

#include "compile/partitions/layout_fit.h"
#include "compile/partitions/layout_use.h"

namespace rehearse::compiler {
namespace {

[[noreturn]] void throw_mismatch(const GraphOfBackend& whose, std::size_t output, const std::string& says,
                                 const std::string& but) {
  throw BackendMismatch(
      fmt::format("the back end '{}' {} of output {} of graph {}, {}", whose.backend, says, output, whose.graph, but));
}

constexpr const char* kMustStay =
    "which must lie as the graph's operators give it, because it shares memory with an argument or another output, or "
    "begins where only the data tell (BackendInput::fixed_layouts)";

class OutputFit {
 public:
  OutputFit(CompiledGraph::Run run, const graph::GraphModule& module, std::size_t outputs, GraphOfBackend whose)
      : run_(std::move(run)),
        whose_(std::move(whose)),
        symbols_(symbols_of(module)),
        inputs_(module.graph().placeholders().size()),
        outputs_(outputs) {}

  void add_check(std::size_t output, const graph::TensorMeta& stated) {
    checks_.push_back({output, stated});
    needs_values_ = true;
    need(stated);
  }
  void add_restore(std::size_t output, const graph::TensorMeta& recorded, bool is_fixed) {
    const PlaceInMemory place = place_of(recorded, symbols_, {});
    restores_.push_back({output, recorded, is_fixed, place.is_known() ? std::optional(place) : std::nullopt});
    needs_values_ = needs_values_ || !place.is_known();
    need(recorded);
  }
  bool is_needed() const { return !checks_.empty() || !restores_.empty(); }

  std::vector<c10::IValue> run(std::vector<c10::IValue>&& inputs) const {
    std::vector<c10::IValue> values;
    if (needs_values_) {
      values.reserve(inputs_ + outputs_);
      values.resize(inputs_);
      for (const std::size_t input : needed_inputs_) values[input] = inputs[input];
    }
    std::vector<c10::IValue> outputs = run_(std::move(inputs));
    if (outputs.size() != outputs_) {
      throw BackendMismatch(fmt::format("the back end '{}' gives {} outputs of graph {}, which has {}", whose_.backend,
                                        outputs.size(), whose_.graph, outputs_));
    }
    if (needs_values_) values.insert(values.end(), outputs.begin(), outputs.end());
    for (const Layout& each : checks_) check(each, values);
    for (const Layout& each : restores_) {
      if (each.constant) {
        restore(each, *each.constant, outputs[each.output]);
      } else {
        restore(each, place_of(each.meta, symbols_, values), outputs[each.output]);
      }
    }
    return outputs;
  }

 private:
  struct Layout {
    std::size_t output = 0;
    graph::TensorMeta meta;
    bool is_fixed = false;
    std::optional<PlaceInMemory> constant = {};  // nothing: the layout depends on symbols
  };

  void need(const graph::TensorMeta& meta) {
    for (const std::size_t input : symbols_.inputs_for(meta)) {
      if (input < inputs_) needed_inputs_.insert(input);
    }
  }

  void check(const Layout& stated, const std::vector<c10::IValue>& values) const {
    const c10::IValue& value = values[inputs_ + stated.output];
    if (!value.isTensor() || !value.toTensor().defined()) {
      throw_mismatch(whose_, stated.output, "states a tensor", "and gives none");
    }
    const at::Tensor& tensor = value.toTensor();
    if (tensor.scalar_type() != stated.meta.dtype) {
      throw_mismatch(whose_, stated.output, std::string("states ") + c10::toString(stated.meta.dtype),
                     std::string("and gives ") + c10::toString(tensor.scalar_type()));
    }
    const at::IntArrayRef sizes = tensor.sizes();
    if (!symbols_.fit(stated.meta.sizes, sizes, values)) {
      throw_mismatch(whose_, stated.output, "states sizes " + text_of(stated.meta.sizes),
                     fmt::format("and gives [{}]", fmt::join(sizes, ", ")));
    }
    const PlaceInMemory place = place_of(stated.meta, symbols_, values);
    if (lies_at(tensor, place)) return;
    throw_mismatch(whose_, stated.output, "states " + text_of(place),
                   "and gives " + text_of(place_of(tensor)) +
                       ": what is compiled for the statement would copy it in each call. State what is true in "
                       "CompiledGraph::outputs, or nothing");
  }

  void restore(const Layout& recorded, const PlaceInMemory& place, c10::IValue& output) const {
    if (!output.isTensor() || !output.toTensor().defined()) return;
    const at::Tensor& tensor = output.toTensor();
    if (tensor.sizes().size() != recorded.meta.sizes.size()) return;
    const bool is_there = lies_at(tensor, place);
    if (!is_there && (recorded.is_fixed || !place.is_known())) {
      throw_mismatch(whose_, recorded.output, "gives " + text_of(place_of(tensor)),
                     fmt::format("which has {}, and {}", text_of(place), kMustStay));
    }
    // Copy the output even if no element shows the difference (an empty tensor, or a dimension with one element),
    // because code can see strides and offset, too.
    const bool is_equal = tensor.strides() == at::IntArrayRef(place.strides) && tensor.storage_offset() == place.offset;
    if (is_there && (recorded.is_fixed || !place.is_known() || is_equal)) return;
    output = copy_to(place, at::Tensor(tensor));
  }

  CompiledGraph::Run run_;
  GraphOfBackend whose_;
  SymbolSources symbols_;
  std::size_t inputs_ = 0, outputs_ = 0;
  std::set<std::size_t> needed_inputs_;  // only these are kept during the run
  bool needs_values_ = false;
  std::vector<Layout> checks_, restores_;
};

}  // namespace

void check_statement(const std::vector<graph::ValueMeta>& stated, const std::vector<graph::ValueMeta>& given,
                     const std::vector<OutputRole>& roles, const GraphOfBackend& whose) {
  if (stated.size() != given.size()) {
    throw BackendMismatch(fmt::format("the back end '{}' states {} outputs of graph {}, which has {}", whose.backend,
                                      stated.size(), whose.graph, given.size()));
  }
  for (std::size_t i = 0; i < stated.size(); ++i) {
    const graph::TensorMeta *says = stated[i].tensor(), *is = given[i].tensor();
    if (says == nullptr || is == nullptr) continue;
    if (says->dtype != is->dtype) {
      throw_mismatch(whose, i, std::string("states ") + c10::toString(says->dtype),
                     std::string("which is ") + c10::toString(is->dtype));
    }
    if (says->sizes != is->sizes || says->strides.size() != is->strides.size()) {
      throw_mismatch(whose, i,
                     fmt::format("states sizes {} and strides {}", text_of(says->sizes), text_of(says->strides)),
                     "which has sizes " + text_of(is->sizes));
    }
    if (roles[i].is_fixed && !same_layout(*says, *is)) {
      throw_mismatch(whose, i, "states strides " + text_of(says->strides), kMustStay);
    }
  }
}

CompiledGraph::Run fitted(const CompiledGraph& compiled, const graph::GraphModule& module,
                          const std::vector<graph::ValueMeta>& stated, const std::vector<OutputRole>& roles,
                          const GraphOfBackend& whose, bool checks) {
  const std::vector<graph::ValueMeta> recorded = recorded_outputs(module);
  const auto fit = std::make_shared<OutputFit>(compiled.run, module, recorded.size(), whose);
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    const graph::TensorMeta *is = recorded[i].tensor(), *says = stated[i].tensor();
    if (is == nullptr) continue;
    if (checks && says != nullptr) fit->add_check(i, *says);
    const bool may_differ =
        !compiled.outputs || (says != nullptr && !(says->strides == is->strides && same_layout(*says, *is)));
    if (may_differ && (roles[i].is_restored || roles[i].is_fixed)) fit->add_restore(i, *is, roles[i].is_fixed);
  }
  if (!fit->is_needed()) return compiled.run;
  return [fit](std::vector<c10::IValue>&& inputs) { return fit->run(std::move(inputs)); };
}

}  // namespace rehearse::compiler
