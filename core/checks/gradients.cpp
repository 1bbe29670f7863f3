// SPDX-License-Identifier: BSD-3-Clause
#include "checks/gradients.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse_internal/checks/non_finite.h>

#include "checks/uneven_parts.h"
#include "checks/values/gradient_ratio.h"
#include "checks/values/tensor_difference.h"

namespace rehearse::checks {
namespace {

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

constexpr const char* kNotTheSame =
    "not the same on all ranks, and neither their mean nor their sum is that of one process";

Unreduced unreduced(const ReplicaTable::Row& row, const Right& right, double scale, double tolerance) {
  const auto& [reference, rounding] = right;
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
  const auto is_right = [&](const auto& version) {
    return ratio_of(version.copy, reference, scale, tolerance, rounding).kind == GradientRatio::Kind::equal;
  };
  // If some ranks have what one process has, the others' wrong values may happen to cancel.
  if (std::ranges::any_of(row.versions, is_right)) return {kNotTheSame};
  const auto wanted = reference.defined() ? plain(reference).to(at::kDouble) : reference;
  // A mean is only as exact as the floats it was made from.
  const double error = tolerance != 0 ? tolerance : 1e-3;
  const bool mean = ratio_of(sum / ranks, wanted, scale, error, rounding).kind == GradientRatio::Kind::equal;
  const bool whole = ratio_of(sum, wanted, scale, error, rounding).kind == GradientRatio::Kind::equal;
  if (mean || whole) {
    return {fmt::format("not reduced, or only in part: each rank has a part of its own ({} of all would be right)",
                        mean ? "the mean" : "the sum"),
            true};
  }
  return {kNotTheSame};
}

bool is_comparable(const at::Tensor& gradient, const at::Tensor& reference) {
  return gradient.defined() && reference.defined() && gradient.sizes() == reference.sizes() &&
         at::isFloatingType(gradient.scalar_type()) && !has_non_finite(gradient) && !has_non_finite(reference);
}

bool is_of_shards(const ReplicaTable::Row& row) { return !row.versions.front().shards.empty(); }

// Adds what each rank has of the row. False if it cannot be compared.
bool add_parts(const ReplicaTable::Row& row, const Right& right, std::vector<PartOfRank>& parts) {
  const auto& [reference, rounding] = right;
  const auto is_whole = [&](const auto& version) { return is_comparable(version.copy, reference); };
  if (!std::ranges::all_of(row.versions, is_whole)) return false;
  const auto part = [](int rank, const at::Tensor& copy, const at::Tensor& wanted, const at::Tensor& bounds) {
    return PartOfRank{rank, numbers_of(copy), numbers_of(wanted), numbers_of_bounds(bounds, copy)};
  };
  for (const auto& version : row.versions) {
    for (const auto& [rank, first, rows] : version.shards) {
      parts.push_back(part(rank, version.copy.narrow(0, first, rows), reference.narrow(0, first, rows),
                           rounding.defined() ? rounding.narrow(0, first, rows) : rounding));
    }
    if (!version.shards.empty()) continue;
    auto whole = part(0, version.copy, reference, rounding);
    for (const int rank : version.ranks) {
      whole.rank = rank;
      parts.push_back(whole);
    }
  }
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
  GradientRatio ratio;
  at::Tensor gradient;
};

std::string meaning_of(const Multiple& found, int ranks, const Reductions* reductions) {
  const auto parts = reductions != nullptr ? reductions->parts_of(numbers_of(found.gradient)) : std::nullopt;
  const auto reduced = !parts             ? Reduced::unknown
                       : parts->is_bucket ? Reduced::by_ddp
                       : parts->is_mean   ? Reduced::mean
                                          : Reduced::sum;
  return checks::meaning_of(found.ratio, ranks, reduced);
}

// Any number is a multiple of any other. So the factor of a one-element gradient shows the cause only if a larger
// gradient has the same factor, or if the model has no larger one and all factors agree.
bool tells_why(const Multiple& one, const std::vector<Multiple>& all, const std::vector<ReducedGradient>& gradients) {
  const auto is_large = [](const at::Tensor& gradient) { return gradient.numel() > 1; };
  const auto is_alike = [&](const Multiple& other) {
    return std::abs(other.ratio.ratio - one.ratio.ratio) <= 1e-2 * std::abs(one.ratio.ratio);
  };
  if (is_large(one.gradient)) return true;
  if (std::ranges::any_of(gradients, [&](const auto& each) { return is_large(each.gradient); })) {
    return std::ranges::any_of(all, [&](const Multiple& other) { return is_large(other.gradient) && is_alike(other); });
  }
  return all.size() == gradients.size() && std::ranges::all_of(all, is_alike);
}

// Compares the rows of a table one by one, and says in the end what is wrong with them, with as few causes as possible.
class Comparison {
 public:
  Comparison(const GradientsRound& round, double scale, double tolerance, const Reductions* reductions)
      : round_(round), scale_(scale), tolerance_(tolerance), reductions_(reductions) {}

