// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>
#include <c10/core/SymInt.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/operators/capture_mode.h>

namespace rehearse::shapes {
class ShapeEnv;
}

namespace rehearse::capture {

class CaptureThread;

// Who records what is called, at the Fake key: below autograd, so that a backward is seen operator by operator.
struct FakeListener {
  virtual ~FakeListener() = default;

  // A real tensor among an operator's arguments: the fake that stands for it, the same one each time. May throw.
  virtual at::Tensor fake_of(const at::Tensor& real) = 0;

  // After the results are known. Composite operators were taken apart before and do not come here. `arguments` have
  // fakes in place of real tensors; lists are the caller's own and may change afterwards. What an in-place operator
  // gives is its argument.
  virtual void on_operator(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments,
                           c10::ArrayRef<c10::IValue> results) = 0;
};

// How the results of operators were found; numbers of calls.
struct InferenceCounts {
  std::uint64_t in_place = 0;   // the result is an argument
  std::uint64_t rule = 0;       // by a rule of its own
  std::uint64_t pointwise = 0;  // by broadcasting
  std::uint64_t meta = 0;       // LibTorch's Meta kernel, at the sizes themselves
  std::uint64_t sampled = 0;    // by running real kernels at small sizes and fitting expressions: not a proof
  std::map<std::string, std::uint64_t> sampled_operators = {};
};

// While a Scope of it is on, operators of the calling fiber compute nothing: each gives fake tensors. A real tensor
// among the arguments is replaced by a fake (the listener's, or one of the mode's own); real tensors are never read or
// written. No random number is drawn. Modes may be nested, the innermost is on.
//
// A mode belongs to one fiber. Switching to other fibers inside a Scope is safe. It keeps the real tensors that it has
// replaced.
//
// Errors: those of fake_errors.h, and LibTorch's own for calls that are wrong in eager mode too.
class FakeMode final : public operators::CaptureMode {
 public:
  // `shapes` makes the symbols of sizes that depend on data; null where none are wanted (a DataDependentRead then).
  // `is_traced`: a tracer takes operators above autograd.
  explicit FakeMode(std::shared_ptr<shapes::ShapeEnv> shapes, FakeListener* listener = nullptr, bool is_traced = false);
  FakeMode(const FakeMode&) = delete;
  FakeMode& operator=(const FakeMode&) = delete;

  // Turns the mode on for the calling fiber.
  class Scope {
   public:
    explicit Scope(FakeMode& mode);
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

   private:
    FakeMode& mode_;
    CaptureMode* const outer_;
    c10::impl::IncludeDispatchKeyGuard include_;
  };

  // Real work inside of a Scope: takes the keys of capture (Fake, DeferredInit, Functionalize) away.
  class Pause {
   public:
    Pause();

   private:
    c10::impl::ExcludeDispatchKeyGuard exclude_;
  };

  // While it lives, no mode is on: FakeMode::current() is null. The dispatch keys stay.
  class Off {
   public:
    Off();
    Off(const Off&) = delete;
    Off& operator=(const Off&) = delete;
    ~Off();

   private:
    CaptureMode* const mode_;
  };

  // While it lives, reading an integer of a fake tensor gives an unbacked symbol instead of a DataDependentRead.
  class SymbolicReads {
   public:
    explicit SymbolicReads(FakeMode& mode) : mode_(mode), outer_(mode.symbolic_reads_) { mode.symbolic_reads_ = true; }
    SymbolicReads(const SymbolicReads&) = delete;
    SymbolicReads& operator=(const SymbolicReads&) = delete;
    ~SymbolicReads() { mode_.symbolic_reads_ = outer_; }

   private:
    FakeMode& mode_;
    const bool outer_;
  };

  // The calling fiber's innermost; null when none is on.
  static FakeMode* current() noexcept;

  // From now on the code runs as it is.
  void end() noexcept { has_ended_ = true; }
  bool has_ended() const noexcept override { return has_ended_; }
  [[noreturn]] void refuse(const std::string& what, const std::string& cure) const override;
  void end_or_refuse(const std::string& what, const std::string& cure) const override;
  // Who can end the capture: gives whether it has. Nobody at first.
  void set_ending(std::function<bool(const std::exception& refusal)> ending) { ending_ = std::move(ending); }

  operators::BodyRecorder* bodies() const noexcept override { return has_ended_ ? nullptr : bodies_; }
  void set_bodies(operators::BodyRecorder* bodies) noexcept { bodies_ = bodies; }

  operators::HookRecorder* hooks() const noexcept override { return has_ended_ ? nullptr : hooks_; }
  void set_hooks(operators::HookRecorder* hooks) noexcept { hooks_ = hooks; }

  // A size that only the running program knows: a symbol of shapes(), which must not be null.
  c10::SymInt add_unbacked();
  // The same for a number that data holds, which may be negative.
  c10::SymInt add_unbacked_number();
  // A node of a graph that was captured before is run again: what it brings into being are these symbols of shapes(),
  // in order, and new ones after them; integers of data are read as them. Takes the place of what was given before.
  void set_unbacked(std::vector<c10::SymInt> symbols);

  // The fake that stands for `real`; a fake or undefined tensor itself.
  at::Tensor fake_of(const at::Tensor& real);

  // Makes the fake one of this capture. Those that are made while the mode is on are already.
  void own(const at::Tensor& fake) const;
  // Throws NotCapturable if another thread has called an operator with a tensor of this capture.
  void refuse_other_threads() const;
  const std::shared_ptr<CaptureThread>& thread() const noexcept { return thread_; }

  const std::shared_ptr<shapes::ShapeEnv>& shapes() const noexcept { return shapes_; }
  FakeListener* listener() const noexcept { return listener_; }
  bool reads_symbolically() const noexcept { return symbolic_reads_ || !unbacked_.empty(); }
  InferenceCounts& inference_counts() noexcept { return counts_; }

 private:
  struct Stand {  // in for a real tensor
    at::Tensor real, fake;
  };

  // The next symbol of set_unbacked(); none are left otherwise.
  std::optional<c10::SymInt> take_unbacked();

  std::shared_ptr<shapes::ShapeEnv> shapes_;
  FakeListener* listener_;
  std::shared_ptr<CaptureThread> thread_;
  std::function<bool(const std::exception&)> ending_;
  operators::BodyRecorder* bodies_ = nullptr;
  operators::HookRecorder* hooks_ = nullptr;
  bool symbolic_reads_ = false;
  bool has_ended_ = false;
  std::vector<c10::SymInt> unbacked_;  // what add_unbacked() and its like give; the last one first
  InferenceCounts counts_;
  std::unordered_map<const c10::TensorImpl*, Stand> stands_;
  std::unordered_map<const c10::StorageImpl*, at::Tensor> storages_;  // a fake with the storage in place of a real one
};

// An operator on fakes where no mode is on: throws FakeOutsideMode. In another thread than that of the capture under
// way, where the error would end the process, it gives a fake, and the capture is refused (CaptureThread).
void call_without_mode(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack& stack);

}  // namespace rehearse::capture
