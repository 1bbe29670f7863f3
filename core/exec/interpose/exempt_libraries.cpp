// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/exec/exempt_libraries.h>

#include <memory>
#include <unordered_map>

#include <dlfcn.h>

#include "imports.h"
#include "real.h"

namespace rehearse::exec {
namespace {

using interpose::Interposed;
using interpose::NewImport;

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
  for (const auto& library : interpose::loaded_libraries()) {
    if (!takes(library.path)) continue;
    // Held, so that no other thread unloads the library. Null if a thread has unloaded it already.
    const std::unique_ptr<void, Close> held(::dlopen(library.path.c_str(), RTLD_LAZY | RTLD_NOLOAD));
    if (held == nullptr) continue;
    const auto imports = interpose::rebind_imports(library, [](std::string_view symbol) { return real.find(symbol); });
    if (imports > 0) changed.push_back({library.path, imports});
  }
  return changed;
}

}  // namespace rehearse::exec
