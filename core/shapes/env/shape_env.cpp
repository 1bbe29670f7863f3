// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/shapes/shape_env.h>

#include <utility>

#include <rehearse/shapes/errors.h>
#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/shapes/sym_node.h>

#include "shapes/expr/bounds/facts.h"

namespace rehearse::shapes {
namespace {

// After count_backwards_apart(), backwards number their symbols from here. No capture has that many symbols of its own.
constexpr std::size_t kFirstOfBackwards = 1'000'000;

}  // namespace

ShapeEnv::ShapeEnv(Options options) : options_(options), facts_(std::make_unique<Facts>()) {}

ShapeEnv::~ShapeEnv() = default;

std::shared_ptr<ShapeEnv> ShapeEnv::make(Options options) { return std::shared_ptr<ShapeEnv>(new ShapeEnv(options)); }

c10::SymInt ShapeEnv::new_backed(std::int64_t hint, std::string source, const Range& range) {
  REHEARSE_CHECK(range.contains(hint), hint, source);
  const std::size_t number = next_number_++;
  const std::string name = "s" + std::to_string(number);
  sources_.push_back({source, backed_.size()});
  backed_.push_back({name, hint, {std::move(source)}, range, number});
  hints_.emplace(name, hint);
  const Expr symbol = Expr::symbol(name);
  facts_->set_range(symbol, range);
  return to_sym_int(shared_from_this(), symbol);
}

c10::SymInt ShapeEnv::add_backed(std::int64_t hint, std::string source) {
  if (hint < 0) throw ShapeError(source + " is " + std::to_string(hint) + ": a size is not negative");
  if (hint <= 1) return hint;
  const auto [known, is_new] = duck_symbols_.try_emplace(hint, backed_.size());
  if (is_new || !options_.duck_shaping) return new_backed(hint, std::move(source), {2, Range::kUnboundedAbove});
  return add_source(known->second, std::move(source));
}

c10::SymInt ShapeEnv::add_source(std::size_t symbol, std::string source) {
  BackedSymbol& backed = backed_.at(symbol);
  sources_.push_back({source, symbol});
  backed.sources.push_back(std::move(source));
  return to_sym_int(shared_from_this(), Expr::symbol(backed.name));
}

c10::SymInt ShapeEnv::add_backed_int(std::int64_t hint, std::string source) {
  return new_backed(hint, std::move(source), {});
}

c10::SymInt ShapeEnv::new_unbacked(const Range& range, Maker maker) {
  const bool of_backward = maker == Maker::Backward && backwards_apart_;
  const std::size_t number = of_backward ? kFirstOfBackwards + of_backwards_++ : unbacked_.size() - of_backwards_;
  REHEARSE_CHECK(!range.empty() && of_backwards_ <= unbacked_.size() + 1, number);
  const std::string name = "u" + std::to_string(number);
  unbacked_.push_back({name, exec::CallSite::capture()});
  const Expr symbol = Expr::symbol(name);
  facts_->set_range(symbol, range);
  return to_sym_int(shared_from_this(), symbol);
}

c10::SymInt ShapeEnv::add_unbacked(Maker maker) { return new_unbacked({0, Range::kUnboundedAbove}, maker); }
c10::SymInt ShapeEnv::add_unbacked_number(Maker maker) { return new_unbacked({}, maker); }

const BackedSymbol* ShapeEnv::find_backed(const std::string& name) const noexcept {
  for (const BackedSymbol& symbol : backed_) {
    if (symbol.name == name) return &symbol;
  }
  return nullptr;
}

std::optional<bool> ShapeEnv::decide(const Condition& condition) const { return facts_->decide(condition); }
Range ShapeEnv::range(const Expr& expr) const { return facts_->range(expr); }
Expr ShapeEnv::simplify(const Expr& expr) const { return facts_->simplify(expr); }
Condition ShapeEnv::simplify(const Condition& condition) const { return facts_->simplify(condition); }

ValueOf ShapeEnv::hints() const {
  return [this](const std::string& symbol) -> std::optional<std::int64_t> {
    const auto found = hints_.find(symbol);
    return found == hints_.end() ? std::nullopt : std::optional(found->second);
  };
}

std::optional<std::int64_t> ShapeEnv::hint(const Expr& expr) const { return simplify(expr).evaluate(hints()); }

std::optional<bool> ShapeEnv::hint(const Condition& condition) const { return simplify(condition).evaluate(hints()); }

std::string ShapeEnv::text() const {
  std::string text;
  for (const BackedSymbol& symbol : backed_) {
    text += symbol.name + " = " + std::to_string(symbol.hint);
    for (const std::string& source : symbol.sources) text += (&source == symbol.sources.data() ? "  " : ", ") + source;
    text += '\n';
  }
  for (const Guard& guard : guards_) text += "guard " + guard.condition.text() + "  " + guard.reason + '\n';
  for (const Guard& fact : asserts_) text += "assert " + fact.condition.text() + "  " + fact.reason + '\n';
  return text;
}

}  // namespace rehearse::shapes
