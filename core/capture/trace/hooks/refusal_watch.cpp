// SPDX-License-Identifier: BSD-3-Clause
#include <exception>
#include <string>
#include <string_view>

#include <c10/util/Exception.h>

#include <rehearse/shapes/errors.h>
#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/capture/fake_errors.h>
#include <rehearse_internal/exec/throw_site.h>
#include <rehearse_internal/operators/guarded_storages.h>
#include <rehearse_internal/shapes/attempt.h>

#include "capture/trace/caller/call_stack.h"
#include "capture/trace/hooks/process_hooks.h"
#include "capture/trace/operators/kernel_errors.h"
#include "capture/trace/operators/treatment.h"
#include "capture/trace/tracer.h"

namespace rehearse::capture {
namespace {

constexpr const char* kGathersNothing =
    "A capture gathers no sharded parameter: look at its memory outside of the captured function.";

// The refusal to report for an error that only a capture can cause: fakes have neither memory nor history, their sizes
// may vary, and no operator of a capture fills the memory of a sharded parameter. Null for other errors.
std::exception_ptr refusal_of(const c10::Error& error) {
  const std::string_view what = error.what_without_backtrace();
  if (is_data_access(error)) return std::make_exception_ptr(DataAccess(call_stack()));
  if (const auto not_here = what.find(operators::kElementsNotHere); not_here != std::string_view::npos) {
    const auto end = not_here + std::string_view(operators::kElementsNotHere).size();
    return std::make_exception_ptr(NotCapturable(std::string(what.substr(0, end)), kGathersNothing, call_stack()));
  }
  if (what.find(kNoHistoryMessage) != std::string_view::npos)
    return std::make_exception_ptr(NotCapturable(kGradientsInside, kCallOutside, call_stack()));
  if (!is_about_a_fake(what)) return nullptr;
  return std::make_exception_ptr(NotCapturable(
      "the function looks at a tensor without an operator: " + std::string(what), kCallOutside, call_stack()));
}

std::exception_ptr refusal_of(void* exception, const std::type_info& type) {
  if (const auto* error = exec::caught_as<FakeError>(exception, type)) return std::make_exception_ptr(*error);
  if (const auto* error = exec::caught_as<shapes::DataDependentError>(exception, type)) {
    return std::make_exception_ptr(*error);
  }
  // The code has computed with a symbolic size what eager mode computes with a number.
  const auto* symbolic = exec::caught_as<shapes::ShapeError>(exception, type);
  if (symbolic != nullptr && !shapes::Attempt::in_progress()) return std::make_exception_ptr(*symbolic);
  const auto* error = exec::caught_as<c10::Error>(exception, type);
  return error != nullptr ? refusal_of(*error) : nullptr;
}

void note_throw(void* exception, const std::type_info& type) noexcept {
  Tracer* const tracer = Tracer::current();
  if (tracer == nullptr) return;
  // When the rest of the code runs eagerly, the code may still hold fakes without memory (see EagerRest::make_real()).
  const auto* error = tracer->rest() ? exec::caught_as<c10::Error>(exception, type) : nullptr;
  if (error != nullptr && is_data_access(*error)) tracer->segments().note_refusal(refusal_of(*error));
  if (!tracer->is_in_user_code()) return;
  if (std::exception_ptr refusal = refusal_of(exception, type)) tracer->segments().note_refusal(std::move(refusal));
}

}  // namespace

void watch_refusals() { exec::observe_throws(&note_throw); }

}  // namespace rehearse::capture
