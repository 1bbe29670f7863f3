// SPDX-License-Identifier: BSD-3-Clause
// How the ranks' step is compared with that of one process.
#include <algorithm>
#include <cmath>

#include <ATen/ops/maximum.h>
#include <ATen/ops/where.h>
#include <fmt/format.h>

#include <rehearse_internal/checks/rank_remarks.h>

#include "checks/gradients.h"
#include "checks/values/tensor_difference.h"

namespace rehearse::checks {
namespace {

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
