// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/exec/build_id.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/auxv.h>

namespace rehearse::exec {
namespace {

constexpr std::size_t kNoteAlignment = 4;

std::size_t padded(std::size_t size) { return (size + kNoteAlignment - 1) / kNoteAlignment * kNoteAlignment; }

// The build id among the notes of one segment; empty if there is none.
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

struct Search {
  std::uintptr_t address = 0;
  std::string id = {};
};

bool holds(const dl_phdr_info& object, std::uintptr_t address) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const auto& segment = object.dlpi_phdr[i];
    const std::uintptr_t begin = object.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && address >= begin && address - begin < segment.p_memsz) return true;
  }
  return false;
}

std::string build_id_of(const dl_phdr_info& object) {
  std::string id;
  for (int i = 0; i < object.dlpi_phnum && id.empty(); ++i) {
    const auto& segment = object.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    id = build_id_in(reinterpret_cast<const std::byte*>(object.dlpi_addr + segment.p_vaddr), segment.p_memsz);
  }
  return id;
}

std::string text_of_file(const char* path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  const auto time = std::filesystem::last_write_time(path, error).time_since_epoch().count();
  return fmt::format("{} of {} bytes, {}", path, bytes, time);
}

// A callback of dl_iterate_phdr(): returning 1 ends the iteration.
int look_at(dl_phdr_info* object, std::size_t, void* found) {
  auto& search = *static_cast<Search*>(found);
  if (!holds(*object, search.address)) return 0;
  search.id = build_id_of(*object);
  return 1;
}

struct Loaded {
  std::string id, path;
};

int add_to(dl_phdr_info* object, std::size_t, void* found) {
  const char* const name = object->dlpi_name;
  const char* const path = *name == '\0' ? "/proc/self/exe" : name;  // the loader gives the executable no name
  static_cast<std::vector<Loaded>*>(found)->push_back({build_id_of(*object), path});
  return 0;
}

}  // namespace

std::string build_id_at(const void* address) {
  Search search{reinterpret_cast<std::uintptr_t>(address)};
  dl_iterate_phdr(look_at, &search);
  return search.id;
}

std::set<std::string> loaded_code() {
  std::vector<Loaded> objects;
  dl_iterate_phdr(add_to, &objects);
  std::set<std::string> code;
  for (const Loaded& each : objects) code.insert(each.id.empty() ? text_of_file(each.path.c_str()) : each.id);
  return code;
}

std::string executable_build_id() { return build_id_at(reinterpret_cast<const void*>(getauxval(AT_PHDR))); }

}  // namespace rehearse::exec
