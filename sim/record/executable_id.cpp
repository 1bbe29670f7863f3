// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <cstring>

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <rehearse_internal/sim/run_log.h>

namespace rehearse::sim {
namespace {

constexpr std::size_t kNoteAlignment = 4;

std::size_t padded(std::size_t size) { return (size + kNoteAlignment - 1) / kNoteAlignment * kNoteAlignment; }

// The build id among the notes of one segment; empty when it is not there.
std::string build_id_in(const std::byte* notes, std::size_t size) {
  std::size_t offset = 0;
  while (offset + sizeof(ElfW(Nhdr)) <= size) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes + offset, sizeof note);
    const std::size_t name = offset + sizeof note;
    const std::size_t content = name + padded(note.n_namesz);
    if (content + note.n_descsz > size) return {};
    const bool is_gnu =
        note.n_namesz == sizeof ELF_NOTE_GNU && std::memcmp(notes + name, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0;
    if (is_gnu && note.n_type == NT_GNU_BUILD_ID) {
      std::string id;
      for (std::size_t i = 0; i < note.n_descsz; ++i) {
        id += fmt::format("{:02x}", std::to_integer<unsigned>(notes[content + i]));
      }
      return id;
    }
    offset = content + padded(note.n_descsz);
  }
  return {};
}

// dl_iterate_phdr names the executable first; returning 1 ends the walk there.
int take_first(dl_phdr_info* info, std::size_t, void* found) {
  auto& id = *static_cast<std::string*>(found);
  for (int i = 0; i < info->dlpi_phnum && id.empty(); ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    id = build_id_in(reinterpret_cast<const std::byte*>(info->dlpi_addr + segment.p_vaddr), segment.p_memsz);
  }
  return 1;
}

}  // namespace

std::string executable_build_id() {
  std::string id;
  dl_iterate_phdr(take_first, &id);
  return id.empty() ? "none" : id;
}

}  // namespace rehearse::sim
