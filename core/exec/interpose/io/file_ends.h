// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::exec::interpose {

// What a file descriptor stands for, as far as waiting goes.
enum class FileKind {
  other,  // never waits for another rank: regular files, terminals, what is not blocking
  pipe,
  socket,
};
FileKind kind_of_blocking(int file) noexcept;

// Is it ready for `events` of poll(), or in error? Without waiting, but for the little that loopback may take.
bool is_ready(int file, short events) noexcept;

// May another rank of this process make it ready? True of a pipe of which the process has the other end, of a socket
// whose peer is the process, and of one that listens.
bool ends_in_this_process(int file, FileKind kind, short events);

// flock() found the file locked: may another rank of this process unlock it?
bool is_locked_by_this_process(int file);

}  // namespace rehearse::exec::interpose
