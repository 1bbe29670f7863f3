// SPDX-License-Identifier: BSD-3-Clause
#include "checks/gradients.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <stdexcept>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/where.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/autograd.h>

#include <rehearse_internal/checks/non_finite.h>
#include <rehearse_internal/checks/rank_remarks.h>
#include <rehearse_internal/checks/unwatched.h>
#include <rehearse_internal/formatting/rank_list.h>
#include <rehearse_internal/operators/lone_code.h>
#include <rehearse_internal/operators/seen_operators.h>

#include "checks/uneven_parts.h"
#include "checks/values/gradient_ratio.h"
#include "checks/values/tensor_difference.h"

namespace rehearse::checks {
namespace {

// Saves the buffers and the generator's state, and restores them after the computation.
class Untouched {
 public:
  Untouched(const ModelState& state, at::Generator generator) : generator_(std::move(generator)) {
    const at::NoGradGuard no_grad;
    generator_state_ = generator_.get_state();
    for (const auto& each : state.tensors()) {
      if (each.is_buffer && each.tensor.defined()) buffers_.emplace_back(each.tensor, each.tensor.detach().clone());
    }
  }
  Untouched(const Untouched&) = delete;
  Untouched& operator=(const Untouched&) = delete;
  ~Untouched() {
    const at::NoGradGuard no_grad;
    generator_.set_state(generator_state_);
    for (auto& [buffer, before] : buffers_) buffer.detach().copy_(before);
  }

