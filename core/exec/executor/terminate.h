// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::exec {

// From the first world on, std::terminate() in a rank's fiber (an exception reaches a noexcept function, a joinable
// std::thread is destroyed) fails that rank instead of ending the process. Elsewhere the previously installed handler
// runs.
void install_terminate_handler();

}  // namespace rehearse::exec
