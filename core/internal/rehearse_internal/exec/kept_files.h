// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// File descriptors that belong to the run, such as pipes to watching processes and the stream of its results. Programs
// that close descriptors they did not open, as daemons close 3 to 255, must not close these. Therefore the functions
// that close descriptors leave these open: close() fails with EBADF, dup2() onto one of them fails with EBUSY, and
// close_range() skips them.
//
// Applies to the process that called keep_open(). A forked child may close all files but those for which it calls
// keep_open() itself.
namespace rehearse::exec {

// Thread safe. Has no effect for a descriptor of 65536 or more.
void keep_open(int file) noexcept;

// Call it before you close a file that you kept open.
void stop_keeping(int file) noexcept;

bool is_kept_open(int file) noexcept;

}  // namespace rehearse::exec
