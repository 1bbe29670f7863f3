// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <sys/types.h>

namespace rehearse::exec::interpose {

// write() to a file that never waits for another rank, through the world's FileInterceptor.
ssize_t write_to_file(int file, const void* data, std::size_t bytes);

}  // namespace rehearse::exec::interpose
