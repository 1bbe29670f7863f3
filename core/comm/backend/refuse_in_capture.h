// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/capture/errors.h>
#include <rehearse/capture/fake_mode.h>
#include <rehearse/exec/call_site.h>

namespace rehearse::comm {

// A capture sees what comes by LibTorch's dispatcher, as the calls of a c10d::ProcessGroup do. What comes to a back end
// past it would be done now, and never by the graph.
inline void refuse_in_capture(const char* what) {
  if (capture::FakeMode::current() == nullptr) [[likely]]
    return;
  throw capture::NotCapturable(std::string(what) + " is called in a captured function",
                               "Use the calls of c10d::ProcessGroup, or put it into a rehearse::eager_region().",
                               exec::CallSite::capture());
}

}  // namespace rehearse::comm
