// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <optional>
#include <string>

#include <rehearse_internal/exec/failure.h>

namespace rehearse::exec {

// The exception's text or, if its type has none, the type's name.
std::string failure_text(const std::exception_ptr& error);

// The reason for std::terminate(): the text of the uncaught exception or, if `error` is null, a text that names a
// likely cause.
std::string terminate_text(const std::exception_ptr& error);

// The exception from which the running fiber unwinds, with its text. Nothing if the fiber does not unwind.
std::optional<Unwinding> unwinding_now();

}  // namespace rehearse::exec