 private:
  at::Generator generator_;
  at::Tensor generator_state_;
  std::vector<std::pair<at::Tensor, at::Tensor>> buffers_;
};

bool is_trained(const NamedTensor& each) {
  return !each.is_buffer && each.tensor.defined() && each.tensor.is_leaf() && each.tensor.requires_grad();
}

// Parameters with the same diagnosis.
struct Group {
  std::string meaning;
  std::vector<std::string> names;
};

void add(std::vector<Group>& groups, std::string meaning, const std::string& name) {
  const auto same = std::ranges::find_if(groups, [&](const Group& each) { return each.meaning == meaning; });
  if (same != groups.end()) {
    same->names.push_back(name);
  } else {
    groups.push_back({std::move(meaning), {name}});
  }
}

void add_missing(std::vector<Group>& groups, const std::vector<NamedTensor>& wanted,
                 const std::vector<ReplicaTable::Row>& rows) {
  for (const auto& each : wanted) {
    if (std::ranges::none_of(rows, [&](const auto& row) { return row.name == each.name; }))
      add(groups, "that of a parameter that the ranks do not have", each.name);
  }
}

std::string text_of(const Group& group, std::size_t all, std::string_view what) {
  const auto more = group.names.size() - 1;
  const auto who = group.names.size() == all && all > 1 ? fmt::format("all {} {}s are", all, what)
                   : more == 0                          ? fmt::format("the {} of \"{}\" is", what, group.names.front())
                               : fmt::format("the {}s of \"{}\" and {} more are", what, group.names.front(), more);
  return who + " " + group.meaning;
}

// A gradient that differs between ranks.
struct Unreduced {
  std::string meaning;
  bool is_own_part = false;  // the mean or the sum over the ranks would be right
};

Unreduced unreduced(const ReplicaTable::Row& row, const at::Tensor& reference, double scale, double tolerance) {
  at::Tensor sum;
  int ranks = 0;
  for (const auto& version : row.versions) {
    if (!version.copy.defined() || (sum.defined() && sum.sizes() != version.copy.sizes())) {
      return {"not the same on all ranks, and missing on some"};
    }
    const auto part = plain(version.copy).to(at::kDouble) * static_cast<double>(version.ranks.size());
    sum = sum.defined() ? sum + part : part;
    ranks += static_cast<int>(version.ranks.size());
  }
  const auto wanted = reference.defined() ? plain(reference).to(at::kDouble) : reference;
  // A mean is only as exact as the floats it was made from.
  const double error = tolerance != 0 ? tolerance : 1e-3;
  const bool mean = ratio_of(sum / ranks, wanted, scale, error).kind == GradientRatio::Kind::equal;
  const bool whole = ratio_of(sum, wanted, scale, error).kind == GradientRatio::Kind::equal;
  if (mean || whole) {
    return {fmt::format("not reduced: each rank has only its own part ({} of all parts would be right)",
                        mean ? "the mean" : "the sum"),
            true};
  }
  return {"not the same on all ranks, and neither their mean nor their sum is that of one process"};
}

bool is_comparable(const at::Tensor& gradient, const at::Tensor& reference) {
  return gradient.defined() && reference.defined() && gradient.sizes() == reference.sizes() &&
         at::isFloatingType(gradient.scalar_type()) && !has_non_finite(gradient) && !has_non_finite(reference);
}

// Adds each version of a row whose values are made of the ranks' shards. False if it is not, or cannot be compared.
bool add_shards(const ReplicaTable::Row& row, const at::Tensor& reference, std::vector<Sharded>& all) {
  const auto is_whole = [&](const ReplicaTable::Version& version) {
    return !version.shards.empty() && is_comparable(version.copy, reference);
  };
  if (!std::ranges::all_of(row.versions, is_whole)) return false;
  for (const auto& version : row.versions) all.push_back({version.shards, version.copy, reference});
  return true;
}

std::vector<std::string> reduced_again(const std::string& name, const std::vector<std::string>& calls) {
  constexpr std::size_t kMost = 4;  // if there are more reductions, several steps lie between two checks
  if (calls.size() < 2 || calls.size() > kMost) return {};
  return {fmt::format("the gradient of \"{}\" was reduced {} times: {}", name, calls.size(), fmt::join(calls, ", "))};
}

// A gradient that is a multiple of the gradient of one process.
struct Multiple {
  std::string name;
  double ratio;
  at::Tensor gradient;
};

std::string meaning_of(const Multiple& found, int ranks, const Reductions* reductions) {
  const auto parts = reductions != nullptr ? reductions->parts_of(numbers_of(found.gradient)) : std::nullopt;
  const auto reduced = !parts             ? Reduced::unknown
                       : parts->is_bucket ? Reduced::by_ddp
                       : parts->is_mean   ? Reduced::mean
                                          : Reduced::sum;
  return checks::meaning_of({GradientRatio::Kind::multiple, found.ratio}, ranks, reduced);
}

// Any number is a multiple of any other. So the factor of a one-element gradient shows the cause only if a larger
// gradient has the same factor, or if the model has no larger one and all factors agree.
bool tells_why(const Multiple& one, const std::vector<Multiple>& all, const std::vector<ReducedGradient>& gradients) {
  const auto is_large = [](const at::Tensor& gradient) { return gradient.numel() > 1; };
  const auto is_alike = [&](const Multiple& other) {
    return std::abs(other.ratio - one.ratio) <= 1e-2 * std::abs(one.ratio);
  };
  if (is_large(one.gradient)) return true;
  if (std::ranges::any_of(gradients, [&](const auto& each) { return is_large(each.gradient); })) {
    return std::ranges::any_of(all, [&](const Multiple& other) { return is_large(other.gradient) && is_alike(other); });
  }
  return all.size() == gradients.size() && std::ranges::all_of(all, is_alike);
}

StateFinding finding_of(const GradientsRound& round, std::vector<Group> groups, const std::optional<OddRow>& odd,
                        std::vector<int> culprits, std::vector<std::string> details) {
  std::ranges::stable_sort(groups, [](const Group& a, const Group& b) { return a.names.size() > b.names.size(); });
  const auto all = round.shown.table.rows().size();
  const auto what = round.shown.what;
  const auto of = round.name == fmt::format("{}s", what) ? "" : fmt::format(" of \"{}\"", round.name);
  StateFinding finding{fmt::format("{}s{} differ from those of one process in check #{}: {}", what, of, round.number,
                                   text_of(groups.front(), all, what)),
                       std::move(culprits),
                       {}};
  if (odd) {
    finding.ranks = odd->ranks;
    finding.details.push_back(fmt::format("of the {}s {}", what, odd->text));
  }
  for (std::size_t i = 1; i < groups.size(); ++i) finding.details.push_back(text_of(groups[i], all, what));
  std::move(details.begin(), details.end(), std::back_inserter(finding.details));
  return finding;
}

double scale_of(const std::vector<at::Tensor>& reference) {
  double scale = 0;
  for (const auto& each : reference) {
    if (each.defined()) scale = std::max(scale, plain(each).norm().item<double>());
  }
  return scale;
}

at::Tensor wide(const at::Tensor& values) {
  return plain(values).to(values.is_complex() ? at::kComplexDouble : at::kDouble);
}

double largest_in(const at::Tensor& tensor) {
  return tensor.defined() && tensor.numel() > 0 ? wide(tensor).abs().max().item<double>() : 0;
}

// Decides which differences between the ranks' step and that of one process rounding explains.
struct Judge {
  double tolerance = 0;
  double steepest = 0;   // the largest element of the reference's gradients
  bool moves = false;    // the reference has changed
  bool is_seen = false;  // some element has changed by more than its rounding

