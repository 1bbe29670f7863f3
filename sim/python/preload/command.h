// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::python {

// cli::command(). The extension calls it by this name, because only what the library itself calls is linked into it.
int command(int argc, const char* const* argv);

}  // namespace rehearse::python
