// SPDX-License-Identifier: BSD-3-Clause
#include "exec/call_site/symbolize.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>

#include <rehearse_internal/exec/interpreter.h>
#include <rehearse_internal/exec/native_scope.h>

#include "exec/call_site/line_table.h"
#include "exec/call_site/own_sources.h"

namespace rehearse::exec {
namespace {

// Prefixes of library names. The prefixes of LibTorch's libraries include the next character, because a user's library
// may be called libtorch_extension.so.
constexpr std::string_view kForeignLibraries[] = {
    "libtorch.", "libtorch_cpu.", "libtorch_cuda.", "libtorch_cuda_", "libtorch_python.", "libtorch_global_deps.",
    "libc10.",   "libc10_",       "libstdc++.",     "libc++.",        "libc++abi.",       "libc.",
    "libm.",     "libgcc_s.",     "libpthread.",    "libdl.",         "librt.",           "libgomp",
    "libboost_", "libasan.",      "libubsan.",      "ld-linux",       "linux-vdso",       "libcudart",
    "libcudnn",  "libcuda.",      "libcublas",      "libcufft",       "libcusparse",      "libpython3",
    "python3",   "librehearse.",  "_rehearse.",
};

constexpr std::string_view kForeignNamespaces[] = {
    "c10d", "torch", "at", "c10", "caffe2", "std", "boost", "__gnu_cxx", "fmt", "testing",
};

// Headers whose functions are inlined into the user's. Without full debug information (-g1), an inlined function has
// neither a mangled name nor a namespace; only its file identifies it.
constexpr std::string_view kForeignFolders[] = {
    "/usr/include/",      "/include/c++/",      "/torch/include/",
    "/libtorch/include/", "/include/rehearse/", "/internal/rehearse_internal/",
};

struct Module {
  std::string path;
  std::uintptr_t bias = 0;
  bool found = false;
  std::uintptr_t address;
};

int visit(dl_phdr_info* info, std::size_t, void* data) {
  auto& module = *static_cast<Module*>(data);
  for (int k = 0; k < info->dlpi_phnum; ++k) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[k];
    const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || module.address < begin || module.address >= begin + segment.p_memsz) continue;
    module.found = true;
    module.bias = info->dlpi_addr;
    module.path = info->dlpi_name;
    return 1;
  }
  return 0;
}

std::string own_path() {
  std::array<char, 4096> path;
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : std::string();
}

// The absolute path of a library that was opened by a relative path. The relative path is wrong once the program has
// changed its working directory.
std::string mapped_path(std::uintptr_t address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    const char* const stop = line.data() + line.size();
    const auto dash = std::from_chars(line.data(), stop, begin, 16).ptr;
    if (dash != stop) std::from_chars(dash + 1, stop, end, 16);
    if (address < begin || address >= end) continue;
    const auto path = line.find('/');
    return path != std::string::npos ? line.substr(path) : std::string();
  }
  return {};
}

Module module_of(std::uintptr_t address) {
  Module module{.path = {}, .address = address};
  dl_iterate_phdr(visit, &module);
  if (module.found && module.path.empty()) module.path = own_path();
  if (module.found && module.path.find('/') != 0 && module.path.find('/') != std::string::npos) {
    if (auto path = mapped_path(address); !path.empty()) module.path = std::move(path);
  }
  return module;
}

bool is_foreign(const Module& module) {
  const std::string_view name = std::string_view(module.path).substr(module.path.rfind('/') + 1);
  return std::any_of(std::begin(kForeignLibraries), std::end(kForeignLibraries),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// True if the C or C++ library has a C function of this name: then a function of the executable replaces it.
bool is_interposed(const std::string& name) {
  static void* const libraries[] = {dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD),
                                    dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD)};
  return std::any_of(std::begin(libraries), std::end(libraries),
                     [&](void* library) { return library != nullptr && dlsym(library, name.c_str()) != nullptr; });
}

LineTable& line_table_of(const Module& module) {
  static std::map<std::string, LineTable> tables;
  return tables.try_emplace(module.path, module.path, module.bias).first->second;
}

// Our own sources under the names that the compiler recorded. Their leading folder, if any, depends on how the library
// was built; this file's own name shows the folder. Empty if the library has no debug information.
std::set<std::string> find_own_units() {
  constexpr std::string_view kThis = "core/exec/call_site/symbolize.cpp";
  const auto address = reinterpret_cast<std::uintptr_t>(&find_own_units);
  const auto frames = line_table_of(module_of(address)).lookup(address);
  std::set<std::string> units;
  if (frames.empty() || !frames.front().unit.ends_with(kThis)) return units;
  const std::string& unit = frames.front().unit;
  const std::string folder = unit.substr(0, unit.size() - kThis.size());
  for (const std::string_view source : own_sources()) units.insert(folder + std::string(source));
  for (const std::string_view united : own_unity_units()) units.emplace(united);
  return units;
}