  // The change from part.before to `value`. An element counts as equal to the reference if rounding explains the
  // difference: an optimizer rounds a parameter up to four times in a step. If a gradient is only the rounding error of
  // terms that cancel, an optimizer such as Adam makes a full step of it.
  at::Tensor change(const ReferencePart& part, const at::Tensor& value) {
    if (value.sizes() != part.before.sizes()) return value;
    const auto before = wide(part.before), after = wide(value), change = after - before;
    const auto type = c10::toRealValueType(value.scalar_type());
    const double epsilon = std::ldexp(1, type == at::kDouble  ? -52
                                         : type == at::kFloat ? -23
                                         : type == at::kHalf  ? -10
                                                              : -7);
    const auto rounding = at::maximum(before.abs(), after.abs()) * (4 * epsilon);
    const double longest = largest_in(part.change);
    moves = moves || longest > 0;
    is_seen = is_seen || part.change.abs().gt(rounding).any().item<bool>();
    auto same = (change - part.change).abs().le(rounding);
    if (part.gradient.defined()) {
      const auto noise = std::max(16 * epsilon, 1e-2 * tolerance) * steepest;
      const auto is_long = part.change.abs().gt(1e-3 * longest).logical_and(change.abs().le(2 * longest));
      same = same.logical_or(wide(part.gradient).abs().le(noise).logical_and(is_long));
    }
    return at::where(same, part.change, change).to(value.scalar_type());
  }
};

}  // namespace

ModelState gradients_of(const ModelState& parameters) {
  std::vector<NamedTensor> gradients;
  for (const auto& each : parameters.tensors()) {
    if (is_trained(each) && !each.rows) gradients.push_back({each.name, each.tensor.grad(), false});
  }
  return gradients;
}

std::vector<at::Tensor> reference_gradients(const ModelState& state, at::Generator generator,
                                            const std::function<at::Tensor()>& loss) {
  const Untouched untouched(state, std::move(generator));
  const operators::UnseenOperators unseen;
  const at::AutoGradMode with_grad(true);
  std::vector<at::Tensor> parameters;
  for (const auto& each : state.tensors()) {
    if (is_trained(each)) parameters.push_back(each.tensor);
  }
  const operators::LoneCode lone("the function given to RankContext::check_gradients()");
  const auto value = loss();
  if (!value.defined() || value.numel() != 1 || !value.requires_grad()) {
    throw std::invalid_argument(
        "RankContext::check_gradients() was given a function whose result is no loss: it must return a tensor of one "
        "element, computed from the model's parameters");
  }
  if (parameters.empty()) return {};
  return torch::autograd::grad({value}, parameters, /*grad_outputs=*/{}, /*retain_graph=*/false, /*create_graph=*/false,
                               /*allow_unused=*/true);
}

std::optional<StateFinding> evaluate(const GradientsRound& round, const ModelState& own,
                                     const std::vector<at::Tensor>& reference, double tolerance,
                                     const Reductions* reductions) {
  const auto& wanted = own.tensors();
  const auto& rows = round.shown.table.rows();
  const auto scale = scale_of(reference);
  const auto ranks = static_cast<int>(round.of.size());
  std::vector<Group> groups;
  std::optional<OddRow> odd;  // the first row that differs between ranks
  std::vector<ReducedGradient> reduced;
  std::vector<Multiple> multiples;
  std::vector<Sharded> sharded;
  std::vector<int> culprits;
  std::vector<std::string> no_multiples, details;
  for (const auto& row : rows) {
    const auto found = std::ranges::find_if(wanted, [&](const NamedTensor& each) { return each.name == row.name; });
    if (found == wanted.end()) {
      add(groups, "that of a parameter that not all ranks have", row.name);
      continue;
    }
    const auto& right = reference[static_cast<std::size_t>(found - wanted.begin())];
    if (row.versions.size() > 1) {
      const auto [meaning, is_own_part] = unreduced(row, right, scale, tolerance);
      if (!is_own_part && add_shards(row, right, sharded)) {
        no_multiples.push_back(row.name);
        continue;
      }
      add(groups, meaning, row.name);
      if (!odd && row.versions.front().shards.empty()) odd = odd_of(row, round.here);
      continue;
    }
    const auto& gradient = row.versions.front().copy;
    const auto ratio = ratio_of(gradient, right, scale, tolerance);
    if (is_comparable(gradient, right)) reduced.push_back({numbers_of(gradient), numbers_of(right)});
    add_shards(row, right, sharded);
    if (ratio.kind == GradientRatio::Kind::no_multiple) {
      no_multiples.push_back(row.name);
      continue;
    }
    if (ratio.kind == GradientRatio::Kind::equal) continue;
    ratio.kind == GradientRatio::Kind::multiple ? multiples.push_back({row.name, ratio.ratio, gradient})
                                                : add(groups, meaning_of(ratio, ranks), row.name);
    if (reductions != nullptr && details.empty())
      details = reduced_again(row.name, reductions->calls_on(round.here.back(), found->tensor));
  }
  add_missing(groups, wanted, rows);
  if (const auto differ = no_multiples.empty() ? std::nullopt : ranks_that_differ(sharded, scale, tolerance)) {
    for (const auto& each : std::exchange(multiples, {})) no_multiples.push_back(each.name);
    for (const auto& name : std::exchange(no_multiples, {})) add(groups, differ->meaning, name);
    culprits = differ->ranks;
  }
  for (const auto& each : multiples) {
    if (tells_why(each, multiples, reduced)) {
      add(groups, meaning_of(each, ranks, reductions), each.name);
    } else if (!no_multiples.empty()) {
      no_multiples.push_back(each.name);
    } else {
      add(groups, fmt::format("{:.6g} times as large: a single element does not tell why", each.ratio), each.name);
    }
  }
  if (!no_multiples.empty()) {
    auto meaning = meaning_of({GradientRatio::Kind::no_multiple, 0}, ranks);
    const auto uneven = reductions != nullptr ? uneven_parts(reduced, *reductions, tolerance) : std::nullopt;
    if (uneven) {
      meaning = "no multiple of what one process computes: " + uneven->what;
      details.push_back(uneven->cure);
    }
    for (const auto& name : no_multiples) add(groups, meaning, name);
  }
  if (groups.empty()) return std::nullopt;
  return finding_of(round, std::move(groups), odd, std::move(culprits), std::move(details));
}

std::vector<ReferencePart> reference_step(const ModelState& reference, at::Generator generator,
                                          const std::function<void()>& step) {
  std::vector<ReferencePart> parts;
  for (const auto& each : reference.tensors()) parts.push_back({each.name, copied(each.tensor), {}, {}});
  {
    const Untouched untouched({}, std::move(generator));
    const operators::UnseenOperators unseen;
    const at::AutoGradMode with_grad(true);
    const operators::LoneCode lone("the function given to RankContext::check_step()");
    step();
  }
  const Unwatched own;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& after = reference.tensors()[i].tensor;
    parts[i].change = wide(after) - wide(parts[i].before);
    parts[i].gradient = copied(after.grad());
  }
  return parts;
}