  void add_unknown(const std::string& name) { group("that of a parameter that not all ranks have", name); }
  void add_missing(const std::string& name) { group("that of a parameter that the ranks do not have", name); }

  void add(const ReplicaTable::Row& row, const NamedTensor& tensor, const Right& right) {
    if (!are_alike(row, right)) return add_unlike(row, right);
    const auto& gradient = row.versions.front().copy;
    const auto ratio = ratio_of(gradient, right.value, scale_, tolerance_, right.rounding);
    if (is_comparable(gradient, right.value)) reduced_.push_back({numbers_of(gradient), numbers_of(right.value)});
    if (is_of_shards(row)) are_rows_ = add_parts(row, right, parts_) || are_rows_;
    if (ratio.kind == GradientRatio::Kind::equal) return;
    if (ratio.kind == GradientRatio::Kind::no_multiple) return no_multiples_.push_back(row.name);
    if (ratio.kind == GradientRatio::Kind::multiple) {
      const auto same =
          std::ranges::find_if(multiples_, [&](const auto& each) { return may_be_one(each.ratio, ratio); });
      multiples_.push_back({row.name, same == multiples_.end() ? ratio : same->ratio, gradient});
    } else {
      group(checks::meaning_of(ratio, ranks()), row.name);
    }
    if (reductions_ != nullptr && again_.empty())
      again_ = reduced_again(row.name, reductions_->calls_on(round_.here.back(), tensor.tensor));
  }

  // nullopt: nothing is wrong.
  std::optional<StateFinding> finding() {
    blame_ranks();
    explain_multiples();
    explain_others();
    if (groups_.empty()) return std::nullopt;
    std::ranges::stable_sort(groups_, [](const Group& a, const Group& b) { return a.names.size() > b.names.size(); });
    const auto all = round_.shown.table.rows().size();
    const auto what = round_.shown.what;
    const auto of = round_.name == fmt::format("{}s", what) ? "" : fmt::format(" of \"{}\"", round_.name);
    StateFinding finding{fmt::format("{}s{} differ from those of one process in check #{}: {}", what, of, round_.number,
                                     text_of(groups_.front(), all, what)),
                         std::move(culprits_),
                         {}};
    if (odd_) {
      if (finding.ranks.empty()) finding.ranks = odd_->ranks;
      finding.details.push_back(fmt::format("of the {}s {}", what, odd_->text));
    }
    for (std::size_t i = 1; i < groups_.size(); ++i) finding.details.push_back(text_of(groups_[i], all, what));
    for (auto* const more : {&details_, &again_}) std::ranges::move(*more, std::back_inserter(finding.details));
    return finding;
  }

 private:
  int ranks() const { return static_cast<int>(round_.of.size()); }

  void group(std::string meaning, const std::string& name) { checks::add(groups_, std::move(meaning), name); }

  // Whether all ranks have the same values, but for rounding.
  bool are_alike(const ReplicaTable::Row& row, const Right& right) const {
    const auto& first = row.versions.front();
    return std::ranges::all_of(row.versions, [&](const auto& each) {
      if (&each == &first) return true;
      if (!right.rounding.defined()) return false;
      return ratio_of(each.copy, first.copy, scale_, tolerance_, right.rounding).kind == GradientRatio::Kind::equal;
    });
  }

