// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>

#include <ATen/core/Generator.h>

#include <rehearse_internal/capture/errors.h>

namespace rehearse::capture {

// During a capture, replaces the CPU's default generator by one that refuses to be seeded, read and set by captured
// code. Those calls are no operators, so no graph could repeat them. Only the handle in LibTorch changes: a handle that
// code has copied before still refers to the real generator.
class DefaultGenerator {
 public:
  // Ends the capture, so that the code need not get the refusal. Returns false if that is not possible.
  using GoOn = std::function<bool(const NotCapturable& refusal)>;

  // Puts the refusing generator in place. `is_refusing`: returns whether the generator must refuse at this moment;
  // otherwise the generator behaves like any other.
  DefaultGenerator(std::function<bool()> is_refusing, GoOn go_on);
  DefaultGenerator(const DefaultGenerator&) = delete;
  DefaultGenerator& operator=(const DefaultGenerator&) = delete;
  ~DefaultGenerator() { leave(); }

  // Puts the real generator back for good.
  void leave() noexcept;

  // Puts the real generator in place while it lives.
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

  at::Generator other_;   // the generator that is not in place: the real or the refusing one
  at::Generator before_;  // outside of fibers: what the real generator was when the refusing one came into its place
  bool is_in_place_ = true;
  bool is_refusing_in_place_ = false;
};

}  // namespace rehearse::capture
