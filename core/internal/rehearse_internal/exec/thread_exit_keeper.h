// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::exec {

// Called when code registers the destructor of a thread-local object that belongs to no library whose state is
// exchanged between ranks. Returns true if it has kept the destructor; then its owner must run it. `library`: the
// __dso_handle of the registering code.
using ThreadExitKeeper = bool (*)(void (*destroy)(void*), void* object, const void* library) noexcept;

// Initially null: the C++ library keeps the destructors per thread.
extern constinit ThreadExitKeeper thread_exit_keeper;

}  // namespace rehearse::exec