// Whether the compilation unit is one of ours; then every function in it is ours. An inlined function with internal
// linkage can be recognised only by its unit.
bool is_own_unit(const std::string& unit) {
  static const std::set<std::string> units = find_own_units();
  // A unity unit is in the build folder, which the compiler records as "." or leaves out.
  return units.contains(unit.starts_with("./") ? unit.substr(2) : unit);
}

// False for files of Rehearse and of the libraries that it knows.
bool is_users_file(const std::string& unit, const std::string& file) {
  return !is_own_unit(unit) &&
         std::none_of(std::begin(kForeignFolders), std::end(kForeignFolders),
                      [&](std::string_view folder) { return file.find(folder) != std::string::npos; });
}

bool is_users_own(const SourceFrame& frame) {
  if (!is_users_file(frame.unit, frame.file)) return false;
  std::string_view outermost;
  if (frame.mangled.empty())
    outermost = std::string_view(frame.qualified).substr(0, frame.qualified.find("::"));
  else if (frame.mangled.starts_with("_Z"))
    outermost = outermost_name(frame.mangled);
  else if (frame.mangled == "_start" || is_interposed(frame.mangled))
    return false;
  // If file names are known, our own functions have been recognised by unit or header already, so this function is a
  // user's: users may extend our namespace.
  if (outermost == "rehearse") return !frame.file.empty();
  return std::find(std::begin(kForeignNamespaces), std::end(kForeignNamespaces), outermost) ==
         std::end(kForeignNamespaces);
}

ResolvedFrame resolved(const SourceFrame& source) {
  std::string name = demangled(source.mangled.empty() ? source.qualified : source.mangled);
  if (source.file.empty()) {
    // Without line tables, the only trace of an inlined lambda is the name of its caller.
    const auto callable = wrapped_callable(name);
    if (!callable.empty()) {
      const SourceFrame inlined{.mangled = {}, .qualified = std::string(callable), .file = {}, .line = 0, .unit = {}};
      return {{inlined.qualified, "", 0}, is_users_own(inlined), false};
    }
  }
  return {{std::move(name), source.file, source.line}, is_users_own(source), false};
}

// Null if no interpreter has frames at this address.
Interpreter* interpreter_at(std::uintptr_t address) noexcept {
  auto* const script = interpreter();
  return script != nullptr && script->addresses().contains(address) ? script : nullptr;
}

std::vector<ResolvedFrame> look_up(std::uintptr_t address) {
  const Module module = module_of(address);
  std::vector<ResolvedFrame> frames;
  const bool foreign = is_foreign(module);
  if (module.found && !foreign) {
    auto& table = line_table_of(module);
    for (const SourceFrame& source : table.lookup(address)) {
      auto& added = frames.emplace_back(resolved(source));
      if (added.users_own && !source.file.empty())
        added.frame.short_file = table.shortest_end(source.file, is_users_file);
    }
  }
  if (frames.empty()) {
    Dl_info info;
    const bool named = dladdr(reinterpret_cast<void*>(address), &info) != 0 && info.dli_sname != nullptr;
    frames.push_back({{named ? demangled(info.dli_sname) : "??", "", 0}, false, module.found && !foreign && !named});
  }
  return frames;
}

}  // namespace

const std::vector<ResolvedFrame>& resolve(void* return_address) {
  // Reading line tables takes locks, at which no rank may be preempted: preempting looks up the caller of the lock, and
  // would need this mutex again.
  const NativeScope reading;
  static std::mutex mutex;
  static std::unordered_map<void*, std::vector<ResolvedFrame>> known;
  const std::lock_guard lock(mutex);
  const auto [entry, is_new] = known.try_emplace(return_address);
  // The call precedes the address to which it returns, which may belong to the next line or even the next function.
  const auto address = reinterpret_cast<std::uintptr_t>(return_address);
  if (!is_new) return entry->second;
  if (auto* const script = interpreter_at(address)) {
    auto known_there = script->resolve(address);
    entry->second.push_back({std::move(known_there.frame), known_there.users_own});
  } else {
    entry->second = look_up(address - 1);
  }
  return entry->second;
}

bool in_foreign_library(void* return_address) {
  const auto address = reinterpret_cast<std::uintptr_t>(return_address);
  return interpreter_at(address) == nullptr && is_foreign(module_of(address - 1));
}

}  // namespace rehearse::exec
