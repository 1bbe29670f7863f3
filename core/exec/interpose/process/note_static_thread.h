// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::exec {
class Fiber;
}

namespace rehearse::exec::interpose {

// `fiber` is about to start a thread. Records the call site if the fiber is initialising a static variable, or is in a
// routine of pthread_once() or std::call_once(). Records equal call sites of a rank once.
void note_if_static(const Fiber& fiber);

}  // namespace rehearse::exec::interpose
