// SPDX-License-Identifier: BSD-3-Clause
#include "cli/validate/comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include <ATen/ops/from_blob.h>
#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rehearse_internal/formatting/rank_list.h>

namespace rehearse::cli {
namespace {

// A simulation ends with the first exception, but processes each end with their own. So the culprits of one mode may
// include those of the other.
bool same_culprits(const ModeRun& one, const ModeRun& other) {
  if (one.culprits == other.culprits || one.names_nobody() || other.names_nobody()) return true;
  constexpr Verdict kOfExceptions[] = {Verdict::rank_failed, Verdict::check_failed, Verdict::crashed};
  const auto verdict = one.report.verdict;
  if (std::find(std::begin(kOfExceptions), std::end(kOfExceptions), verdict) == std::end(kOfExceptions)) return false;
  const auto& [few, many] =
      std::minmax(one.culprits, other.culprits, [](const auto& a, const auto& b) { return a.size() < b.size(); });
  return !few.empty() && std::includes(many.begin(), many.end(), few.begin(), few.end());
}

using Key = std::tuple<int, std::string, std::uint64_t>;  // rank, name, index

struct KnownDtype {
  std::string_view name;
  at::ScalarType type;
  double epsilon;
};

// The dtypes whose values may differ by rounding.
constexpr std::array kDtypes{
    KnownDtype{"float32", at::kFloat, 0x1p-23},          KnownDtype{"float64", at::kDouble, 0x1p-52},
    KnownDtype{"float16", at::kHalf, 0x1p-10},           KnownDtype{"bfloat16", at::kBFloat16, 0x1p-7},
    KnownDtype{"complex64", at::kComplexFloat, 0x1p-23}, KnownDtype{"complex128", at::kComplexDouble, 0x1p-52},
};

// Null: the values of this dtype must be equal.
const KnownDtype* inexact(std::string_view name) {
  const auto found = std::ranges::find_if(kDtypes, [&](const auto& each) { return each.name == name; });
  return found == kDtypes.end() ? nullptr : &*found;
}

// The coarsest dtype of the tensors that a run communicated, in "in float32[3]" and the like. A result of a finer dtype
// may come from them, such as a loss that is stored as a double.
double coarsest_epsilon(const ModeRun& run) {
  double coarsest = 0;
  for (const auto& call : run.calls) {
    for (const std::string_view tensor : call.tensors) {
      const auto name = tensor.substr(tensor.find(' ') + 1);
      if (const auto* const dtype = inexact(name.substr(0, name.find('['))))
        coarsest = std::max(coarsest, dtype->epsilon);
    }
  }
  return coarsest;
}

std::vector<double> numbers_in(const sim::ListedResult& result, at::ScalarType type) {
  std::string bytes = result.bytes;
  auto tensor = at::from_blob(bytes.data(), {result.elements()}, at::TensorOptions(type));
  if (tensor.is_complex()) tensor = at::view_as_real(tensor);
  const auto doubles = tensor.to(at::kDouble).reshape({-1}).contiguous();
  const auto* const data = doubles.const_data_ptr<double>();
  return {data, data + doubles.numel()};
}

// The largest difference between two values at the same place, relative to the largest finite magnitude in both lists.
// Infinity if a NaN or Inf meets a different value.
double distance(const std::vector<double>& first, const std::vector<double>& second) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double most = 0, apart = 0;
  for (std::size_t i = 0; i < std::min(first.size(), second.size()); ++i) {
    const double a = first[i], b = second[i];
    if ((std::isnan(a) && std::isnan(b)) || a == b) {
      if (std::isfinite(a)) most = std::max(most, std::abs(a));
      continue;
    }
    if (!std::isfinite(a) || !std::isfinite(b)) return kInfinity;
    most = std::max({most, std::abs(a), std::abs(b)});
    apart = std::max(apart, std::abs(a - b));
  }
  return apart == 0 ? 0 : apart / most;
}

class ResultComparer {
 public:
  ResultComparer(const ModeRun& one, const ModeRun& other, std::optional<double> tolerance, int ranks)
      : one_(one), other_(other), tolerance_(tolerance), ranks_(ranks), epsilon_(coarsest_epsilon(one)) {}

  ResultComparison compare(bool to_the_end) {
    std::map<Key, const sim::ListedResult*> second;
    for (const auto& result : other_.results) second[key_of(result)] = &result;
    for (const auto& result : one_.results) {
      const auto found = second.find(key_of(result));
      if (found == second.end()) {
        if (to_the_end) differs(result, fmt::format("was given only by {}", one_.name));
        continue;
      }
      compare_pair(result, *found->second);
      second.erase(found);
    }
    for (const auto& [key, result] : second) {
      if (to_the_end) differs(*result, fmt::format("was given only by {}", other_.name));
    }
    return std::move(comparison_);
  }

 private:
  static Key key_of(const sim::ListedResult& result) { return {result.rank, result.name, result.index}; }

  void differs(const sim::ListedResult& result, const std::string& how) {
    comparison_.differences.push_back(
        fmt::format("result \"{}\" ({}) of rank {} {}", result.name, result.index, result.rank, how));
  }

