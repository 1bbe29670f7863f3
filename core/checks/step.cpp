// SPDX-License-Identifier: BSD-3-Clause
// How the ranks' step is compared with that of one process.
#include <algorithm>
#include <cmath>

#include <ATen/ops/maximum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <rehearse_internal/checks/rank_remarks.h>

#include "checks/gradients.h"
#include "checks/values/tensor_difference.h"

namespace rehearse::checks {
namespace {

double largest_in(const at::Tensor& tensor) {
  return tensor.defined() && tensor.numel() > 0 ? wide(tensor).abs().max().item<double>() : 0;
}

// What rounding may do to the ranks' step and to that of one process.
struct Judge {
  double tolerance = 0;
  double steepest = 0;   // the largest element of the reference's gradients
  bool moves = false;    // the reference has changed
  bool is_seen = false;  // some element has changed by more than its rounding

  // Puts the changes from part.before in the place of the values. An optimizer rounds a parameter up to four times in a
  // step. If a gradient is only the rounding error of terms that cancel, an optimizer such as Adam makes a full step of
  // it: such elements are not compared.
  at::Tensor rounding_of(const ReferencePart& part, const std::vector<at::Tensor*>& values) {
    const auto before = wide(part.before);
    auto largest = at::maximum(before.abs(), (before + part.change).abs());
    const double longest = largest_in(part.change);
    auto is_noise = at::zeros(before.sizes(), at::kBool);
    const auto type = c10::toRealValueType(part.before.scalar_type());
    const double epsilon = std::ldexp(1, type == at::kDouble  ? -52
                                         : type == at::kFloat ? -23
                                         : type == at::kHalf  ? -10
                                                              : -7);
    if (part.gradient.defined()) {
      const auto noise = std::max(16 * epsilon, 1e-2 * tolerance) * steepest;
      is_noise = wide(part.gradient).abs().le(noise).logical_and(part.change.abs().gt(1e-3 * longest));
    }
    for (auto* const value : values) {
      if (value->sizes() != before.sizes()) continue;
      const auto after = wide(*value), change = after - before;
      largest = at::maximum(largest, after.abs());
      is_noise = is_noise.logical_and(change.abs().le(2 * longest));
      *value = change.to(value->scalar_type());
    }
    const auto rounding = largest * (4 * epsilon);
    moves = moves || longest > 0;
    is_seen = is_seen || part.change.abs().gt(rounding).any().item<bool>();
    return at::where(is_noise, 1e9 * longest, rounding);
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
  std::vector<Right> reference;
  for (const auto& part : shown.reference) {
    std::vector<at::Tensor*> values;
    for (auto& row : rows) {
      if (row.name != part.name) continue;
      for (auto& version : row.versions) values.push_back(&version.copy);
    }
    names.push_back({part.name, {}});
    reference.push_back({part.change.to(part.before.scalar_type()), judge.rounding_of(part, values)});
  }
  if (auto* const remarks = rank_remarks(); remarks != nullptr && judge.moves && !judge.is_seen) {
    remarks->remark(round.of.front(), fmt::format("check \"{}\" sees nothing of a step that is smaller than four "
                                                  "roundings of the parameters. Train in double",
                                                  round.name));
  }
  return evaluate(changes, names, reference, shown.tolerance, nullptr);
}

}  // namespace rehearse::checks