std::optional<StateFinding> evaluate(const StepRound& round) {
  if (!round.is_full()) return std::nullopt;
  const auto& shown = round.shown;
  GradientsRound changes{.key = round.key,
                         .name = round.name,
                         .number = round.number,
                         .of = round.of,
                         .here = round.here,
                         .needs_all = true,
                         .shown = {shown.table, {}, "step"}};
  auto& rows = changes.shown.table.rows();
  std::erase_if(rows, [](const auto& row) { return row.is_part; });  // the table has their wholes, too
  Judge judge{shown.tolerance};
  for (const auto& part : shown.reference) judge.steepest = std::max(judge.steepest, largest_in(part.gradient));
  std::vector<NamedTensor> names;
  std::vector<at::Tensor> reference;
  for (const auto& part : shown.reference) {
    names.push_back({part.name, {}});
    reference.push_back(part.change.to(part.before.scalar_type()));
    for (auto& row : rows) {
      if (row.name != part.name) continue;
      for (auto& version : row.versions) version.copy = judge.change(part, version.copy);
    }
  }
  if (auto* const remarks = rank_remarks(); remarks != nullptr && judge.moves && !judge.is_seen) {
    remarks->remark(round.of.front(), fmt::format("check \"{}\" sees nothing of a step that is smaller than four "
                                                  "roundings of the parameters. Train in double",
                                                  round.name));
  }
  return evaluate(changes, names, reference, shown.tolerance, nullptr);
}

}  // namespace rehearse::checks
