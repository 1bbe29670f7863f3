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
  explicit RefusingGenerator(std::function<bool()> is_refusing) : is_refusing_(std::move(is_refusing)) {}

  void set_current_seed(std::uint64_t seed) override {
    refuse("is seeded");
    CPUGeneratorImpl::set_current_seed(seed);
  }
  std::uint64_t seed() override {
    refuse("is seeded");
    return CPUGeneratorImpl::seed();
  }
  std::uint64_t current_seed() const override {
    refuse("is asked for its seed");
    return CPUGeneratorImpl::current_seed();
  }
  void set_state(const c10::TensorImpl& state) override {
    refuse("is set to another state");
    CPUGeneratorImpl::set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    refuse("is asked for its state");
    return CPUGeneratorImpl::get_state();
  }

 private:
  void refuse(const char* what) const {
    if (!is_refusing_()) return;
    throw NotCapturable(std::string("the default generator ") + what + " inside of a captured function",
                        "Do that outside of it, or in an eager region.", call_stack());
  }

  const std::function<bool()> is_refusing_;
};

}  // namespace

DefaultGenerator::DefaultGenerator(std::function<bool()> is_refusing)
    : other_(at::make_generator<RefusingGenerator>(std::move(is_refusing))) {
  exchange();
}

// Every fiber has its own in this place while it runs.
void DefaultGenerator::exchange() noexcept {
  std::swap(const_cast<at::Generator&>(at::detail::getDefaultCPUGenerator()), other_);
}

void DefaultGenerator::leave() noexcept {
  if (std::exchange(is_in_place_, false)) exchange();
}

}  // namespace rehearse::capture
