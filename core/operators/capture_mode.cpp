// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/operators/capture_mode.h>

#include <utility>

#include <ATen/core/grad_mode.h>

#include <rehearse_internal/exec/fiber_local.h>

namespace rehearse::operators {
namespace {

struct Innermost {
  CaptureMode* mode = nullptr;
};
const exec::FiberLocal<Innermost> innermost;

}  // namespace

CaptureMode* CaptureMode::current() noexcept {
  const Innermost* const found = innermost.find();
  return found ? found->mode : nullptr;
}

BodyRecorder* CaptureMode::current_bodies() noexcept {
  const CaptureMode* const mode = current();
  return mode != nullptr && at::GradMode::is_enabled() ? mode->bodies() : nullptr;
}

CaptureMode* CaptureMode::exchange(CaptureMode* mode) { return std::exchange(innermost->mode, mode); }

}  // namespace rehearse::operators
