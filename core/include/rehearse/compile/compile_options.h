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

// A back end by its name (see compiler::register_backend()) or an object of the caller's.
class BackendChoice {
 public:
  BackendChoice(const char* name) : name_(name) {}
  BackendChoice(std::string name) : name_(std::move(name)) {}
  template <class B>
    requires std::is_base_of_v<compiler::Backend, B>
  BackendChoice(std::shared_ptr<B> backend) : backend_(std::move(backend)) {}

  // The object, or a new one of that name; throws as compiler::make_backend() does, also for a null object.
  std::shared_ptr<compiler::Backend> get() const;

 private:
  std::string name_;
  std::shared_ptr<compiler::Backend> backend_;
};

// When the user's code runs again, on fakes, beside a call that the cache serves, to see whether it still gives the
// graph that was compiled. It may hang on what no guard sees: members, captures, globals, the clock. Another graph is
// the error compiler::StaleCapture, with Always a recompilation.
enum class Verify { Never, FirstHit, Always };

// What must be told beside the function: the arguments of torch.compile, and what Python finds out by itself.
struct CompileOptions {
  BackendChoice backend = "aot_eager";

  // Are sizes and symbolic integers of arguments variables of the graph? True: all but 0 and 1 from the first call on.
  // False: never. Not given: those that have been seen with two values.
  std::optional<bool> dynamic = std::nullopt;

  // What cannot be captured is an error. Otherwise such a function runs as it is, with one warning.
  bool fullgraph = false;

  // Ranks that agree on what they compile, by the two ways of torch.compile; the function is to be called by all of
  // them. Empty: each rank by itself, and nothing is sent.
  Group group = {};

  // The ranks of the group tell each other their arguments whenever they compile, so that all know what varies: the
  // k-th compilation of each meets the k-th of the others.
  bool compiler_collectives = true;

  // They compare in each call, and where one has to compile all do. Needs a group.
  bool guard_collectives = false;

  Verify verify = Verify::FirstHit;

  // Graphs of a data-parallel module are split where gradient buckets end.
  bool optimize_ddp = true;

  // Compares in each call what each graph of the back end gives with what the back end states of it
  // (compiler::CompiledGraph::outputs; what states nothing, with what the graph's operators give). A difference is the
  // error compiler::BackendMismatch. Without it a tensor that lies otherwise is copied where that matters.
  bool check_backend = false;

  // A folder into which each graph that the back end gets is written, as graph::to_text() gives it, before it is
  // compiled: "forward.rank0.1.submod_0.txt" is the first graph of that rank. Outside of worlds there is no rank in the
  // name. Made where it is not there; files of the same name are overwritten. Empty: nothing is written. What cannot be
  // written is the error compiler::CompileError.
  std::string dump_folder = {};

  // A folder in which what the back end makes of graphs outlives the process: a graph that one process has compiled is
  // read from there by the next one. Where it is not given, the environment's REHEARSE_CACHE_DIR names the folder.
  // There is no cache where neither names one, or where the name is empty. The folder is made if it is missing. If a
  // file in it cannot be read or written, the graph is compiled, and explain() says why.
  std::optional<std::string> cache_dir = std::nullopt;
  // How much the files in that folder may take. Who writes one removes the oldest beyond it.
  std::uint64_t cache_limit_bytes = std::uint64_t{1} << 30;

  // Entries that the cache of one rank may hold; beyond, what no entry serves runs as it is, with one warning.
  std::size_t recompile_limit = 8;

  // For reports: the function, and its arguments in order. Not given: "forward" or "function", and arg0, arg1, ...
  std::string name = {};
  std::vector<std::string> argument_names = {};
};

}  // namespace rehearse
