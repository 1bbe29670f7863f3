// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/capture/errors.h>

namespace rehearse::capture {
namespace {

std::string with_line(const exec::CallSite& where, const std::string& message) {
  const std::string line = where.describe();
  return line.empty() ? message : line + ": " + message;
}

}  // namespace

CaptureError::CaptureError(const exec::CallSite& where, const std::string& message)
    : std::runtime_error(with_line(where, message)), where_(where) {}

DataDependentRead::DataDependentRead(const exec::CallSite& where, const std::string& read)
    : CaptureError(where, read +
                              "() asks for the data of a tensor that is being captured and has none; use "
                              "rehearse::sym_item() where an integer becomes a size or a factor, or put the code that "
                              "needs the value into a rehearse::eager_region()"),
      read_(read) {}

}  // namespace rehearse::capture
