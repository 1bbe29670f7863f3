// SPDX-License-Identifier: BSD-3-Clause
#include "compile/segments/segment_run.h"

#include <algorithm>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse/compile/errors.h>
#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/exec/failure.h>
#include <rehearse_internal/operators/storage_of.h>

#include "compile/guards/global_state.h"

namespace rehearse::compiler {
namespace {

std::string key_of_tensor(const at::Tensor& tensor) {
  if (!tensor.defined()) return "no tensor";
  return fmt::format("{}[{}] strides [{}] on {}{}", c10::toString(tensor.scalar_type()),
                     fmt::join(tensor.sizes(), ", "), fmt::join(tensor.strides(), ", "), tensor.device().str(),
                     tensor.requires_grad() ? ", requires grad" : "");
}

// The keys identify branches, also in messages. The key of a number that was read is its value, exact for floats.
std::string key_of(const c10::IValue& number) {
  if (number.isBool()) return number.toBool() ? "true" : "false";
  if (number.isInt()) return std::to_string(number.toInt());
  if (number.isDouble()) return fmt::format("{}", number.toDouble());
  if (number.isComplexDouble()) {
    const c10::complex<double> complex = number.toComplexDouble();
    return fmt::format("{} + {}i", complex.real(), complex.imag());
  }
  throw std::logic_error("a read gave a " + number.tagKind());
}

// The key of a region's result consists of its numbers, and of dtype, device, sizes, strides and requires_grad of its
// tensors.
std::string key_of(capture::RegionResult& result) {
  std::string key = result.constants();
  for (const at::Tensor& tensor : result.tensors()) key += (key.empty() ? "" : "; ") + key_of_tensor(tensor);
  return key;
}

struct Nature {  // the properties of a tensor that later segments expect not to change
  bool requires_grad;
  c10::ScalarType dtype;
  std::vector<std::int64_t> sizes, strides;
  bool operator==(const Nature&) const = default;
};

Nature nature_of(const at::Tensor& tensor) {
  return {tensor.requires_grad(), tensor.scalar_type(), tensor.sizes().vec(), tensor.strides().vec()};
}

bool share_memory(const std::vector<at::Tensor>& arguments, const std::vector<at::Tensor>& results) {
  std::set<const c10::StorageImpl*> seen;
  for (const at::Tensor& argument : arguments) seen.insert(operators::storage_of(argument));
  return std::ranges::any_of(results, [&](const at::Tensor& result) {
    return result.defined() && !seen.insert(operators::storage_of(result)).second;
  });
}

}  // namespace

Step* find_step(const std::vector<Branch>& branches, const std::string& key) {
  for (const Branch& branch : branches) {
    if (branch.key == key && branch.next->segment.run) return branch.next.get();
  }
  return nullptr;
}

bool has_branch(const Step& step, const std::string& key) {
  return std::ranges::any_of(step.branches, [&](const auto& branch) { return branch.key == key; });
}

SegmentRun::SegmentRun(const LeafList& leaves) : leaves_(leaves), sizes_(leaves.size()) {
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].kind != LeafKind::Tensor || leaves[i].tensor->is_nested()) continue;
    sizes_[i] = leaves[i].tensor->sizes().vec();
  }
}

bool SegmentRun::changed_sizes() const {
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    if (leaves_[i].kind != LeafKind::Tensor || leaves_[i].tensor->is_nested()) continue;
    if (leaves_[i].tensor->sizes() != at::IntArrayRef(sizes_[i])) return true;
  }
  return false;
}

c10::IValue SegmentRun::value(const InputBinding& input) const {
  if (input.kind == InputBinding::Kind::Size) return sizes_[input.index].at(static_cast<std::size_t>(input.dimension));
  return value_of(input, leaves_, values_);
}

std::int64_t SegmentRun::tensors_before(std::size_t count) const {
  const auto end = values_.begin() + static_cast<std::ptrdiff_t>(std::min(count, values_.size()));
  return std::count_if(values_.begin(), end, [](const c10::IValue& value) { return value.isTensor(); });
}

void SegmentRun::run_segment(const BoundGraph& segment) {
  for (c10::IValue& result : run(segment)) values_.push_back(std::move(result));
}

