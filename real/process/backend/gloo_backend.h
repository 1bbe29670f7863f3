// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <string>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace rehearse::real {

// c10d's own ProcessGroupGloo: this process is `rank` of `size`, which meet through `store`. Its network interfaces are
// those of GLOO_SOCKET_IFNAME (names, with commas between); without it the loopback interface where `master`, the host
// that all ranks know, is one; else that of this host's name. Blocks until all ranks are connected, `timeout` at most;
// that is each operation's limit, too (0: a day).
c10::intrusive_ptr<c10d::Backend> make_gloo(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                            std::chrono::milliseconds timeout, const std::string& master);

}  // namespace rehearse::real
