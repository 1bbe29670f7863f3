// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::exec {

// Called when code registers the destructor of a thread-local object. In a rank, the keeper is not called for objects
// of libraries whose state is exchanged between ranks. If the keeper returns true, it has kept the destructor, and the
// code that set the keeper must run the destructor. `library`: the __dso_handle of the registering code.
using ThreadExitKeeper = bool (*)(void (*destroy)(void*), void* object, const void* library) noexcept;

// Initially null: the C++ library keeps the destructors per thread.
extern constinit ThreadExitKeeper thread_exit_keeper;

}  // namespace rehearse::exec
