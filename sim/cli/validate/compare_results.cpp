// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include <ATen/ops/from_blob.h>
#include <c10/core/ScalarType.h>
#include <fmt/format.h>

#include "cli/validate/comparison.h"

namespace rehearse::cli {
namespace {

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
  const auto found = std::find_if(kDtypes.begin(), kDtypes.end(), [&](const auto& each) { return each.name == name; });
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

}  // namespace

ResultComparison compare_results(const ModeRun& one, const ModeRun& other, std::optional<double> tolerance, int ranks,
                                 bool to_the_end) {
  return ResultComparer(one, other, tolerance, ranks).compare(to_the_end);
}

}  // namespace rehearse::cli
