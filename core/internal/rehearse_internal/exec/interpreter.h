// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/exec/call_site.h>
#include <rehearse_internal/exec/rank_state.h>

namespace rehearse::exec {

// What the executor asks the interpreter of a language whose code runs in ranks, such as CPython.
//
// In a process with an interpreter, three more things change. The fibers of an ended world are not unwound, because the
// interpreter's C code has no destructors: they stay suspended forever. The main fibers of ranks have different thread
// ids, because an interpreter's locks ask which thread holds them. A process that a rank forks leaves the world, so it
// may go on in the rank's body.
class Interpreter {
 public:
  virtual ~Interpreter() = default;

  struct AddressRange {
    std::uintptr_t begin = 0, end = 0;
    bool contains(std::uintptr_t address) const noexcept { return begin <= address && address < end; }
  };
  struct ResolvedAddress {
    Frame frame;
    bool users_own = false;  // not part of a library that the interpreter knows
  };

  // Writes the frames of the calling fiber's code to `out`, innermost first, as addresses of addresses(). At most as
  // many as `out` has room for; returns how many.
  virtual std::size_t frames(std::span<void*> out) noexcept = 0;
  // Those of a suspended fiber, whose RankState image is at `image`, for a debugger that has stopped the process. None
  // if they cannot be read now.
  virtual std::size_t frames_of(const std::byte* /*image*/, std::span<void*> /*out*/) noexcept { return 0; }
  // Where these addresses lie: nothing else may be there.
  virtual AddressRange addresses() const noexcept = 0;
  virtual ResolvedAddress resolve(std::uintptr_t address) = 0;
  // An address means nothing in another process. A process that dies writes the place as a text (terminated, cut to
  // fit; this allocates nothing), for which another one has an address of its own.
  virtual void write_place(std::uintptr_t /*address*/, std::span<char> /*out*/) const noexcept {}
  virtual void* address_of(std::string_view /*place*/) { return nullptr; }

  // A branch of a statement such as `if`, a loop or `try`, for people: "if loss > 2.0", with the statement's line.
  struct Branch {
    std::string text;
    int line = 0;
    bool operator==(const Branch&) const = default;
  };
  // The branches around a line of a source file, outermost first, within the function. Called outside of ranks.
  virtual std::vector<Branch> branches_around(const std::string& /*file*/, int /*line*/) { return {}; }
  // The text of a line of a source file; empty: unknown.
  virtual std::string source_of(const std::string& /*file*/, int /*line*/) { return {}; }

  // Whether the condition variable at `condition` belongs to the interpreter's own lock. Ranks wait for it as threads
  // do: no other rank can hold that lock while they run.
  virtual bool owns_condition(const void* condition) const noexcept = 0;

  // The interpreter's state of a rank. It contains `inner`, and exchanges it as well.
  virtual std::unique_ptr<RankState> state_around(RankState& inner) = 0;

  // The next run in this process repeats one for its report, so nobody is there whom a debugger could ask.
  virtual void begin_repetition() {}

  // Called in a process that a rank has forked, before it leaves the world.
  virtual void note_fork() noexcept = 0;
};

// The interpreter of this process; null: there is none. Set it before the first world, and for good.
Interpreter* interpreter() noexcept;
void set_interpreter(Interpreter* interpreter) noexcept;

// While it lives, collects the condition variables that the calling thread signals: if an interpreter takes and gives
// back its own lock meanwhile, those of this lock.
class SignalledConditions {
 public:
  SignalledConditions() noexcept;
  SignalledConditions(const SignalledConditions&) = delete;
  SignalledConditions& operator=(const SignalledConditions&) = delete;
  ~SignalledConditions();

  const std::vector<const void*>& all() const noexcept { return all_; }
  void add(const void* condition) { all_.push_back(condition); }

 private:
  std::vector<const void*> all_;
  SignalledConditions* const before_;
};

}  // namespace rehearse::exec
