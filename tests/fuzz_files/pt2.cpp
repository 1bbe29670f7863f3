// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <rehearse/graph/exported_program.h>
#include <zlib.h>

#include "fuzz_files/input.h"

namespace {

std::size_t number_at(std::string_view bytes, std::size_t at, int width) {
  std::size_t number = 0;
  while (width-- > 0) number = number << 8 | static_cast<unsigned char>(bytes[at + static_cast<std::size_t>(width)]);
  return number;
}

// Corrects the checksums in a zip archive's directory. Otherwise the archive's reader would refuse each record that
// differs from that of a seed. torch.export does not compress records.
std::string with_checksums(std::string zip) {
  constexpr std::size_t kEntry = 46, kHeader = 30;
  for (auto at = zip.find("PK\1\2"); at != zip.npos && zip.size() - at >= kEntry; at = zip.find("PK\1\2", at + 1)) {
    const auto size = number_at(zip, at + 20, 4), header = number_at(zip, at + 42, 4);
    if (header + kHeader > zip.size()) continue;
    const auto begin = header + kHeader + number_at(zip, header + 26, 2) + number_at(zip, header + 28, 2);
    if (begin + size > zip.size()) continue;
    const auto* const record = reinterpret_cast<const Bytef*>(zip.data() + begin);
    const auto sum = static_cast<std::uint32_t>(crc32(0, record, static_cast<uInt>(size)));
    std::memcpy(&zip[at + 16], &sum, sizeof sum);
  }
  return zip;
}

}  // namespace

// An archive of torch.export, with its tensors.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rehearse;
  try {
    graph::load_pt2(fuzz::file_of(with_checksums(std::string(fuzz::text_of(data, size)))));
  } catch (const graph::ImportError&) {
  }
  return 0;
}

// LibTorch's reader of archives loses memory when it refuses one.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
