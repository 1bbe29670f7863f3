// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::exec {
class Fiber;
}

namespace rehearse::exec::interpose {

// `fiber` is about to start a thread. Records the call site if the fiber is initialising a static variable.
void note_if_static(const Fiber& fiber);

}  // namespace rehearse::exec::interpose
