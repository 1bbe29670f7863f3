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

// Records operators at the Fake key. The key is below autograd, so a listener also sees the operators of a backward.
struct FakeListener {
  virtual ~FakeListener() = default;

  // Returns the fake that stands for a real tensor among an operator's arguments: the same fake each time, except for
  // wrapped numbers (TensorSpec::is_wrapped_number). May throw.
  virtual at::Tensor fake_of(const at::Tensor& real) = 0;

  // Called when the results are known. Composite operators do not arrive here, only the operators that they call.
  // `arguments` contains fakes in place of real tensors; its lists belong to the caller and may change afterwards. The
  // result of an in-place operator is the fake among `arguments` that it writes.
  virtual void on_operator(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments,
                           c10::ArrayRef<c10::IValue> results) = 0;
};

// Counts calls of operators by the way in which their results were inferred.
struct InferenceCounts {
  std::uint64_t in_place = 0;   // the result is an argument
  std::uint64_t rule = 0;       // by the operator's rule
  std::uint64_t pointwise = 0;  // by broadcasting
  std::uint64_t meta = 0;       // by LibTorch's Meta kernel at the given sizes
  std::uint64_t sampled = 0;    // by running kernels, without proof; symbolic sizes may get made-up values
  std::map<std::string, std::uint64_t> sampled_operators = {};
};

// While a Scope of the mode lives, operators of the calling fiber compute nothing and return fake tensors. A fake
// replaces each real tensor among the arguments (the listener's fake, or one of the mode's own). Real tensors are never
// read or written, and no random number is drawn. Modes may be nested; the innermost one counts.
//
// A mode belongs to one fiber. Switching to other fibers inside a Scope is safe. The mode keeps alive the real tensors
// that it has replaced.
//
// Errors: those of fake_errors.h, and LibTorch's own for calls that are also wrong in eager mode.
class FakeMode final : public operators::CaptureMode {
 public:
  // `shapes` makes the symbols for sizes that depend on data. Null: an operator with such a size throws
  // DataDependentRead. `is_traced`: a tracer handles operators above autograd.
  explicit FakeMode(std::shared_ptr<shapes::ShapeEnv> shapes, FakeListener* listener = nullptr, bool is_traced = false);
  FakeMode(const FakeMode&) = delete;
  FakeMode& operator=(const FakeMode&) = delete;

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

  // Allows real work inside a Scope: excludes the dispatch keys of captures (Fake, DeferredInit, Functionalize).
  class Pause {
   public:
    Pause();

   private:
    c10::impl::ExcludeDispatchKeyGuard exclude_;
  };

  // While it lives, no mode is on: FakeMode::current() is null. The dispatch keys do not change.
  class Off {
   public:
    Off();
    Off(const Off&) = delete;
    Off& operator=(const Off&) = delete;
    ~Off();

   private:
    CaptureMode* const mode_;
  };

  // While it lives, reading an integer of a fake tensor returns an unbacked symbol instead of throwing
  // DataDependentRead.
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

  // The calling fiber's innermost mode; null if none is on.
  static FakeMode* current() noexcept;

  // Call it when the capture ends before the code does: the rest of the code runs eagerly.
  void end() noexcept { has_ended_ = true; }
  bool has_ended() const noexcept override { return has_ended_; }
  bool is_in_operator() const noexcept override;
  [[noreturn]] void refuse(const std::string& what, const std::string& cure) const override;
  void end_or_refuse(const std::string& what, const std::string& cure) const override;
  // `ending`: ends the capture because of the refusal, if that is possible, and returns whether it has. Until it is
  // set, end_or_refuse() throws.
  void set_ending(std::function<bool(const std::exception& refusal)> ending) { ending_ = std::move(ending); }

  operators::BodyRecorder* bodies() const noexcept override { return has_ended_ ? nullptr : bodies_; }
  void set_bodies(operators::BodyRecorder* bodies) noexcept { bodies_ = bodies; }

  operators::HookRecorder* hooks() const noexcept override { return has_ended_ ? nullptr : hooks_; }
  void set_hooks(operators::HookRecorder* hooks) noexcept { hooks_ = hooks; }

  // Returns a new symbol of shapes(), which must not be null. The symbol stands for a size that only the running
  // program knows.
  c10::SymInt add_unbacked();
  // Like add_unbacked(), for a number in data, which may be negative.
  c10::SymInt add_unbacked_number();
  // Prepares for running a node of a captured graph again. add_unbacked() and add_unbacked_number() first return
  // `symbols` in order, then new symbols. `symbols` must belong to shapes(). Until they are used up, reads of integers
  // return them, too, instead of throwing. Replaces the symbols of an earlier call.
  void set_unbacked(std::vector<c10::SymInt> symbols);

  // The fake that stands for `real`. Returns fakes and undefined tensors unchanged.
  at::Tensor fake_of(const at::Tensor& real);

  // Makes the fake belong to this capture. Fakes made while the mode is on belong to it already.
  void own(const at::Tensor& fake) const;
  // Throws NotCapturable if another thread called an operator with a tensor of this capture.
  void refuse_other_threads() const;
  const std::shared_ptr<CaptureThread>& thread() const noexcept { return thread_; }

  const std::shared_ptr<shapes::ShapeEnv>& shapes() const noexcept { return shapes_; }
  FakeListener* listener() const noexcept { return listener_; }
  bool reads_symbolically() const noexcept { return symbolic_reads_ || !unbacked_.empty(); }
  InferenceCounts& inference_counts() noexcept { return counts_; }

 private:
  struct Stand {  // a fake that replaces a real tensor
    at::Tensor real, fake;
  };

  // The next symbol of set_unbacked(); nothing if there is none left.
  std::optional<c10::SymInt> take_unbacked();

  std::shared_ptr<shapes::ShapeEnv> shapes_;
  FakeListener* listener_;
  std::shared_ptr<CaptureThread> thread_;
  std::function<bool(const std::exception&)> ending_;
  operators::BodyRecorder* bodies_ = nullptr;
  operators::HookRecorder* hooks_ = nullptr;
  bool symbolic_reads_ = false;
  bool has_ended_ = false;
  std::vector<c10::SymInt> unbacked_;  // the symbols of set_unbacked(), the next one last
  InferenceCounts counts_;
  std::unordered_map<const c10::TensorImpl*, Stand> stands_;
  std::unordered_map<const c10::StorageImpl*, at::Tensor> storages_;  // by real storage: its fake
};

// Handles an operator on fakes while no mode is on: throws FakeOutsideMode. In a thread other than the capture's,
// however, an error would end the process. There the operator returns a fake, and the capture is refused
// (CaptureThread).
void call_without_mode(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack& stack);

}  // namespace rehearse::capture
