// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <rehearse/compile/backend.h>
#include <rehearse/job/group.h>

namespace rehearse {

// A back end: by its name (see compiler::register_backend()), or as the caller's object.
class BackendChoice {
 public:
  BackendChoice(const char* name) : name_(name) {}
  BackendChoice(std::string name) : name_(std::move(name)) {}
  template <class B>
    requires std::is_base_of_v<compiler::Backend, B>
  BackendChoice(std::shared_ptr<B> backend) : backend_(std::move(backend)) {}

  // Returns the object, or a new back end of that name. Throws as compiler::make_backend() does, also for a null
  // object.
  std::shared_ptr<compiler::Backend> get() const;

 private:
  std::string name_;
  std::shared_ptr<compiler::Backend> backend_;
};

// When to check that a cached graph is still right. For the check, the user's code runs again on fakes, and must give
// the graph that was compiled. It gives another graph if it depends on things that no guard sees: members, captures,
// globals, the clock. A different graph is the error compiler::StaleCapture; with Always, the call compiles anew
// instead.
enum class Verify { Never, FirstHit, Always };

// The arguments of torch.compile, and a few facts that PyTorch finds out from Python.
struct CompileOptions {
  BackendChoice backend = "aot_eager";

  // Whether sizes and symbolic integers of arguments are variables of the graph. True: all except 0 and 1, from the
  // first call on. False: never. nullopt: those that have had two values. rehearse::mark_dynamic() and mark_static()
  // take precedence.
  std::optional<bool> dynamic = std::nullopt;

  // Makes code that cannot be captured an error. If false, such a function runs eagerly, with one warning.
  bool fullgraph = false;

  // The ranks that agree on what they compile. The next two options say how, as in torch.compile. All ranks of the
  // group must call the function. Empty: each rank compiles without the others and sends nothing.
  Group group = {};

  // Whenever the ranks of the group compile, they exchange their arguments, so that all know which sizes vary. The k-th
  // compilation of each rank is matched with the k-th of the others.
  bool compiler_collectives = true;

  // In each call the ranks tell each other whether they must compile; if one must, all do. Needs a group.
  bool guard_collectives = false;

  // Makes it an error, compiler::CompileError on all ranks of the group, if the k-th compilations of the ranks give
  // different graphs. Sizes and all other numbers in the graphs may differ. Needs a group. If false, the report of a
  // World has a remark where ranks compile different graphs under equal guards.
  bool same_graphs = false;

  Verify verify = Verify::FirstHit;

  // Splits the graphs of a data-parallel module where gradient buckets end.
  bool optimize_ddp = true;

  // Compares, in each call, the outputs of each graph with what the back end states about them
  // (compiler::CompiledGraph::outputs), or with what the graph's operators return if it states nothing. A difference is
  // the error compiler::BackendMismatch. If false, an output with another layout is copied where the layout matters.
  bool check_backend = false;

  // A folder for the text of each graph (graph::to_text()), written before the back end compiles it.
  // "forward.rank0.1.submod_0.txt" is the first graph of the function "forward" on rank 0; outside of worlds the name
  // has no rank. The folder is made if missing, and files of the same name are overwritten. Empty: writes nothing. A
  // failed write is the error compiler::CompileError.
  std::string dump_folder = {};

  // A folder in which the output of the back end outlives the process: a later process reads the graphs that an earlier
  // process has compiled. If nullopt, the environment's REHEARSE_CACHE_DIR names the folder. If neither names a folder,
  // or the name is empty, there is no cache. The folder is made if missing. If a file in it cannot be read or written,
  // the graph is compiled, and explain() says why.
  std::optional<std::string> cache_dir = std::nullopt;
  // How many bytes the files in the cache's folder may take. A process that writes a file removes the oldest ones
  // beyond the limit.
  std::uint64_t cache_limit_bytes = std::uint64_t{1} << 30;

  // How many entries the cache of one rank may hold; each further path through an entry with segments counts, too.
  // Beyond that, calls that no entry serves run eagerly, with one warning.
  std::size_t recompile_limit = 8;

  // The names of the function and of its arguments, in order, for reports. Empty: "forward" or "function", and arg0,
  // arg1, ...
  std::string name = {};
  std::vector<std::string> argument_names = {};
};

}  // namespace rehearse
