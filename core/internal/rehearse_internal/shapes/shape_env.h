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

// A condition that must hold when the program runs, or the capture would be wrong.
struct Guard {
  Condition condition;
  std::string reason;        // who asked: "TensorImpl.h:1071", or "fixed to 8: read as a plain number at ..."
  exec::CallSite where;      // the stack that asked; lines are looked up on demand
  bool specialises = false;  // a size was read as a plain number, so the condition is like `s0 == 8`
};

// A size or integer of an input that may have another value in another call.
struct BackedSymbol {
  std::string name;                  // s<number>
  std::int64_t hint = 0;             // its value in the captured call
  std::vector<std::string> sources;  // such as "x.size(0)"; duck shaping may add more, which must all be equal
  Range range;                       // allowed values from the start: sizes are at least 2
  std::size_t number = 0;            // the number in the name; counts from 0 unless number_next() sets it
};

// An integer that the program itself produces, such as the size of nonzero()'s result.
struct UnbackedSymbol {
  std::string name;      // u0, u1, ...
  exec::CallSite where;  // the stack that made it
};

// A source of a backed symbol. A GuardProgram takes the values of all sources, in this order.
struct SymbolSource {
  std::string text;
  std::size_t symbol = 0;  // index in ShapeEnv::backed()
};

// The symbols of one capture, and the questions about them. A question that ranges and earlier answers decide leaves no
// trace. Any other question is answered by the hints and becomes a guard. If the question depends on an unbacked symbol
// without a hint (see tell()), it throws DataDependentError, unless the caller provides an answer for that case.
//
// An environment belongs to the capture that made it; only one fiber at a time may use it. Never blocks. Symbols of
// different environments must not be combined (ShapeError).
class ShapeEnv : public std::enable_shared_from_this<ShapeEnv> {
 public:
  struct Options {
    bool duck_shaping = true;  // sizes with equal hints share a symbol
  };

  static std::shared_ptr<ShapeEnv> make(Options options);
  static std::shared_ptr<ShapeEnv> make() { return make(Options{}); }
  ~ShapeEnv();
  ShapeEnv(const ShapeEnv&) = delete;
  ShapeEnv& operator=(const ShapeEnv&) = delete;

  // Sets the number of the next backed symbol; later symbols count on from this number. Thus a capture that repeats an
  // earlier one gives its symbols the same names, even if some symbols of the earlier capture have become plain
  // numbers. No two symbols may have the same number.
  void number_next(std::size_t number) noexcept { next_number_ = number; }
  // Adds an input's size, which may vary between calls. Returns 0 and 1 as plain numbers, because broadcasting treats
  // them differently; the caller must then guard that the size is this number. Throws ShapeError for a negative hint.
  c10::SymInt add_backed(std::int64_t hint, std::string source);
  // Adds another source of the size backed()[symbol], as duck shaping does. All sources of one symbol must be equal in
  // each call.
  c10::SymInt add_source(std::size_t symbol, std::string source);
  // Adds an integer argument that may vary. The argument may have any value, including 0 and 1, and never shares a
  // symbol.
  c10::SymInt add_backed_int(std::int64_t hint, std::string source);
  // Says what defines an unbacked symbol: the capture, or the recording of a backward.
  enum class Maker : std::uint8_t { Capture, Backward };

  // From now on, symbols of backwards have separate names. Thus a function that is captured in segments gets the same
  // names for its own symbols whether or not earlier segments are compiled meanwhile.
  void count_backwards_apart() noexcept { backwards_apart_ = true; }

  // Adds a size that is known only at run time: u<k> >= 0. Keeps the caller's stack for messages.
  c10::SymInt add_unbacked(Maker maker = Maker::Capture);
  // Adds a number from data, of any value: u<k>. The number counts as a size only once a fact states that it is not
  // negative.
  c10::SymInt add_unbacked_number(Maker maker = Maker::Capture);

  const std::vector<BackedSymbol>& backed() const noexcept { return backed_; }
  // Call it when the capture ends. Sets the value of an unbacked symbol, so that questions about the symbol have an
  // answer.
  void tell(const std::string& unbacked, std::int64_t value) { hints_.insert_or_assign(unbacked, value); }

  // Null if there is no backed symbol of that name.
  const BackedSymbol* find_backed(const std::string& name) const noexcept;
  const std::vector<UnbackedSymbol>& unbacked() const noexcept { return unbacked_; }
  const std::vector<SymbolSource>& sources() const noexcept { return sources_; }
  // Guards on symbols with hints, in the order of the questions. Before tell() is called, only backed symbols have
  // hints. Does not contain the ranges in backed().
  const std::vector<Guard>& guards() const noexcept { return guards_; }
  // Facts about unbacked symbols, which the running program has to check.
  const std::vector<Guard>& asserts() const noexcept { return asserts_; }

  // Returns whether the condition holds. Adds a guard if the known facts do not decide that. `reason`: who asks.
  bool guard(const Condition& condition, const std::string& reason);
  // Like guard(), but returns `fallback` and adds no guard if the condition depends on an unbacked symbol.
  bool guard_or(const Condition& condition, bool fallback, const std::string& reason);
  // Like guard(), but assumes that sizes that are known only at run time are neither 0 nor 1. Numbers that may be
  // negative are not sizes.
  bool guard_size_oblivious(const Condition& condition, const std::string& reason);
  // Like guard_or(), with the assumption of guard_size_oblivious().
  bool guard_size_oblivious_or(const Condition& condition, bool fallback, const std::string& reason);
  // States a fact. If the fact depends on an unbacked symbol and is not known to hold or fail, returns true, and the
  // running program checks the fact. Otherwise like guard().
  bool expect(const Condition& condition, const std::string& reason);
  // Returns the expression's value as a plain number. If the known facts do not give the value, returns the hint, and
  // adds a guard that fixes the expression to the hint.
  std::int64_t specialise(const Expr& expr, const std::string& reason);
  // Fixes each of the symbols to its hint. For floating-point expressions. `asked`: the expression's text.
  void specialise_symbols(const std::vector<std::string>& symbols, const std::string& asked, const std::string& reason);
  // Adds a guard that another capture with the same symbols needed in addition to the guards of this one. Throws
  // ShapeError if the guard does not hold for the hints.
  void take_guard(Guard guard);

  // Decides by ranges and facts only, and records nothing.
  std::optional<bool> decide(const Condition& condition) const;
  Range range(const Expr& expr) const;
  // Replaces each symbol that is known to equal something simpler.
  Expr simplify(const Expr& expr) const;
  Condition simplify(const Condition& condition) const;
  // The value in the captured call; nothing if it depends on an unbacked symbol whose value tell() has not set.
  std::optional<std::int64_t> hint(const Expr& expr) const;
  std::optional<bool> hint(const Condition& condition) const;
  ValueOf hints() const;

  // One line for each backed symbol, guard and assertion, for messages and tests.
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
  std::size_t of_backwards_ = 0;  // number of symbols in unbacked_ with separate names
  bool backwards_apart_ = false;
  std::vector<SymbolSource> sources_;
  std::map<std::string, std::int64_t> hints_;         // by symbol
  std::map<std::int64_t, std::size_t> duck_symbols_;  // by hint: index in backed_
  std::vector<Guard> guards_;
  std::vector<Guard> asserts_;
  std::unique_ptr<Facts> facts_;
};

}  // namespace rehearse::shapes
