// SPDX-License-Identifier: BSD-3-Clause
#include "checks/watch/draw_watch.h"

#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <fmt/format.h>

#include "checks/watch/operator_text.h"

namespace rehearse::checks {

DrawWatch::Mark DrawWatch::Mark::now() {
  auto& generator = *at::check_generator<at::CPUGeneratorImpl>(at::detail::getDefaultCPUGenerator());
  const auto engine = generator.engine().data();
  return {engine.seed_, engine.state_[0], engine.left_, engine.next_,
          generator.next_float_normal_sample().has_value() || generator.next_double_normal_sample().has_value()};
}

// Seeding makes the state from the seed, and counts all its numbers as used.
bool DrawWatch::Mark::is_fresh() const noexcept {
  return left == 1 && next == 0 && first == static_cast<std::uint32_t>(seed) && !keeps_a_normal;
}

void DrawWatch::before(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
  look(op.schema().name());
  // Most operators never draw; for them the name is enough.
  call_ = op.hasTag(at::Tag::nondeterministic_seeded) ? call_text(op.schema(), arguments) : op.schema().name();
}

void DrawWatch::after() {
  const auto now = Mark::now();
  if (std::exchange(mark_, now) != now) log_.note({std::move(call_), exec::CallSite::capture()});
}

// Between operators, unwatched code may have seeded the generator or drawn from it.
void DrawWatch::look(const std::string& before_what) {
  const auto now = Mark::now();
  const auto last = std::exchange(mark_, now);
  if (!last || *last == now) return;
  const bool is_set = now.is_fresh();
  if (is_set) log_.clear();
  const auto* const what = is_set ? "the generator was set" : "code that is no operator, or another thread,";
  log_.note({fmt::format("{} before {}", what, before_what), exec::CallSite::capture()});
}

std::vector<Drawn> DrawWatch::take(const std::string& name) {
  look("the check");
  return log_.take(name);
}

}  // namespace rehearse::checks
