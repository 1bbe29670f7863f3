// SPDX-License-Identifier: BSD-3-Clause
#include "compile/cache/compile_cache.h"

#include <array>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <rehearse/graph/argument.h>
#include <rehearse/graph/text.h>
#include <rehearse_internal/exec/executor.h>
#include <rehearse_internal/exec/failure.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/hash/fnv1a.h>
#include <rehearse_internal/shapes/shape_env.h>

#include "compile/cache/cache_key.h"

namespace rehearse::compiler {
namespace {

constexpr const char* kVariable = "REHEARSE_CACHE_DIR";

std::string folder_of(const CompileOptions& options) {
  if (options.cache_dir) return *options.cache_dir;
  const char* const named = std::getenv(kVariable);
  return named != nullptr ? named : "";
}

// A run that takes a graph from the folder differs from a run that compiles it, and the schedule does not determine
// what the folder contains. Therefore taking a graph is a recorded decision.
bool may_take(const std::string& key) {
  if (!exec::this_rank::is_fiber()) return true;
  const auto graph = static_cast<std::uint32_t>(fnv1a(key));
  const std::array<std::uint32_t, 2> candidates = {graph, 0}, weights = {1, 0};
  return exec::RankExecutor::current()->decisions().choose(ChoiceKind::compile_cache, candidates, weights) == 0;
}

constexpr std::string_view kEndOfModule = "\n}\n";  // a text inside a module contains no line ends

// Returns the text of a graph that contains the guards which compiling added, followed by the text of the back end. The
// guards are in a graph so that the parser of graphs validates them.
std::string guards_text(const graph::List& guards, const std::string& stored) {
  graph::GraphModule module("guards");
  graph::List arguments;
  arguments.emplace_back(guards);
  module.graph().call_function("guards", std::move(arguments));
  return graph::to_text(module) + stored;
}

// Collects the guards that a compilation adds to the guards of the capture, for example by recording a backward. The
// file of a stored graph contains these guards.
class StatedGuards {
 public:
  // Make it before the graph is compiled. `shapes`: null for a graph without symbols.
  explicit StatedGuards(std::shared_ptr<shapes::ShapeEnv> shapes);

  // The guards added since this object was made. Throws std::runtime_error if compiling stated facts that a file cannot
  // hold.
  graph::List added() const;
  // Adds guards from a file, in place of compiling. Throws std::exception if they cannot belong to the same graph.
  void add(const graph::List& guards) const;

