// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::exec {

// From the first world on, std::terminate() in a rank's fiber (an exception meets a noexcept function, a joinable
// std::thread is destroyed) ends that rank as failed and not the process. Elsewhere the handler that was installed
// before runs as it did.
void install_terminate_handler();

}  // namespace rehearse::exec
