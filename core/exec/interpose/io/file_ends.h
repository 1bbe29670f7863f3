// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::exec::interpose {

enum class FileKind {
  other,  // never waits for another rank: regular files, terminals, non-blocking files
  pipe,
  socket,
};
FileKind kind_of_blocking(int file) noexcept;

// Whether the file is ready for `events` of poll(), or in error. Does not wait, except for a moment if the file is a
// network socket.
bool is_ready(int file, short events) noexcept;

// Whether another rank of this process may make the file ready. True for a pipe whose other end is in this process, for
// a socket whose peer is this process, and for a listening socket.
bool ends_in_this_process(int file, FileKind kind, short events);

// Whether another rank of this process may unlock a file that flock() found locked.
bool is_locked_by_this_process(int file);

}  // namespace rehearse::exec::interpose
