// SPDX-License-Identifier: BSD-3-Clause
#include <map>
#include <mutex>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse/compile/backend.h>
#include <rehearse/compile/compile_options.h>
#include <rehearse/compile/counting_backend.h>
#include <rehearse_internal/compile/aot_eager.h>

#include "compile/partitions/eager_backend.h"

namespace rehearse::compiler {
namespace {

struct BackendRegistry {
  std::mutex mutex;
  std::map<std::string, BackendFactory, std::less<>> factories;
};

BackendRegistry& backend_registry() {
  static BackendRegistry registry{.mutex = {},
                                  .factories = {{"aot_eager", [] { return std::make_shared<AotEagerBackend>(); }},
                                                {"eager", [] { return std::make_shared<EagerBackend>(); }},
                                                {"counting", [] { return std::make_shared<CountingBackend>(); }}}};
  return registry;
}

}  // namespace

CompiledGraph Backend::restore(const BackendInput&, const std::string&) {
  throw std::logic_error("the back end '" + name() + "' has a cache_key() and no restore()");
}

void register_backend(std::string name, BackendFactory factory) {
  if (name.empty()) throw std::invalid_argument("register_backend: the name is empty");
  if (!factory) throw std::invalid_argument("register_backend: the factory of '" + name + "' is empty");
  BackendRegistry& registry = backend_registry();
  const std::lock_guard lock(registry.mutex);
  if (!registry.factories.emplace(name, std::move(factory)).second) {
    throw std::invalid_argument("register_backend: there is a back end '" + name + "' already");
  }
}

std::vector<std::string> backend_names() {
  BackendRegistry& registry = backend_registry();
  const std::lock_guard lock(registry.mutex);
  std::vector<std::string> names;
  for (const auto& [name, factory] : registry.factories) names.push_back(name);
  return names;
}

std::shared_ptr<Backend> make_backend(std::string_view name) {
  BackendFactory factory;
  {
    BackendRegistry& registry = backend_registry();
    const std::lock_guard lock(registry.mutex);
    if (const auto found = registry.factories.find(name); found != registry.factories.end()) factory = found->second;
  }
  if (!factory) {
    throw std::invalid_argument(
        fmt::format("there is no back end '{}'; there are {}", name, fmt::join(backend_names(), ", ")));
  }
  std::shared_ptr<Backend> backend = factory();
  if (!backend) throw std::invalid_argument(fmt::format("the factory of back end '{}' made none", name));
  return backend;
}

}  // namespace rehearse::compiler

namespace rehearse {

std::shared_ptr<compiler::Backend> BackendChoice::get() const {
  if (backend_) return backend_;
  if (name_.empty()) throw std::invalid_argument("CompileOptions::backend is null");
  return compiler::make_backend(name_);
}

}  // namespace rehearse