 private:
  std::shared_ptr<shapes::ShapeEnv> shapes_;
  std::size_t guards_ = 0, asserts_ = 0, unbacked_ = 0;
};

StatedGuards::StatedGuards(std::shared_ptr<shapes::ShapeEnv> shapes) : shapes_(std::move(shapes)) {
  if (shapes_ == nullptr) return;
  guards_ = shapes_->guards().size();
  asserts_ = shapes_->asserts().size();
  unbacked_ = shapes_->unbacked().size();
}

graph::List StatedGuards::added() const {
  graph::List list;
  if (shapes_ == nullptr) return list;
  if (shapes_->asserts().size() != asserts_ || shapes_->unbacked().size() != unbacked_) {
    throw std::runtime_error("compiling it states something of sizes that are known only at run time");
  }
  for (std::size_t i = guards_; i < shapes_->guards().size(); ++i) {
    const shapes::Guard& guard = shapes_->guards()[i];
    list.push_back(graph::List{graph::SymExpr(guard.condition), guard.reason, guard.specialises});
  }
  return list;
}

void StatedGuards::add(const graph::List& guards) const {
  for (const graph::Argument& each : guards) {
    const auto& guard = each.as<graph::List>();
    const shapes::Condition* condition = guard.at(0).as<graph::SymExpr>().condition();
    if (shapes_ == nullptr || condition == nullptr) throw std::runtime_error("it has guards, and the graph no symbols");
    shapes_->take_guard({*condition, guard.at(1).as<std::string>(), exec::CallSite::capture(), guard.at(2).as<bool>()});
  }
}

CompiledGraph graph_of(const std::string& text, const BackendInput& input, Backend& backend) {
  const std::size_t end = text.find(kEndOfModule);
  if (end == std::string::npos) throw std::runtime_error("it has no guards");
  const std::size_t begin = end + kEndOfModule.size();
  const auto module = graph::parse_graph_module(std::string_view(text).substr(0, begin));
  const graph::Node* const guards = module->graph().first();
  if (guards == nullptr) throw std::runtime_error("it has no guards");
  CompiledGraph graph = backend.restore(input, text.substr(begin));
  if (!graph) throw std::runtime_error("the back end returned no compiled graph for it");
  StatedGuards(input.shapes).add(guards->args().at(0).as<graph::List>());
  return graph;
}

}  // namespace

CompileCache::CompileCache(const CompileOptions& options)
    : folder_(folder_of(options)), limit_bytes_(options.cache_limit_bytes) {}

CompileCache::Made CompileCache::compile(const BackendInput& input, Backend& backend) {
  if (folder_.empty()) return {backend.compile(input)};
  std::string why_not;
  const std::string program = program_id();
  const std::optional<std::string> of_backend = backend.cache_key();
  if (!of_backend) {
    why_not =
        fmt::format("the back end '{}' does not say how its graphs are stored (Backend::cache_key())", backend.name());
  } else if (program.empty()) {
    why_not = "the program or LibTorch was linked without a build id (-Wl,--build-id)";
  }
  Made made = why_not.empty() ? compile_in_folder({folder_, limit_bytes_, program}, input, backend, *of_backend)
                              : Made{backend.compile(input), CacheUse::Bypass, std::move(why_not)};
  ++(made.use == CacheUse::Hit ? hits_ : made.use == CacheUse::Miss ? misses_ : bypasses_);
  return made;
}

CompileCache::Made CompileCache::compile_in_folder(const CacheFolder& folder, const BackendInput& input,
                                                   Backend& backend, const std::string& of_backend) {
  std::string key;
  try {
    key = cache_key(input, backend.name(), of_backend);
  } catch (const std::runtime_error& error) {
    return {backend.compile(input), CacheUse::Bypass, error.what()};
  }
  std::string why_not;
  if (std::optional<CompiledGraph> taken = take(folder, input, backend, key, why_not))
    return {*std::move(taken), CacheUse::Hit};
  return compile_anew(folder, input, backend, key, std::move(why_not));
}

std::optional<CompiledGraph> CompileCache::take(const CacheFolder& folder, const BackendInput& input, Backend& backend,
                                                const std::string& key, std::string& why_not) {
  const CacheFolder::Found found = folder.read(key);
  why_not = found.why_not;
  if (found.is_unexpected) warn(why_not);
  if (!found.stored) return std::nullopt;
  if (!may_take(key)) {
    why_not = "the schedule has it compiled although the folder has it";
    return std::nullopt;
  }
  try {
    return graph_of(*found.stored, input, backend);
  } catch (const RankAborted&) {
    throw;
  } catch (const std::exception& error) {
    why_not = fmt::format("{} cannot be used: {}", folder.file_of(key).string(), error.what());
    warn(why_not);
    return std::nullopt;
  }
}

CompileCache::Made CompileCache::compile_anew(const CacheFolder& folder, const BackendInput& input, Backend& backend,
                                              const std::string& key, std::string why) {
  const StatedGuards guards(input.shapes);
  CompiledGraph graph = backend.compile(input);
  std::string text;
  try {
    if (!graph.store) throw std::runtime_error("the back end '" + backend.name() + "' stores nothing of it");
    text = guards_text(guards.added(), graph.store());
  } catch (const RankAborted&) {
    throw;
  } catch (const std::exception& error) {
    return {std::move(graph), CacheUse::Bypass, error.what()};
  }
  compiled_.push_back({folder, key, std::move(text)});
  return {std::move(graph), CacheUse::Miss, std::move(why)};
}

void CompileCache::write_compiled() {
  for (const Compiled& each : std::exchange(compiled_, {})) {
    const std::string failed = each.folder.write(each.key, each.text);
    if (!failed.empty()) warn("a compiled graph is not stored: " + failed);
  }
}

void CompileCache::warn(const std::string& what) {
  TORCH_WARN("rehearse::compile: ", what);
  warnings_.push_back(what);
}

void CompileCache::add_to(CompileStats& stats) const noexcept {
  stats.cache_hits += hits_;
  stats.cache_misses += misses_;
  stats.cache_bypasses += bypasses_;
}

}  // namespace rehearse::compiler
