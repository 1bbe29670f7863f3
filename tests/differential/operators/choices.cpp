// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "differential/operators/recipe.h"
#include "differential/operators/sample.h"
#include "differential/operators/sample_rows.h"

namespace rehearse_test::differential {
namespace {

int cost(const Choice& choice) { return choice.shapes + 2 * choice.dtypes + 3 * choice.numbers + 6 * choice.optionals; }

// All combinations for dense tensors, the simplest ones first. Then combinations for each other kind of tensors.
const std::vector<Choice>& all_choices() {
  static const std::vector<Choice> all = [] {
    std::vector<Choice> list;
    for (int shapes = 0; shapes < static_cast<int>(sample_shapes().size()); ++shapes) {
      for (int dtypes = 0; dtypes < static_cast<int>(sample_dtypes().size()); ++dtypes) {
        for (int numbers = 0; numbers < Choice::kNumbers; ++numbers) {
          for (const bool optionals : {false, true}) list.push_back({shapes, dtypes, numbers, optionals});
        }
      }
    }
    std::stable_sort(list.begin(), list.end(), [](const Choice& a, const Choice& b) { return cost(a) < cost(b); });
    for (int kind = 1; kind < Choice::kKinds; ++kind) {
      for (int shapes = 0; shapes < static_cast<int>(sample_shapes().size()); ++shapes) {
        for (int numbers = 0; numbers < Choice::kNumbers; ++numbers) {
          list.push_back({.shapes = shapes, .numbers = numbers, .kind = kind});
        }
      }
    }
    for (std::size_t i = 0; i < list.size(); ++i) list[i].index = static_cast<int>(i);
    return list;
  }();
  return all;
}

}  // namespace

std::string Choice::text() const {
  if (recipe >= 0) {
    return "recipe " + std::to_string(recipe) + ", draw " + std::to_string(draw) + (strided ? ", strided" : "") +
           (empty ? ", empty" : "");
  }
  return "shapes " + std::to_string(shapes) + ", dtypes " + std::to_string(dtypes) + ", numbers " +
         std::to_string(numbers) + (kind > 0 ? ", kind " + std::to_string(kind) : "") +
         (optionals ? ", optionals" : "") + (strided ? ", strided" : "") + (empty ? ", empty" : "");
}

std::vector<Choice> choices_of(const c10::FunctionSchema& schema) {
  const auto recipes = static_cast<int>(recipes_of(schema).size());
  if (recipes == 0) return all_choices();
  std::vector<Choice> list;
  for (int draw = 0; draw < 3; ++draw) {
    for (int recipe = 0; recipe < recipes; ++recipe) {
      list.push_back({.index = static_cast<int>(list.size()), .recipe = recipe, .draw = draw});
    }
  }
  return list;
}

}  // namespace rehearse_test::differential
