// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/job/program_module.h>

#include <deque>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rehearse/job/program.h>
#include <rehearse_internal/exec/world_number.h>

#include "job/module_image.h"
#include "job/registry.h"

namespace rehearse {
namespace {

// A shared object with programs, and its copies.
class Module {
 public:
  explicit Module(const char* name) : file_(std::filesystem::canonical("/proc/self/exe").replace_filename(name)) {}

  void load() {
    if (original_ != nullptr) return;
    original_ = &ModuleImage::load(file_.string());
    for (const auto& program : original_->programs) {
      Program known = program;
      known.spec.body = [this, name = program.name](RankContext& context, const Parameters& parameters) {
        run(name, context, parameters);
      };
      registered_programs().push_back(std::move(known));
    }
  }

 private:
  // A copy that one rank uses. When the rank's body has ended, the destructor makes the copy available to other worlds.
  // If the rank crashes, no destructor runs, so the copy stays in use forever.
  class Lent {
   public:
    explicit Lent(Module& module) : module_(module), image_(module.take()) {}
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;
    ~Lent() {
      image_.finish();
      module_.copies_.emplace_back(exec::world_number(), &image_);
    }
    ModuleImage& operator*() const noexcept { return image_; }

   private:
    Module& module_;
    ModuleImage& image_;
  };

  // Takes a copy that no rank of this world has used, because threads and callbacks of a rank that used a copy may
  // still run in it.
  ModuleImage& take() {
    for (auto copy = copies_.begin(); copy != copies_.end(); ++copy) {
      if (copy->first == exec::world_number()) continue;
      ModuleImage& image = *copy->second;
      copies_.erase(copy);
      image.start_again();
      return image;
    }
    return ModuleImage::load_copy(file_.string(), *original_);
  }

  void run(const std::string& name, RankContext& context, const Parameters& parameters) {
    const Lent image(*this);
    for (const auto& program : (*image).programs) {
      if (program.name != name) continue;
      const auto body = program.spec.body;
      return body(context, parameters);
    }
    throw ModuleError(fmt::format("{}: a copy of it did not register program \"{}\"", file_.string(), name));
  }

  const std::filesystem::path file_;
  ModuleImage* original_ = nullptr;
  // Unused copies, each with the number of the world that last used it.
  std::deque<std::pair<std::uint64_t, ModuleImage*>> copies_;
};

// Made on first use, like the registry of programs.
std::deque<const char*>& registered_modules() {
  static std::deque<const char*> names;
  return names;
}

}  // namespace

RegisteredModule::RegisteredModule(const char* file) { registered_modules().push_back(file); }

void load_registered_modules() {
  static std::map<const char*, Module> modules;
  for (const auto* const name : registered_modules()) modules.try_emplace(name, name).first->second.load();
}

}  // namespace rehearse
