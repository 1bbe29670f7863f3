// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What the command exits with where no verdict says it (exit_code() of rehearse/job/verdict.h does). Part of the
// command's interface: --help lists them, scripts compare them.
namespace rehearse::cli {

inline constexpr int kExitDisagree = 7;  // of `validate`
inline constexpr int kExitUsage = 64;
inline constexpr int kExitUnavailable = 69;
inline constexpr int kExitInternal = 70;
inline constexpr int kExitSystem = 71;
inline constexpr int kExitOutput = 74;
// The shell gives it, in the place of a command that SIGKILL has ended.
inline constexpr int kExitKilled = 137;

}  // namespace rehearse::cli
