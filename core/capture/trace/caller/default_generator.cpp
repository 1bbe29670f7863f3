// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/caller/default_generator.h"

#include <array>
#include <mutex>
#include <string>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>

#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/exec/this_rank.h>

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

at::CPUGeneratorImpl& cpu_generator(const at::Generator& generator) {
  return *at::check_generator<at::CPUGeneratorImpl>(generator);
}

// Copies what the next draws depend on, without the virtual functions that RefusingGenerator refuses.
void copy_draws(at::CPUGeneratorImpl& from, at::CPUGeneratorImpl& to) {
  to.set_engine(from.engine());
  to.set_next_float_normal_sample(from.next_float_normal_sample());
  to.set_next_double_normal_sample(from.next_double_normal_sample());
}

bool have_same_draws(at::CPUGeneratorImpl& a, at::CPUGeneratorImpl& b) {
  const at::mt19937_data_pod left = a.engine().data(), right = b.engine().data();
  return left.left_ == right.left_ && left.next_ == right.next_ && left.state_ == right.state_ &&
         a.next_float_normal_sample() == b.next_float_normal_sample() &&
         a.next_double_normal_sample() == b.next_double_normal_sample();
}

// Keeps the last generators alive, because another thread may still draw from one that it has just looked up.
void retire(const at::Generator& generator) {
  static std::mutex mutex;
  static std::array<at::Generator, 16> last;
  static std::size_t retired = 0;
  const std::lock_guard lock(mutex);
  last.at(retired++ % last.size()) = generator;
}

}  // namespace

DefaultGenerator::DefaultGenerator(std::function<bool()> is_refusing, GoOn go_on)
    : other_(at::make_generator<RefusingGenerator>(std::move(is_refusing), std::move(go_on))),
      before_(exec::this_rank::is_fiber() ? at::Generator() : at::make_generator<at::CPUGeneratorImpl>()) {
  exchange();
}

// Each fiber has its own handle in getDefaultCPUGenerator() while it runs, so the exchange affects no other fiber. But
// all threads outside of fibers have one handle. So other threads may draw from the refusing generator, and must then
// continue the real generator's sequence.
void DefaultGenerator::exchange() noexcept {
  at::Generator& current = const_cast<at::Generator&>(at::detail::getDefaultCPUGenerator());
  if (exec::this_rank::is_fiber()) return std::swap(current, other_);
  at::CPUGeneratorImpl& last = cpu_generator(current);
  at::CPUGeneratorImpl& next = cpu_generator(other_);
  // The caller may hold the lock, for example in at::manual_seed(), which ends the capture.
  const std::unique_lock last_lock(last.mutex_, std::try_to_lock), next_lock(next.mutex_, std::try_to_lock);
  const bool puts_real_back = std::exchange(is_refusing_in_place_, !is_refusing_in_place_);
  if (!puts_real_back || !have_same_draws(last, cpu_generator(before_))) copy_draws(last, next);
  if (!puts_real_back) copy_draws(last, cpu_generator(before_));
  std::swap(current, other_);
}

void DefaultGenerator::leave() noexcept {
  if (!std::exchange(is_in_place_, false)) return;
  exchange();
  if (!exec::this_rank::is_fiber()) retire(other_);
}

}  // namespace rehearse::capture
