// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// File descriptors that belong to the run: the pipes to processes that watch it, the stream of its results. A program
// may close descriptors that it did not open, as daemons close 3 to 255. It does not reach these: close() and its like
// answer as if they were closed already, and leave them open.
//
// Holds in the process that has said so. A process that it forks closes what it likes, until it keeps files itself.
namespace rehearse::exec {

// Thread safe. Has no effect for a descriptor of 65536 or more.
void keep_open(int file) noexcept;

// For the owner, before it closes the file.
void stop_keeping(int file) noexcept;

bool is_kept_open(int file) noexcept;

}  // namespace rehearse::exec
