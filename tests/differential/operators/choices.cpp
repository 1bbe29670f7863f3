// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "differential/operators/recipe.h"
#include "differential/operators/sample.h"
#include "differential/operators/sample_rows.h"

namespace rehearse_test::differential {
namespace {

constexpr int kOtherForm = 100000;  // above the index of each choice of an operator

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

bool has_dtype(const Tensors& tensors, std::initializer_list<c10::ScalarType> dtypes) {
  return std::any_of(tensors.begin(), tensors.end(), [&](const at::Tensor& tensor) {
    return std::find(dtypes.begin(), dtypes.end(), tensor.scalar_type()) != dtypes.end();
  });
}

}  // namespace

std::string Choice::text() const {
  std::string text;
  if (recipe >= 0) {
    text = "recipe " + std::to_string(recipe) + ", draw " + std::to_string(draw);
  } else {
    text = "shapes " + std::to_string(shapes) + ", dtypes " + std::to_string(dtypes) + ", numbers " +
           std::to_string(numbers) + (kind > 0 ? ", kind " + std::to_string(kind) : "") +
           (optionals ? ", optionals" : "");
  }
  const char* const of_leaves[] = {"", ", even leaves", ", odd leaves"};
  return text + (strided ? ", strided" : "") + (empty ? ", empty" : "") + (single ? ", float32" : "") +
         of_leaves[static_cast<int>(leaves)] + (grad ? "" : ", no grad");
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

std::vector<Choice> other_forms(const c10::FunctionSchema& schema, const Choice& choice) {
  const auto sample = make_sample(schema, choice, 3, true);
  const auto& arguments = schema.arguments();
  const bool has_out = std::any_of(arguments.begin(), arguments.end(), [](const auto& each) { return each.is_out(); });
  const std::size_t leaves = has_out ? 0 : sample->inputs.leaves.size();
  std::vector<Choice> forms;
  const auto add = [&](bool single, Choice::Leaves which, bool grad) {
    forms.push_back(choice);
    forms.back().single = single;
    forms.back().index += static_cast<int>(forms.size()) * kOtherForm;
    forms.back().leaves = which;
    forms.back().grad = grad;
  };
  if (leaves > 0) add(false, Choice::Leaves::All, false);
  if (leaves > 1) {
    add(false, Choice::Leaves::Even, true);
    add(false, Choice::Leaves::Odd, true);
  }
  if (!has_dtype(sample->inputs.arguments, {at::kDouble, at::kComplexDouble})) return forms;
  if (!has_out) add(true, Choice::Leaves::All, true);
  add(true, Choice::Leaves::All, false);
  return forms;
}

}  // namespace rehearse_test::differential
