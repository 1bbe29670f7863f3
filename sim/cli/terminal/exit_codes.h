// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The command's exit codes for cases without a verdict. (exit_code() in rehearse/job/verdict.h gives the verdicts'
// codes.) They are part of the command's interface: --help lists them, scripts compare them.
namespace rehearse::cli {

inline constexpr int kExitDisagree = 7;  // a run did not end as expected; `validate`: the modes disagree
inline constexpr int kExitUsage = 64;
inline constexpr int kExitUnavailable = 69;
inline constexpr int kExitInternal = 70;
inline constexpr int kExitSystem = 71;
inline constexpr int kExitOutput = 74;
// The shell's exit code for a command that SIGKILL ended.
inline constexpr int kExitKilled = 137;

}  // namespace rehearse::cli
