// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <c10/core/SymInt.h>

#include <rehearse/exec/call_site.h>
#include <rehearse/shapes/condition.h>
#include <rehearse/shapes/expr.h>
#include <rehearse_internal/shapes/range.h>

namespace rehearse::shapes {

class Facts;

// What must hold when the program runs, for what was captured to be right.
struct Guard {
  Condition condition;
  std::string reason;        // who asked: "TensorImpl.h:1071", or "fixed to 8: read as a plain number at ..."
  exec::CallSite where;      // the stack that asked; its lines are looked up when asked for
  bool specialises = false;  // a size was read as a plain number: the condition is `s0 == 8`
};

// A size or integer of an input, which may have another value in another call.
struct BackedSymbol {
  std::string name;                  // s<number>
  std::int64_t hint = 0;             // its value in the call that is captured
  std::vector<std::string> sources;  // such as "x.size(0)"; more than one by duck shaping: they must be equal
  Range range;                       // that values must have, from the beginning: sizes are at least 2
  std::size_t number = 0;            // in the name; counts up from 0, unless number_next() says otherwise
};

// An integer that the program itself brings into being, as the size of nonzero()'s result.
struct UnbackedSymbol {
  std::string name;      // u0, u1, ...
  exec::CallSite where;  // the stack that made it
};

// A source of a backed symbol. The values of all sources, in this order, are what a GuardProgram looks at.
struct SymbolSource {
  std::string text;
  std::size_t symbol = 0;  // index in ShapeEnv::backed()
};

// The symbols of one capture, and what is asked of them. A question that their ranges and earlier answers decide leaves
// no trace; another one is answered by the hints and becomes a guard. About an unbacked symbol it is a
// DataDependentError, unless the asker has an answer for that case.
//
// Not for several fibers at once: it belongs to the capture that made it. Never blocks. Symbols of one ShapeEnv must
// not meet those of another (ShapeError).
class ShapeEnv : public std::enable_shared_from_this<ShapeEnv> {
 public:
  struct Options {
    bool duck_shaping = true;  // sizes with equal hints are one symbol
  };

  static std::shared_ptr<ShapeEnv> make(Options options);
  static std::shared_ptr<ShapeEnv> make() { return make(Options{}); }
  ~ShapeEnv();
  ShapeEnv(const ShapeEnv&) = delete;
  ShapeEnv& operator=(const ShapeEnv&) = delete;

  // The next backed symbol has this number, and those after it count on. A capture that repeats an earlier one thus
  // gives its symbols their old names, even if some of them are plain numbers now. No two symbols may get one number.
  void number_next(std::size_t number) noexcept { next_number_ = number; }
  // The size of an input that may vary. 0 and 1 give the plain number, as broadcasting treats them apart: such an input
  // must be guarded to have that size. ShapeError for a negative hint.
  c10::SymInt add_backed(std::int64_t hint, std::string source);
  // One more source of a size of backed()[symbol], as duck shaping has found it: all must be equal in each call.
  c10::SymInt add_source(std::size_t symbol, std::string source);
  // An integer argument that may vary: of any value, 0 and 1 too, and never one symbol with another source.
  c10::SymInt add_backed_int(std::int64_t hint, std::string source);
  // Who brings an unbacked symbol into being: the capture, or the recording of a backward.
  enum class Maker : std::uint8_t { Capture, Backward };

  // From now on symbols of backwards have names apart: a function that is cut into segments names its own alike,
  // whether or not the segments before are compiled meanwhile.
  void count_backwards_apart() noexcept { backwards_apart_ = true; }

  // A size that is known only at run time: u<k> >= 0. The caller's stack is kept for messages.
  c10::SymInt add_unbacked(Maker maker = Maker::Capture);
  // A number that data holds, of any value: u<k>, which is no size until something states that it is not negative.
  c10::SymInt add_unbacked_number(Maker maker = Maker::Capture);

  const std::vector<BackedSymbol>& backed() const noexcept { return backed_; }
  // Null for a name that is none of them.
  // The capture has ended, and the call has told the value of an unbacked symbol: questions about it have an answer
  // now.
  void tell(const std::string& unbacked, std::int64_t value) { hints_.insert_or_assign(unbacked, value); }

  const BackedSymbol* find_backed(const std::string& name) const noexcept;
  const std::vector<UnbackedSymbol>& unbacked() const noexcept { return unbacked_; }
  const std::vector<SymbolSource>& sources() const noexcept { return sources_; }
  // Of backed symbols only, in the order in which they were asked. The ranges of backed() are not among them.
  const std::vector<Guard>& guards() const noexcept { return guards_; }
  // Facts with unbacked symbols, which the running program has to check.
  const std::vector<Guard>& asserts() const noexcept { return asserts_; }

  // Whether the condition holds. Records a guard where that is not known for all values. `reason`: who asks.
  bool guard(const Condition& condition, const std::string& reason);
  // guard(), but `fallback` and no trace where it hangs on an unbacked symbol.
  bool guard_or(const Condition& condition, bool fallback, const std::string& reason);
  // guard(), where sizes that are known only at run time are taken to be neither 0 nor 1. A number that may be negative
  // is no size.
  bool guard_size_oblivious(const Condition& condition, const std::string& reason);
  // States a fact. True, and checked when the program runs, where it hangs on an unbacked symbol.
  bool expect(const Condition& condition, const std::string& reason);
  // The value as a plain number: the size is fixed to its hint from now on.
  std::int64_t specialise(const Expr& expr, const std::string& reason);
  // Fixes each symbol; for what is no integer expression. `asked`: its text.
  void specialise_symbols(const std::vector<std::string>& symbols, const std::string& asked, const std::string& reason);
  // What another capture with the same symbols and guards has asked beyond these: adds it to guards(). Throws
  // ShapeError unless it holds for the hints.
  void take_guard(Guard guard);
  // States a fact that needs no check, as the shape of what a caller gives.
  void assume(const Condition& condition);

  // By ranges and facts alone; records nothing.
  std::optional<bool> decide(const Condition& condition) const;
  Range range(const Expr& expr) const;
  // With each symbol that is known to equal something simpler replaced by it.
  Expr simplify(const Expr& expr) const;
  Condition simplify(const Condition& condition) const;
  // In the call that is captured; none with an unbacked symbol.
  std::optional<std::int64_t> hint(const Expr& expr) const;
  std::optional<bool> hint(const Condition& condition) const;
  ValueOf hints() const;

  // One line a symbol, guard and assertion, for people and tests.
  std::string text() const;

 private:
  explicit ShapeEnv(Options options);
  c10::SymInt new_unbacked(const Range& range, Maker maker);
  c10::SymInt new_backed(std::int64_t hint, std::string source, const Range& range);
  bool record(const Condition& condition, bool value, const std::string& reason);
  [[noreturn]] void refuse(const std::vector<std::string>& symbols, const std::string& asked) const;

  Options options_;
  std::vector<BackedSymbol> backed_;
  std::size_t next_number_ = 0;
  std::vector<UnbackedSymbol> unbacked_;
  std::size_t of_backwards_ = 0;  // how many of unbacked_ have names apart
  bool backwards_apart_ = false;
  std::vector<SymbolSource> sources_;
  std::map<std::string, std::int64_t> hints_;         // by symbol
  std::map<std::int64_t, std::size_t> duck_symbols_;  // by hint: index in backed_
  std::vector<Guard> guards_;
  std::vector<Guard> asserts_;
  std::unique_ptr<Facts> facts_;
};

}  // namespace rehearse::shapes
