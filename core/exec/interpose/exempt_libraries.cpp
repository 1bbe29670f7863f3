// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/exec/exempt_libraries.h>

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "real.h"

namespace rehearse::exec {
namespace {

// A shared library of this process at its load address; valid while it stays loaded.
struct LoadedLibrary {
  std::string path;
  ElfW(Addr) base = 0;
  std::vector<ElfW(Phdr)> segments;
};

// An import to replace: `from` is the function that the loader bound, `to` the new one.
struct NewImport {
  const void* from;
  const void* to;
};

static_assert(sizeof(void*) == 8, "relocations of x86-64 are read");

// The entries of the dynamic section that concern imports: the tables that the loader itself uses.
struct ImportTables {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  std::span<const ElfW(Rela)> calls;  // may be bound lazily
  std::span<const ElfW(Rela)> data;
};

const ElfW(Phdr) * find_segment(const LoadedLibrary& library, std::uint32_t type) {
  for (const auto& segment : library.segments) {
    if (segment.p_type == type) return &segment;
  }
  return nullptr;
}

ImportTables read_tables(const LoadedLibrary& library) {
  ImportTables tables;
  const auto* const dynamic = find_segment(library, PT_DYNAMIC);
  if (dynamic == nullptr) return tables;
  const ElfW(Rela)* calls = nullptr;
  const ElfW(Rela)* data = nullptr;
  std::size_t calls_bytes = 0;
  std::size_t data_bytes = 0;
  for (auto* entry = reinterpret_cast<const ElfW(Dyn)*>(library.base + dynamic->p_vaddr); entry->d_tag != DT_NULL;
       ++entry) {
    // The loader has converted these entries to addresses, except in sections that it must not write.
    const auto value = entry->d_un.d_ptr;
    const auto address = value >= library.base ? value : library.base + value;
    switch (entry->d_tag) {
      case DT_SYMTAB:
        tables.symbols = reinterpret_cast<const ElfW(Sym)*>(address);
        break;
      case DT_STRTAB:
        tables.names = reinterpret_cast<const char*>(address);
        break;
      case DT_JMPREL:
        calls = reinterpret_cast<const ElfW(Rela)*>(address);
        break;
      case DT_RELA:
        data = reinterpret_cast<const ElfW(Rela)*>(address);
        break;
      case DT_PLTRELSZ:
        calls_bytes = value;
        break;
      case DT_RELASZ:
        data_bytes = value;
        break;
      default:
        break;
    }
  }
  if (tables.symbols == nullptr || tables.names == nullptr) return {};
  if (calls != nullptr) tables.calls = {calls, calls_bytes / sizeof(ElfW(Rela))};
  if (data != nullptr) tables.data = {data, data_bytes / sizeof(ElfW(Rela))};
  return tables;
}

// Writes to a library's memory. Unseals what the loader has sealed (RELRO) if necessary, and seals it again in the
// destructor.
class Unsealed {
 public:
  explicit Unsealed(const LoadedLibrary& library) : path_(library.path) {
    const auto* const sealed = find_segment(library, PT_GNU_RELRO);
    if (sealed == nullptr) return;
    const auto page = static_cast<ElfW(Addr)>(::sysconf(_SC_PAGESIZE));
    first_ = (library.base + sealed->p_vaddr) / page * page;
    // The loader seals whole pages only: a part of a page at the end stays writable.
    end_ = (library.base + sealed->p_vaddr + sealed->p_memsz) / page * page;
  }
  Unsealed(const Unsealed&) = delete;
  Unsealed& operator=(const Unsealed&) = delete;
  ~Unsealed() {
    if (open_) protect(PROT_READ);
  }

  void write(std::uintptr_t* slot, std::uintptr_t value) {
    const auto address = reinterpret_cast<ElfW(Addr)>(slot);
    if (!open_ && address >= first_ && address < end_) {
      if (protect(PROT_READ | PROT_WRITE) != 0) {
        throw std::system_error(errno, std::generic_category(), "the functions that " + path_ + " calls");
      }
      open_ = true;
    }
    __atomic_store_n(slot, value, __ATOMIC_RELEASE);  // other threads may be calling the function
  }

 private:
  int protect(int how) const noexcept { return ::mprotect(reinterpret_cast<void*>(first_), end_ - first_, how); }