  // A row of which ranks have different values.
  void add_unlike(const ReplicaTable::Row& row, const Right& right) {
    const auto [meaning, is_own_part] = unreduced(row, right, scale_, tolerance_);
    std::vector<PartOfRank> parts;
    const bool is_comparable = !is_own_part && add_parts(row, right, parts);
    parts_.insert(parts_.end(), parts.begin(), parts.end());
    if (!is_comparable) group(meaning, row.name);
    if (is_of_shards(row)) {
      if (is_comparable) no_multiples_.push_back(row.name);
      are_rows_ = are_rows_ || is_comparable;
      return;
    }
    if (is_comparable) unlike_.push_back({row.name, meaning, std::move(parts)});
    auto of_row = odd_of(row, round_.here);
    if (odd_) {
      if (!std::ranges::includes(odd_->ranks, of_row.ranks))
        details_.push_back(fmt::format("of the {}s {}", round_.shown.what, of_row.text));
      add_ranks(odd_->ranks, of_row.ranks);
    } else {
      odd_ = std::move(of_row);
    }
  }

  // If what is wrong depends on the rank, the wrong ranks are those whose part differs from that of one process.
  void blame_ranks() {
    if (no_multiples_.empty() && unlike_.empty()) return;
    const auto differ = ranks_that_differ(parts_, are_rows_, scale_, tolerance_);
    const bool by_rank = differ && !differ->meaning.empty();
    if (by_rank && are_rows_) {
      for (const auto& each : std::exchange(multiples_, {})) no_multiples_.push_back(each.name);
      for (const auto& name : std::exchange(no_multiples_, {})) group(differ->meaning, name);
    }
    if (by_rank || (differ && !unlike_.empty())) culprits_ = differ->ranks;
    for (const auto& [name, meaning, parts] : unlike_) {
      // Each rank may be wrong in another row.
      const auto in_row = by_rank && differ->by_factors ? differ : ranks_that_differ(parts, false, scale_, tolerance_);
      const bool row_tells = in_row && !in_row->meaning.empty() && (in_row->by_factors || !by_rank);
      group(row_tells ? in_row->meaning : by_rank ? differ->meaning : meaning, name);
    }
  }

  void explain_multiples() {
    for (const auto& each : multiples_) {
      if (tells_why(each, multiples_, reduced_)) {
        group(meaning_of(each, ranks(), reductions_), each.name);
      } else if (!no_multiples_.empty()) {
        no_multiples_.push_back(each.name);
      } else {
        group(times_text(each.ratio) + ": a single element does not tell why", each.name);
      }
    }
  }

  void explain_others() {
    if (no_multiples_.empty()) return;
    auto meaning = checks::meaning_of({GradientRatio::Kind::no_multiple, 0}, ranks());
    const auto uneven = reductions_ != nullptr ? uneven_parts(reduced_, *reductions_, tolerance_) : std::nullopt;
    if (uneven) {
      meaning = "no multiple of what one process computes: " + uneven->what;
      details_.push_back(uneven->cure);
    }
    for (const auto& name : no_multiples_) group(meaning, name);
  }

  const GradientsRound& round_;
  const double scale_, tolerance_;
  const Reductions* const reductions_;
  std::vector<Group> groups_;
  std::optional<OddRow> odd_;  // the text of the first row that differs between ranks, and the ranks of all
  std::vector<ReducedGradient> reduced_;
  std::vector<Multiple> multiples_;
  std::vector<PartOfRank> parts_;
  bool are_rows_ = false;  // the parts
  struct Unlike {
    std::string name, meaning;
    std::vector<PartOfRank> parts;
  };
  std::vector<Unlike> unlike_;  // rows that differ between ranks
  std::vector<std::string> no_multiples_, details_, again_;
  std::vector<int> culprits_;
};

double scale_of(const std::vector<Right>& reference) {
  double scale = 0;
  for (const auto& each : reference) {
    if (each.value.defined()) scale = std::max(scale, plain(each.value).norm().item<double>());
  }
  return scale;
}

}  // namespace

std::optional<StateFinding> evaluate(const GradientsRound& round, const ModelState& own,
                                     const std::vector<Right>& reference, double tolerance,
                                     const Reductions* reductions) {
  Comparison comparison(round, scale_of(reference), tolerance, reductions);
  const auto& wanted = own.tensors();
  const auto& rows = round.shown.table.rows();
  for (const auto& row : rows) {
    const auto tensor = std::ranges::find(wanted, row.name, &NamedTensor::name);
    const auto index = static_cast<std::size_t>(tensor - wanted.begin());
    tensor == wanted.end() ? comparison.add_unknown(row.name) : comparison.add(row, *tensor, reference[index]);
  }
  for (const auto& each : wanted) {
    if (std::ranges::find(rows, each.name, &ReplicaTable::Row::name) == rows.end()) comparison.add_missing(each.name);
  }
  return comparison.finding();
}

}  // namespace rehearse::checks
