// SPDX-License-Identifier: BSD-3-Clause
#include "output_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

namespace rehearse::sim {

void write_file(const std::filesystem::path& file, const std::function<void(std::ostream&)>& write) {
  errno = 0;
  std::ofstream out(file, std::ios::binary);
  if (out) write(out);
  out.close();
  if (!out) throw OutputError(fmt::format("{}: cannot be written: {}", file.string(), std::strerror(errno)));
}

}  // namespace rehearse::sim
