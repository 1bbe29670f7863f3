// SPDX-License-Identifier: BSD-3-Clause
#include "torch_state/tls/elf_tls.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include <rehearse_internal/libtorch/version.h>
#include <rehearse_internal/torch_state/torch_state_error.h>

extern "C" {

struct RehearseTlsIndex {
  std::size_t module;
  std::size_t offset;
};

// A function of the dynamic linker that the ABI defines and no header declares. Returns the address of a variable in
// the calling thread.
void* __tls_get_addr(RehearseTlsIndex* index);
}

namespace rehearse::torch_state {
namespace {

const std::string kWayOut =
    "Use the official wheel or archive of LibTorch as it is (pip install torch==" + std::string(libtorch::kVersion) +
    "), not a stripped copy.";
constexpr const char* kExecutable = "/proc/self/exe";

class File {
 public:
  explicit File(const std::string& path) : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) fail(std::strerror(errno));
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { ::close(fd_); }

  // Reads up to `bytes`; fewer only at the end of the file.
  std::size_t read_some(void* out, std::size_t bytes, std::size_t offset) const {
    std::size_t done = 0;
    while (done < bytes) {
      const ssize_t got = ::pread(fd_, static_cast<char*>(out) + done, bytes - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail(std::strerror(errno));
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

  void read(void* out, std::size_t bytes, std::size_t offset) const {
    if (read_some(out, bytes, offset) != bytes) fail("the file ends early");
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw TorchStateError(TorchStateError::Reason::unreadable, path_,
                          "cannot read the symbol table of " + path_ + ": " + why);
  }

  std::string path_;
  int fd_;
};

struct LoadedModule {
  std::string_view soname;
  bool found = false;
  std::string path;
  const std::byte* tls_init = nullptr;
  std::size_t tls_init_bytes = 0;
  std::size_t tls_block_bytes = 0;
  std::size_t tls_id = 0;
  std::string build_id;
};

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

void read_build_id(const dl_phdr_info& info, const ElfW(Phdr) & segment, LoadedModule& module) {
  const auto* at = reinterpret_cast<const char*>(info.dlpi_addr + segment.p_vaddr);
  const char* end = at + segment.p_memsz;
  while (at + sizeof(ElfW(Nhdr)) <= end) {
    const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(at);
    const char* name = at + sizeof(*note);
    const char* text = name + ((note->n_namesz + 3u) & ~3u);
    if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
      for (unsigned k = 0; k < note->n_descsz; ++k) {
        const auto byte = static_cast<unsigned char>(text[k]);
        module.build_id += {"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]};
      }
      return;
    }
    at = text + ((note->n_descsz + 3u) & ~3u);
  }
}

int visit(dl_phdr_info* info, std::size_t, void* data) {
  auto& module = *static_cast<LoadedModule*>(data);
  if (base_name(info->dlpi_name) != module.soname) return 0;
  module.found = true;
  module.path = info->dlpi_name;
  module.tls_id = info->dlpi_tls_modid;
  for (int k = 0; k < info->dlpi_phnum; ++k) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[k];
    if (segment.p_type == PT_TLS) {
      module.tls_init = reinterpret_cast<const std::byte*>(info->dlpi_addr + segment.p_vaddr);
      module.tls_init_bytes = segment.p_filesz;
      module.tls_block_bytes = segment.p_memsz;
    } else if (segment.p_type == PT_NOTE && module.build_id.empty()) {
      read_build_id(*info, segment, module);
    }
  }
  return 1;
}

LoadedModule find_loaded(std::string_view soname) {
  LoadedModule module;
  module.soname = soname;
  dl_iterate_phdr(visit, &module);
  return module;
}

struct SymbolTable {
  ElfW(Shdr) symbols;
  ElfW(Shdr) names;
};

// `type`: SHT_SYMTAB, or SHT_DYNSYM for what a stripped file still has.
std::optional<SymbolTable> find_symbol_table(const File& file, unsigned type) {
  ElfW(Ehdr) header;
  file.read(&header, sizeof header, 0);
  std::vector<ElfW(Shdr)> sections(header.e_shnum);
  file.read(sections.data(), sections.size() * sizeof(ElfW(Shdr)), header.e_shoff);
  for (const auto& section : sections) {
    if (section.sh_type == type && section.sh_link < sections.size())
      return SymbolTable{section, sections[section.sh_link]};
  }
  return std::nullopt;
}

// The table has half a million entries, and only one in a thousand matters. Reading them through a small buffer that
// stays in the cache is cheaper than mapping 13 MB, whose page faults would cost more than the scan.
std::vector<ElfW(Sym)> read_tls_entries(const File& file, const ElfW(Shdr) & table) {
  constexpr std::size_t kBatch = 8192;
  const auto buffer = std::make_unique_for_overwrite<ElfW(Sym)[]>(kBatch);
  const std::size_t count = table.sh_size / sizeof(ElfW(Sym));
  std::vector<ElfW(Sym)> found;
  for (std::size_t first = 0; first < count; first += kBatch) {
    const std::size_t batch = std::min(kBatch, count - first);
    file.read(buffer.get(), batch * sizeof(ElfW(Sym)), table.sh_offset + first * sizeof(ElfW(Sym)));
    for (std::size_t k = 0; k < batch; ++k) {
      const ElfW(Sym)& symbol = buffer[k];
      if (ELF64_ST_TYPE(symbol.st_info) == STT_TLS && symbol.st_shndx != SHN_UNDEF) found.push_back(symbol);
    }
  }
  return found;
}

// Names that an AArch64 toolchain gives to positions, not to variables.
bool is_marker(std::string_view name) { return name.starts_with('$') || name == "_TLS_MODULE_BASE_"; }

}  // namespace

bool is_loaded(std::string_view soname) { return find_loaded(soname).found; }

std::vector<TlsSymbol> read_tls_symbols(const std::string& path) {
  const File file(path);
  auto table = find_symbol_table(file, SHT_SYMTAB);
  if (!table && path == kExecutable) table = find_symbol_table(file, SHT_DYNSYM);
  if (!table) {
    throw TorchStateError(TorchStateError::Reason::no_symbol_table, path,
                          path +
                              " has no symbol table (.symtab), so the thread-local variables that belong to each rank "
                              "cannot be found. " +
                              kWayOut);
  }
  std::vector<TlsSymbol> symbols;
  for (const auto& entry : read_tls_entries(file, table->symbols)) {
    char name[kTlsNameMax + 1];
    const std::size_t got = file.read_some(name, kTlsNameMax, table->names.sh_offset + entry.st_name);
    name[got] = '\0';
    if (is_marker(name)) continue;
    const auto binding = ELF64_ST_BIND(entry.st_info);
    symbols.push_back({name, entry.st_value, entry.st_size, binding == STB_GNU_UNIQUE || binding == STB_WEAK});
  }
  std::sort(symbols.begin(), symbols.end(), [](const TlsSymbol& a, const TlsSymbol& b) { return a.offset < b.offset; });
  return symbols;
}

namespace {

TlsModule read_module(const LoadedModule& loaded, const std::string& path) {
  TlsModule module;
  module.path = path;
  module.id = loaded.tls_id;
  module.build_id = loaded.build_id;
  module.block_bytes = loaded.tls_block_bytes;
  module.initial.resize(loaded.tls_block_bytes);
  std::copy_n(loaded.tls_init, loaded.tls_init_bytes, module.initial.begin());
  module.symbols = read_tls_symbols(path);
  return module;
}

}  // namespace

TlsModule read_tls_module(std::string_view soname) {
  using Reason = TorchStateError::Reason;
  const LoadedModule loaded = find_loaded(soname);
  if (!loaded.found) {
    throw TorchStateError(Reason::not_loaded, std::string(soname),
                          std::string(soname) + " is not loaded as a shared library. " + kWayOut);
  }
  return read_module(loaded, loaded.path);
}

// The dynamic linker lists the executable without a name.
TlsModule read_tls_of_executable() { return read_module(find_loaded(""), kExecutable); }

std::byte* tls_block_of_this_thread(const TlsModule& module) noexcept {
  RehearseTlsIndex index{module.id, 0};
  return static_cast<std::byte*>(__tls_get_addr(&index));
}

}  // namespace rehearse::torch_state
