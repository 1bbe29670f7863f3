// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <optional>
#include <string>

#include <rehearse_internal/exec/failure.h>

namespace rehearse::exec {

// The exception's text; where its type has none, the type's name.
std::string failure_text(const std::exception_ptr& error);

// Why std::terminate() is called: the text of the exception that nobody caught; null: there is none.
std::string terminate_text(const std::exception_ptr& error);

// The exception from which the running fiber unwinds, with its text.
std::optional<Unwinding> unwinding_now();

}  // namespace rehearse::exec
