// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace rehearse::operators {

// Records a function as one node with a body, instead of recording the function's operations as separate nodes. Values
// from outside that the function uses, besides its inputs, become operands of that node, too.
class BodyRecorder {
 public:
  using Code = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& inputs)>;

  // Runs `code` once and returns its results. `operation`: the higher-order operator that runs the body at each call of
  // the graph, such as "tag_activation_checkpoint". If the code does something that no body can hold, the nodes of
  // the code stay in the graph.
  virtual std::vector<at::Tensor> record(const std::string& operation, const std::vector<at::Tensor>& inputs,
                                         const Code& code) = 0;

 protected:
  BodyRecorder() = default;
  ~BodyRecorder() = default;
};

// Records hooks as parts of a captured function's backward.
class HookRecorder {
 public:
  using OfOutput = std::function<at::Tensor(const at::Tensor& gradient)>;
  using OfInput = std::function<at::Tensor(const at::Tensor& gradient, const at::Tensor& of_output)>;

  // Adds two hooks of one backward; the hook of `output` runs first. The hook of `input` also gets the gradient of
  // `output` as the first hook left it, and is not called if no gradient has reached `output` by then. Each hook runs
  // once now, on fakes. An undefined `input` has no hook. Throws the capture's error if no graph can hold what the
  // hooks do.
  virtual void add(const at::Tensor& output, const OfOutput& of_output, const at::Tensor& input,
                   const OfInput& of_input) = 0;

 protected:
  HookRecorder() = default;
  ~HookRecorder() = default;
};

// The state of a fiber whose code is being captured as a graph. The compiler implements it (capture::FakeMode). Rooms
// outside of the compiler use only this interface, so that a program need not link the compiler.
class CaptureMode {
 public:
  // The innermost mode of the calling fiber, even if its capture has ended (has_ended()). Null: no mode is on.
  static CaptureMode* current() noexcept;

  // The recorder of bodies for the calling fiber. Null if no capture records bodies. Also null without grad mode,
  // because only the backward needs bodies.
  static BodyRecorder* current_bodies() noexcept;

  // Makes `mode` the calling fiber's innermost mode, and returns the previous one.
  static CaptureMode* exchange(CaptureMode* mode);

  // True if the capture has ended before the code did: the rest of the code runs eagerly, on real tensors.
  virtual bool has_ended() const noexcept = 0;

  // True while an operator runs, not the code itself.
  virtual bool is_in_operator() const noexcept = 0;

  // Null if nothing records the code's calls above autograd, and after the capture has ended.
  virtual BodyRecorder* bodies() const noexcept = 0;

  // Null in the same cases as bodies().
  virtual HookRecorder* hooks() const noexcept = 0;

  // Throws the capture's error: "<what> is called in a captured function", with the cure and the caller's place.
  [[noreturn]] virtual void refuse(const std::string& what, const std::string& cure) const = 0;

  // Ends the capture if it can end here: has_ended() becomes true, and the caller goes on. Otherwise throws as refuse()
  // does.
  virtual void end_or_refuse(const std::string& what, const std::string& cure) const = 0;

 protected:
  CaptureMode() = default;
  ~CaptureMode() = default;
};

// Throws if the calling fiber's code is being captured. For calls that bypass LibTorch's dispatcher: they would take
// effect during the capture and never when the graph runs.
inline void refuse_in_capture(const char* what, const char* cure) {
  const CaptureMode* const mode = CaptureMode::current();
  if (mode && !mode->has_ended()) [[unlikely]]
    mode->refuse(what, cure);
}

// Does nothing if the calling fiber's code is not being captured. Otherwise ends the capture or, if that is not
// possible, throws as refuse_in_capture() does. For calls that go through LibTorch's dispatcher and that no graph can
// hold.
inline void end_capture(const char* what, const char* cure) {
  const CaptureMode* const mode = CaptureMode::current();
  if (mode && !mode->has_ended()) [[unlikely]]
    mode->end_or_refuse(what, cure);
}

}  // namespace rehearse::operators
