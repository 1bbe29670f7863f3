// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Thread-specific values (pthread_key_create) of an interpreter's library: each fiber has its own, as each thread
// would. CPython keeps the state of the current thread there, pybind11 and Dynamo what belongs to it.
namespace rehearse::python {

// In a process that a rank has forked: gives the thread the values of the running fiber, which leaves its world.
void keep_thread_values() noexcept;

// For how many keys fibers have values of their own.
int fiber_keys() noexcept;

}  // namespace rehearse::python
