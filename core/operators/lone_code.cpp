// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/operators/lone_code.h>

#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <rehearse_internal/exec/fiber_local.h>

namespace rehearse::operators {
namespace {

struct WhoseCode {
  const char* what = nullptr;
};
const exec::FiberLocal<WhoseCode> lone_code;

}  // namespace

LoneCode::LoneCode(const char* what) : outer_(std::exchange(lone_code->what, what)) {}
LoneCode::~LoneCode() { lone_code->what = outer_; }

bool in_lone_code() noexcept {
  const WhoseCode* const code = lone_code.find();
  return code != nullptr && code->what != nullptr;
}

void refuse_in_lone_code(std::string_view call, const std::string& group) {
  if (!in_lone_code()) return;
  throw std::invalid_argument(fmt::format(
      "{} calls {} on group \"{}\": one rank alone runs it, so no call of a group can complete in it. Compute "
      "the loss of all ranks' parts with the module itself",
      lone_code->what, call, group));
}

}  // namespace rehearse::operators
