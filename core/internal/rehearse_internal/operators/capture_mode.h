// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace rehearse::operators {

// Records what a function does as the body of one node, instead of as nodes of their own. What the function uses from
// outside, besides its inputs, becomes an operand of that node, too.
class BodyRecorder {
 public:
  using Code = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& inputs)>;

  // Runs `code` once, and returns its results. `operation`: the higher-order operator that runs the body whenever the
  // graph is called, as "tag_activation_checkpoint". If the code does what no body can hold, its nodes stay in the
  // graph.
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

  // Two hooks of one backward, that of `output` first. The other one gets what the first has left of its gradient, and
  // is not called if no gradient has come to `output` by then. Each runs once now, on fakes. An undefined `input` has
  // no hook. Throws the capture's error if no graph can hold what they do.
  virtual void add(const at::Tensor& output, const OfOutput& of_output, const at::Tensor& input,
                   const OfInput& of_input) = 0;

 protected:
  HookRecorder() = default;
  ~HookRecorder() = default;
};

// What a fiber whose code is being captured as a graph is in. The compiler makes it (capture::FakeMode). Code below the
// compiler asks here, so that a program without the compiler does not link it.
class CaptureMode {
 public:
  // The innermost mode of the calling fiber; null if its code is not being captured.
  static CaptureMode* current() noexcept;

  // Makes `mode` the calling fiber's innermost, and returns the one that was.
  static CaptureMode* exchange(CaptureMode* mode);

  // Whether the code runs as it is from now on, on real tensors: the capture has ended before the code has.
  virtual bool has_ended() const noexcept = 0;

  // Null if nothing records the code's calls above autograd, and once the capture has ended.
  virtual BodyRecorder* bodies() const noexcept = 0;

  // The same for hooks.
  virtual HookRecorder* hooks() const noexcept = 0;

  // Throws the capture's error: "<what> is called in a captured function", with the cure and the caller's place.
  [[noreturn]] virtual void refuse(const std::string& what, const std::string& cure) const = 0;

  // The same, unless the capture can end here: then it has_ended(), and the caller goes on.
  virtual void end_or_refuse(const std::string& what, const std::string& cure) const = 0;

 protected:
  CaptureMode() = default;
  ~CaptureMode() = default;
};

// Throws if the calling fiber's code is being captured. For calls that would take effect during the capture, and never
// by the graph: those that do not go through LibTorch's dispatcher.
inline void refuse_in_capture(const char* what, const char* cure) {
  const CaptureMode* const mode = CaptureMode::current();
  if (mode && !mode->has_ended()) [[unlikely]]
    mode->refuse(what, cure);
}

// Ends the capture of the calling fiber's code, if one is on and can be ended, or throws as refuse_in_capture() does.
// For calls that go through LibTorch's dispatcher, and that no graph can hold.
inline void end_capture(const char* what, const char* cure) {
  const CaptureMode* const mode = CaptureMode::current();
  if (mode && !mode->has_ended()) [[unlikely]]
    mode->end_or_refuse(what, cure);
}

}  // namespace rehearse::operators
