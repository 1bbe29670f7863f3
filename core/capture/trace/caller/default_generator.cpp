// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/caller/default_generator.h"

#include <string>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>

#include <rehearse_internal/capture/errors.h>

#include "capture/trace/caller/call_stack.h"

namespace rehearse::capture {
namespace {

class RefusingGenerator final : public at::CPUGeneratorImpl {
 public:
  RefusingGenerator(std::function<bool()> is_refusing, DefaultGenerator::GoOn go_on)
      : is_refusing_(std::move(is_refusing)), go_on_(std::move(go_on)) {}

  void set_current_seed(std::uint64_t seed) override {
    if (auto* const real = refuse("is seeded")) return real->set_current_seed(seed);
    CPUGeneratorImpl::set_current_seed(seed);
  }
  std::uint64_t seed() override {
    if (auto* const real = refuse("is seeded")) return real->seed();
    return CPUGeneratorImpl::seed();
  }
  std::uint64_t current_seed() const override {
    if (auto* const real = refuse("is asked for its seed")) return real->current_seed();
    return CPUGeneratorImpl::current_seed();
  }
  void set_state(const c10::TensorImpl& state) override {
    refuse("is set to another state", false);
    CPUGeneratorImpl::set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    refuse("is asked for its state", false);
    return CPUGeneratorImpl::get_state();
  }

 private:
  // Returns null if the generator need not refuse at this moment. Otherwise ends the capture, and returns the real
  // generator for the caller to use. Throws the refusal if `may_go_on` is false or the capture cannot end.
  at::CPUGeneratorImpl* refuse(const char* what, bool may_go_on = true) const {
    if (!is_refusing_()) return nullptr;
    const NotCapturable refusal(std::string("the default generator ") + what + " inside of a captured function",
                                "Do that outside of it, or in an eager region.", call_stack());
    if (!may_go_on || !go_on_(refusal)) throw refusal;
    return at::check_generator<at::CPUGeneratorImpl>(at::detail::getDefaultCPUGenerator());
  }

  const std::function<bool()> is_refusing_;
  const DefaultGenerator::GoOn go_on_;
};

}  // namespace

DefaultGenerator::DefaultGenerator(std::function<bool()> is_refusing, GoOn go_on)
    : other_(at::make_generator<RefusingGenerator>(std::move(is_refusing), std::move(go_on))) {
  exchange();
}

// Each fiber has its own handle in getDefaultCPUGenerator() while it runs, so the exchange affects no other fiber.
void DefaultGenerator::exchange() noexcept {
  std::swap(const_cast<at::Generator&>(at::detail::getDefaultCPUGenerator()), other_);
}

void DefaultGenerator::leave() noexcept {
  if (std::exchange(is_in_place_, false)) exchange();
}

}  // namespace rehearse::capture
