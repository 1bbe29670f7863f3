// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/capture/fake_errors.h>

#include <string_view>
#include <utility>

#include <rehearse_internal/exec/throw_site.h>
#include "capture/fake/fake_impl.h"

namespace rehearse::capture {
namespace {

std::string message(const std::string& what_happened, const std::string& cure, const exec::CallSite& where) {
  std::string text = what_happened;
  const std::string line = where.describe();
  if (!line.empty()) text += ", at " + line;
  text += ". " + cure;
  const std::string lines = line.empty() ? std::string() : where.how_to_see_lines();
  if (!lines.empty()) text += " " + lines;
  return text;
}

}  // namespace

FakeError::FakeError(const std::string& what_happened, std::string cure, exec::CallSite where)
    : std::runtime_error(message(what_happened, cure, where)), cure_(std::move(cure)), where_(std::move(where)) {}

DataDependentRead::DataDependentRead(std::string operator_name, exec::CallSite where)
    : FakeError(operator_name + " needs the data of a fake tensor",
                "Compute with tensors instead (at::where), or read the value in an eager region.", std::move(where)),
      operator_name_(std::move(operator_name)) {}

DataAccess::DataAccess(exec::CallSite where)
    : FakeError("The memory of a fake tensor was asked for (data_ptr(), an accessor, printing)",
                "A tensor that is being captured has no data: do this outside of the captured function or in an eager "
                "region.",
                std::move(where)) {}

FakeOutsideMode::FakeOutsideMode(std::string operator_name, exec::CallSite where)
    : FakeError(operator_name + " was called with a fake tensor where no capture is on",
                "A fake tensor lives no longer than the capture that made it, and in its fiber only: keep real tensors "
                "in members and globals.",
                std::move(where)),
      operator_name_(std::move(operator_name)) {}

UnknownShape::UnknownShape(std::string operator_name, const std::string& reason, exec::CallSite where)
    : FakeError("The sizes of what " + operator_name + " gives cannot be told: " + reason,
                "Give the sizes as plain numbers, or call it in an eager region.", std::move(where)),
      operator_name_(std::move(operator_name)) {}

bool is_data_access(const c10::Error& error) {
  return std::string_view(error.what_without_backtrace()).find(kDataAccessMessage) != std::string_view::npos;
}

void with_typed_errors(const std::function<void()>& function) {
  const exec::KeepThrowSites keep;
  try {
    function();
  } catch (const c10::Error& error) {
    if (!is_data_access(error)) throw;
    throw DataAccess(exec::last_throw());
  }
}

}  // namespace rehearse::capture