  const std::string& path_;
  ElfW(Addr) first_ = 0;
  ElfW(Addr) end_ = 0;
  bool open_ = false;
};

bool lies_in(const LoadedLibrary& library, std::uintptr_t address) {
  for (const auto& segment : library.segments) {
    const auto begin = library.base + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && address >= begin && address < begin + segment.p_memsz) return true;
  }
  return false;
}

// The new value of the slot that `rela` fills (GOT entry or pointer). Returns nullopt if the slot holds neither
// `import.from` nor an unbound stub.
std::optional<std::uintptr_t> new_value(const LoadedLibrary& library, const ElfW(Rela) & rela, bool is_import,
                                        const NewImport& import) {
  const auto type = ELF64_R_TYPE(rela.r_info);
  const auto addend = type == R_X86_64_64 ? static_cast<std::uintptr_t>(rela.r_addend) : 0;
  const auto held =
      __atomic_load_n(reinterpret_cast<const std::uintptr_t*>(library.base + rela.r_offset), __ATOMIC_ACQUIRE);
  const bool from_loader = held == reinterpret_cast<std::uintptr_t>(import.from) + addend;
  // Lazy binding: the slot still holds the address of the library's own stub, which calls the loader.
  const bool unbound = type == R_X86_64_JUMP_SLOT && is_import && lies_in(library, held);
  if (!from_loader && !unbound) return std::nullopt;
  return reinterpret_cast<std::uintptr_t>(import.to) + addend;
}

// All loaded libraries without the executable, in the order in which they were loaded.
std::vector<LoadedLibrary> loaded_libraries() {
  std::vector<LoadedLibrary> libraries;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        if (info->dlpi_name == nullptr || *info->dlpi_name == '\0') return 0;  // skip the executable
        static_cast<std::vector<LoadedLibrary>*>(out)->push_back(
            {info->dlpi_name, info->dlpi_addr, {info->dlpi_phdr, info->dlpi_phdr + info->dlpi_phnum}});
        return 0;
      },
      &libraries);
  return libraries;
}

// Calls `wanted` for each symbol that the library imports. Writes the new address where the library keeps the address
// of the function, also if the loader has not bound the function yet. Does not change an address that is already bound
// to a function other than `from`. Returns how many addresses it has written. Throws std::system_error if it cannot
// write.
std::size_t rebind_imports(const LoadedLibrary& library,
                           const std::function<std::optional<NewImport>(std::string_view symbol)>& wanted) {
  const ImportTables tables = read_tables(library);
  Unsealed memory(library);
  std::size_t written = 0;
  for (const auto& table : {tables.calls, tables.data}) {
    for (const auto& rela : table) {
      const auto type = ELF64_R_TYPE(rela.r_info);
      if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT && type != R_X86_64_64) continue;
      const auto& symbol = tables.symbols[ELF64_R_SYM(rela.r_info)];
      const auto import = wanted(tables.names + symbol.st_name);
      if (!import) continue;
      const auto value = new_value(library, rela, symbol.st_shndx == SHN_UNDEF, *import);
      if (!value) continue;
      memory.write(reinterpret_cast<std::uintptr_t*>(library.base + rela.r_offset), *value);
      ++written;
    }
  }
  return written;
}

using interpose::Interposed;

// The functions that exempt libraries get instead of ours, by name.
class RealFunctions {
 public:
  RealFunctions() {
    for (const auto functions : interpose::all_functions()) {
      for (const auto& function : functions) functions_.emplace(function.name, function);
    }
  }

  std::optional<NewImport> find(std::string_view name) const {
    const auto found = functions_.find(name);
    if (found == functions_.end()) return std::nullopt;
    const Interposed& function = found->second;
    const void* const real =
        function.exempt != nullptr ? function.exempt : interpose::find_real(function.name, function.version);
    return NewImport{function.ours, real};
  }

 private:
  std::unordered_map<std::string_view, Interposed> functions_;
};

struct Close {
  void operator()(void* handle) const noexcept { ::dlclose(handle); }
};

}  // namespace

std::vector<ExemptLibrary> exempt_libraries(const std::function<bool(std::string_view path)>& takes) {
  static const RealFunctions real;
  std::vector<ExemptLibrary> changed;
  for (const auto& library : loaded_libraries()) {
    if (!takes(library.path)) continue;
    // Held, so that no other thread unloads the library. Null if a thread has unloaded it already.
    const std::unique_ptr<void, Close> held(::dlopen(library.path.c_str(), RTLD_LAZY | RTLD_NOLOAD));
    if (held == nullptr) continue;
    const auto imports = rebind_imports(library, [](std::string_view symbol) { return real.find(symbol); });
    if (imports > 0) changed.push_back({library.path, imports});
  }
  return changed;
}

}  // namespace rehearse::exec