std::vector<c10::IValue> SegmentRun::run(const BoundGraph& graph) {
  std::vector<c10::IValue> inputs;
  for (const InputBinding& input : graph.inputs) inputs.push_back(value(input));
  std::vector<std::pair<at::Tensor, bool>> required;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (graph.inputs[i].kind == InputBinding::Kind::Value || !inputs[i].isTensor()) continue;
    required.emplace_back(inputs[i].toTensor(), inputs[i].toTensor().requires_grad());
  }
  graph.border.fit(inputs);
  std::vector<c10::IValue> results = graph.run(std::move(inputs));
  for (const auto& [tensor, before] : required) changed_inputs_ = changed_inputs_ || tensor.requires_grad() != before;
  return results;
}

void SegmentRun::run_step(Step& step, const BoundGraph& segment, Agreement& agreement) {
  try {
    run_segment(segment);
    run_end(step);
  } catch (const RankAborted&) {
    throw;
  } catch (...) {
    if (agreement.has_guard_collectives() && !std::exchange(all_run_eagerly_, true)) {
      agreement.compare(Ability::run_eagerly);
    }
    throw;
  }
}

void SegmentRun::run_end(Step& step) {
  REHEARSE_CHECK(step.read.has_value() != (step.region != nullptr), passed_.size());
  if (step.region) return run_region(step);
  std::vector<c10::IValue> read = run(*step.read);
  std::string key = key_of(read.front());
  passed_.push_back({&step, std::move(read), nullptr, std::move(key)});
}

void SegmentRun::compare_next(Agreement& agreement, const std::function<bool(const PassedStep&)>& may_compile) {
  if (!agreement.has_guard_collectives() || all_run_eagerly_) return;
  REHEARSE_CHECK(!passed_.empty(), values_.size());
  PassedStep& last = passed_.back();
  Ability own = Ability::serve;
  if (entangled_) {
    own = Ability::run_eagerly;
  } else if (find_step(last.step->branches, last.key) == nullptr) {
    own = may_compile(last) ? Ability::compile : Ability::run_eagerly;
  }
  const Ability all = agreement.compare(own);
  last.all_compile = all == Ability::compile;
  all_run_eagerly_ = all == Ability::run_eagerly;
}

void SegmentRun::owe_comparison(const Agreement& agreement) {
  owes_comparison_ = agreement.has_guard_collectives() && !all_run_eagerly_;
}

Ability SegmentRun::compare_owed(Agreement& agreement, Ability own) {
  REHEARSE_CHECK(owes_comparison_, passed_.size());
  owes_comparison_ = false;
  const Ability all = agreement.compare(own);
  all_run_eagerly_ = all == Ability::run_eagerly;
  return all;
}

Step* SegmentRun::next(const SegmentTree& tree) const {
  if (passed_.empty()) return find_step(tree.roots, "");
  const PassedStep& last = passed_.back();
  return last.all_compile ? nullptr : find_step(last.step->branches, last.key);
}

namespace {

// The code behind the region has been captured, or will be, with the modes in front of it.
void refuse_change(const SavedState& before, const capture::EagerRegion& region) {
  const std::optional<GuardFailure> changed = before.change();
  if (!changed) return;
  throw CompileError(
      fmt::format("{} changes {} from {} to {} and leaves it so. Change it back in the region, or change "
                  "it outside of the compiled function",
                  region.title(), changed->source, changed->expected, changed->found));
}

}  // namespace

void SegmentRun::run_region(Step& step) {
  std::vector<at::Tensor> arguments;
  std::vector<Nature> before;
  for (const InputBinding& input : step.region_inputs) {
    arguments.push_back(value(input).toTensor());
    before.push_back(nature_of(arguments.back()));
  }
  PassedStep passed{.step = &step, .values = {}, .result = nullptr, .key = {}};
  {
    const at::AutoGradMode grad_mode(step.region_grad_enabled);
    const SavedState modes;
    passed.result = step.region->run(arguments);
    refuse_change(modes, *step.region);
  }
  const std::vector<at::Tensor> results = passed.result->tensors();
  entangled_ = entangled_ || passed.result->must_end() || share_memory(arguments, results);
  for (std::size_t i = 0; i < arguments.size(); ++i) entangled_ = entangled_ || !(nature_of(arguments[i]) == before[i]);
  passed.key = key_of(*passed.result);
  for (const at::Tensor& result : results) {
    passed.values.emplace_back(result);
    values_.emplace_back(result);
  }
  passed_.push_back(std::move(passed));
}

}  // namespace rehearse::compiler
