// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rehearse/compile/compile_options.h>
#include <rehearse/compile/explanation.h>
#include <rehearse/compile/leaf.h>
#include <rehearse/graph/graph_module.h>
#include <rehearse_internal/job/compile_journal.h>

#include "compile/arguments/dynamism.h"
#include "compile/arguments/input_binding.h"
#include "compile/compiler_collectives/compiler_collectives.h"

namespace rehearse::compiler {

// Source of a GuardFailure if all guards hold, but the code gives another graph (Verify::Always).
inline constexpr const char* kFunctionItself = "the function";

// Lets one rank agree on the calls of one function with the ranks of CompileOptions::group. Writes the function's
// record in the world's journal, which reports read.
class Agreement {
 public:
  // Throws CompileError if the options ask for guard collectives but have no group.
  explicit Agreement(const CompileOptions& options);

  void begin_call() noexcept {
    runs_once_ = false;
    record_->called();
  }

  bool has_guard_collectives() const noexcept { return guard_collectives_; }

  // With guard collectives, returns the least ability of all ranks, and blocks. Without them, returns `own`. Call it
  // once in each call, and once after each read or region unless the ranks have agreed to run the rest eagerly.
  Ability compare(Ability own);

  void note_hit(std::size_t entry) { record_->hit(entry); }
  void note_eager() noexcept { record_->eager(); }

  // The call starts to compile. `failures`: the guards that failed, one for each entry, latest entry first. There are
  // fewer than `entries` if this rank's guards hold, and the call compiles because another rank's guards failed.
  void begin_compile(const std::vector<GuardFailure>& failures, std::size_t entries);

  // Passes the sizes and symbolic integers among the call's arguments to `dynamism`. With compiler collectives, also
  // passes those of the other ranks that facts_to_absorb() selects, and blocks.
  void absorb(const LeafList& leaves, const std::vector<std::string>& sources, Dynamism& dynamism);

  // The call starts to compile another segment: its code is about to run, or has run and gave another graph than
  // before. `why`: the read or region that the segment follows, or the change of the graph. With compiler collectives
  // the ranks exchange `why`, and the call blocks. The exchange matches the k-th compilations of the ranks, so on
  // another rank the exchange may belong to the first compilation of a call.
  void begin_segment(const std::string& why, exec::CallSite where);

  // The result of the open compilation contains collectives, or may contain some.
  void note_communication() noexcept { record_->communicates(); }

  // True between the beginning of a compilation and commit(), fail() or run_once().
  bool is_open() const noexcept { return is_open_; }

  // With compiler or guard collectives, exchanges outcomes with the other ranks, and blocks. Returns whether the ranks
  // keep their graphs. Throws CompileError that names the lowest rank with an error. If all ranks have one, returns
  // false instead, because each rank has its own error. Also returns false if a rank runs its code only once. Then this
  // rank must do the same: run in this call what it has recorded, run the rest eagerly, and keep no graph. Without
  // collectives, returns whether `outcome` is a graph.
  bool commit(const CompileOutcome& outcome);
  // Commits this graph. With CompileOptions::same_graphs, throws CompileError on all ranks if the ranks' graphs differ.
  // `inputs`: one for each placeholder.
  bool commit(const graph::GraphModule& module, const std::vector<InputBinding>& inputs);
  // The call keeps its graphs. `guards`: see FunctionRecord::compare_under().
  void compare_under(std::uint64_t guards) { record_->compare_under(guards, first_of_call_); }
  // Commits an error if a compilation is open.
  void fail(const std::string& error);
  // Commits RunsOnce if a compilation is open. Call it before recorded operators run that no graph will hold, because
  // they may be collectives. `refusal`: see RunsOnce.
  void run_once(const std::string& refusal);
  // True if the last commit() found that a rank runs its code only once.
  bool runs_once() const noexcept { return runs_once_; }
  // Why the ranks run the function eagerly from now on; see RunsOnce. Empty: they do not.
  const std::string& refusal() const noexcept { return refusal_; }

 private:
  CollectiveLabel label() const;
  // Throws CompileError on all ranks: their graphs, with these hashes, differ.
  [[noreturn]] void refuse_different(const std::vector<GraphHash>& hashes);
  // Closes the open compilation if the exchange fails.
  std::vector<InputFacts> exchange(const InputFacts& own);

  const bool compiler_collectives_, guard_collectives_, same_graphs_;
  std::optional<CompilerCollectives> collectives_;
  const std::shared_ptr<FunctionRecord> record_;
  std::size_t first_of_call_ = 0;  // the number of the last call's first compilation
  bool is_open_ = false;
  bool runs_once_ = false;
  std::string refusal_;
};

// What the graphs of ranks that do the same with the same inputs have in common: all but sizes, strides, the nodes that
// compute sizes, all other numbers (the rank or the offset of its shard may be one), devices and the names of groups.
// Arguments of the call, and parameters and buffers of the module, have their numbers; names of parameters may differ,
// because each rank may hold another part of a model. Other tensors that the code finds are numbered by first use.
// `inputs`: one for each placeholder.
GraphOutline outline_of(const graph::GraphModule& module, const std::vector<InputBinding>& inputs);

// The facts of a call, one for each leaf.
InputFacts facts_of(const LeafList& leaves, const std::vector<std::string>& sources);

// Selects the facts that a rank takes over. `all`: the facts of each rank, in order of rank; the result keeps this
// order. The rank takes a fact if it has no own fact with the same source, or if one of these own facts has the same
// kind, dtype and number of dimensions. If a variant holds a plain number or a text on some rank, that rank compiles
// for each value. If another rank had a symbol for this argument, its cache would serve its call, and the first rank
// would compile and wait in vain. So no rank takes facts about tensors or symbolic integers in such an argument.
InputFacts facts_to_absorb(const std::vector<InputFacts>& all, const InputFacts& own);

}  // namespace rehearse::compiler
