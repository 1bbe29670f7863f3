// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/shapes/errors.h>

#include <utility>

namespace rehearse::shapes {
namespace {

std::string data_dependent_text(const std::string& asked, const std::string& made, const exec::CallSite& where) {
  const std::string line = where.describe();
  std::string text = "'" + asked + "' is asked for";
  if (!line.empty()) text += " at " + line;
  text += ", but is known only when the program runs with its data";
  if (!made.empty()) text += " (" + made + ")";
  return text +
         ". Where it always holds, say so before with TORCH_SYM_CHECK(condition, ...); where either branch is right "
         "for "
         "every value, choose one with TORCH_GUARD_OR_FALSE(condition) or TORCH_GUARD_OR_TRUE(condition); else take "
         "this "
         "piece out of the captured function with rehearse::eager_region() or rehearse::opaque().";
}

}  // namespace

DataDependentError::DataDependentError(std::string asked, const std::string& made, exec::CallSite where)
    : ShapeError(data_dependent_text(asked, made, where)), asked_(std::move(asked)), where_(std::move(where)) {}

}  // namespace rehearse::shapes
