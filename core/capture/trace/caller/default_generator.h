// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>

#include <ATen/core/Generator.h>

#include <rehearse_internal/capture/errors.h>

namespace rehearse::capture {

// While a capture runs, the CPU's default generator is one that refuses to be seeded, read and set by the code: no
// operator does that, and so no graph could repeat it. The real one stays where it is.
class DefaultGenerator {
 public:
  // Ends the capture in place of the refusal; false: it cannot, and the code gets the refusal.
  using GoOn = std::function<bool(const NotCapturable& refusal)>;

  // Puts the refusing one in its place. `is_refusing`: of what is asked of it now; else it does as any other.
  DefaultGenerator(std::function<bool()> is_refusing, GoOn go_on);
  DefaultGenerator(const DefaultGenerator&) = delete;
  DefaultGenerator& operator=(const DefaultGenerator&) = delete;
  ~DefaultGenerator() { leave(); }

  // Puts the real one back, for good.
  void leave() noexcept;

  // While it lives, the real one is in its place.
  class Outside {
   public:
    explicit Outside(DefaultGenerator* generator) : generator_(generator) { exchange(); }
    Outside(const Outside&) = delete;
    Outside& operator=(const Outside&) = delete;
    ~Outside() { exchange(); }

   private:
    void exchange() noexcept {
      if (generator_ != nullptr && generator_->is_in_place_) generator_->exchange();
    }
    DefaultGenerator* const generator_;
  };

 private:
  void exchange() noexcept;

  at::Generator other_;  // the refusing one, or the real one while that is in place
  bool is_in_place_ = true;
};

}  // namespace rehearse::capture