  void compare_pair(const sim::ListedResult& first, const sim::ListedResult& second) {
    if (first.dtype != second.dtype || first.sizes != second.sizes) {
      return differs(first, fmt::format("is {}{} by {}, {}{} by {}", first.dtype, shape_of(first), one_.name,
                                        second.dtype, shape_of(second), other_.name));
    }
    const bool whole = first.is_whole() && second.is_whole();
    if (first.hash == second.hash && (!whole || first.bytes == second.bytes)) {
      ++comparison_.bit_equal;
      return;
    }
    const auto* const dtype = inexact(first.dtype);
    if (dtype == nullptr) return differs(first, "differs, and values of its dtype must be equal");
    const double apart =
        whole ? distance(numbers_in(first, dtype->type), numbers_in(second, dtype->type))
              : distance({first.least, first.most, first.norm}, {second.least, second.most, second.norm});
    const double epsilon = std::max(epsilon_, dtype->epsilon);
    const double allowed = tolerance_.value_or(static_cast<double>(ranks_) * ranks_ * epsilon);
    if (!(apart <= allowed)) {
      return differs(first,
                     fmt::format("differs by {:.2g} of its largest number; the tolerance is {:.2g}", apart, allowed));
    }
    ++comparison_.within;
    comparison_.largest = std::max(comparison_.largest, apart);
    if (!whole) ++comparison_.by_figures;
  }

  static std::string shape_of(const sim::ListedResult& result) {
    std::string text = "[";
    for (const auto size : result.sizes) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
    return text + "]";
  }

  const ModeRun& one_;
  const ModeRun& other_;
  const std::optional<double> tolerance_;
  const int ranks_;
  const double epsilon_;
  ResultComparison comparison_;
};

using Calls = std::vector<const sim::ListedCall*>;
using SequenceKey = std::tuple<int, std::string, bool>;  // rank, group, point to point

std::map<SequenceKey, Calls> by_sequence(const std::vector<sim::ListedCall>& calls) {
  std::map<SequenceKey, Calls> sequences;
  for (const auto& call : calls) sequences[{call.rank, call.group, call.point_to_point}].push_back(&call);
  return sequences;
}

std::string text_of(const Calls& calls, std::size_t at, bool with_tensors) {
  if (at >= calls.size()) return "no call";
  const auto& call = *calls[at];
  if (!with_tensors) return fmt::format("{} as #{}", call.call, call.sequence);
  return fmt::format("{} as #{} of {}", call.call, call.sequence, fmt::join(call.tensors, ", "));
}

void compare_sequence(const SequenceKey& key, const Calls& first, const Calls& second, const std::string& first_name,
                      const std::string& second_name, bool to_the_end, CallComparison& result) {
  const auto common = std::min(first.size(), second.size());
  std::size_t at = 0;
  while (at < common && *first[at] == *second[at]) ++at;
  result.alike += at;
  const bool same = at == common && (first.size() == second.size() || !to_the_end);
  if (same) return;
  const bool with_tensors = at < common && text_of(first, at, false) == text_of(second, at, false);
  result.differences.push_back(fmt::format("rank {}, call {} in group \"{}\": {} {}, {} {}", std::get<0>(key), at + 1,
                                           std::get<1>(key), first_name, text_of(first, at, with_tensors), second_name,
                                           text_of(second, at, with_tensors)));
}

}  // namespace

bool ModeRun::names_nobody() const { return report.verdict == Verdict::crashed && culprits.empty(); }

std::string culprits_text(const ModeRun& run) {
  if (run.names_nobody()) return "not known";
  return run.culprits.empty() ? "nobody" : describe_ranks(run.culprits);
}

Comparison compare(const ModeRun& one, const ModeRun& other, std::optional<double> tolerance) {
  Comparison result;
  if (one.report.verdict != other.report.verdict) {
    result.outcome.push_back(fmt::format("the verdict is {} by {}, {} by {}", to_string(one.report.verdict), one.name,
                                         to_string(other.report.verdict), other.name));
  } else if (!same_culprits(one, other)) {
    result.outcome.push_back(fmt::format("the culprit is {} by {}, {} by {}", culprits_text(one), one.name,
                                         culprits_text(other), other.name));
  }
  const bool to_the_end = one.report.verdict == Verdict::ok && other.report.verdict == Verdict::ok;
  result.calls = compare_calls(one, other, to_the_end);
  result.results = compare_results(one, other, tolerance, one.report.ranks, to_the_end);
  return result;
}

ResultComparison compare_results(const ModeRun& one, const ModeRun& other, std::optional<double> tolerance, int ranks,
                                 bool to_the_end) {
  return ResultComparer(one, other, tolerance, ranks).compare(to_the_end);
}

CallComparison compare_calls(const ModeRun& one, const ModeRun& other, bool to_the_end) {
  const auto first = by_sequence(one.calls);
  auto second = by_sequence(other.calls);
  CallComparison result;
  for (const auto& [key, calls] : first) {
    compare_sequence(key, calls, second[key], one.name, other.name, to_the_end, result);
    second.erase(key);
  }
  for (const auto& [key, calls] : second) compare_sequence(key, {}, calls, one.name, other.name, to_the_end, result);
  return result;
}

}  // namespace rehearse::cli
