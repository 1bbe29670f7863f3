// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::exec {

// Asked about the destructor of each thread-local object that belongs to no library whose state is exchanged between
// ranks: true, it has been kept, and whoever set this runs it. `library`: the __dso_handle of the code that registers
// it.
using ThreadExitKeeper = bool (*)(void (*destroy)(void*), void* object, const void* library) noexcept;

// Null, as at first: threads keep their own.
extern constinit ThreadExitKeeper thread_exit_keeper;

}  // namespace rehearse::exec
