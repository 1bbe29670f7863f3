// SPDX-License-Identifier: BSD-3-Clause
#include "differential/run/shrink.h"

#include <algorithm>
#include <set>
#include <utility>

#include "differential/program/net.h"

namespace rehearse_test::differential {
namespace {

using Fails = std::function<bool(const Case&)>;

// Every list of statements in the program, outer ones first.
void collect(std::vector<Statement>& list, std::vector<std::vector<Statement>*>& lists) {
  lists.push_back(&list);
  for (Statement& statement : list) {
    for (Block& block : statement.blocks) collect(block.statements, lists);
  }
}

void replace_value(std::vector<Statement>& list, int from, int to) {
  for (Statement& statement : list) {
    for (int& input : statement.inputs) input = input == from ? to : input;
    for (Number& number : statement.numbers) number.of = number.of == from ? to : number.of;
    for (Block& block : statement.blocks) {
      block.yields = block.yields == from ? to : block.yields;
      replace_value(block.statements, from, to);
    }
  }
}

void replace_value(Program& program, int from, int to) {
  replace_value(program.statements, from, to);
  for (int& result : program.results) result = result == from ? to : result;
}

class Shrinker {
 public:
  Shrinker(Case failing, const Fails& fails) : best_(std::move(failing)), fails_(fails) {}

  Case run() {
    for (bool smaller = true; smaller;) {
      smaller = fewer_calls();
      smaller |= fewer_statements();
      smaller |= open_blocks();
      smaller |= fewer_results();
      smaller |= simpler_statements();
      smaller |= simpler_rest();
    }
    return best_;
  }

 private:
  bool keep(Case candidate) {
    if (!fails_(candidate)) return false;
    best_ = std::move(candidate);
    return true;
  }

  bool fewer_calls() {
    bool smaller = false;
    for (std::size_t i = best_.calls.size(); i-- > 0 && best_.calls.size() > 1;) {
      Case candidate = best_;
      candidate.calls.erase(candidate.calls.begin() + static_cast<std::ptrdiff_t>(i));
      smaller |= keep(std::move(candidate));
    }
    return smaller;
  }

  // Visits every statement, from the last list to the first, and in each list from the last statement to the first.
  // `change` gets the case, the number of the list, and the index in the list.
  template <class Change>
  bool each_statement(Change&& change) {
    bool smaller = false;
    std::vector<std::vector<Statement>*> lists;
    collect(best_.program.statements, lists);
    for (std::size_t l = lists.size(); l-- > 0;) {
      for (std::size_t i = 1000; i-- > 0;) {
        Case candidate = best_;
        std::vector<std::vector<Statement>*> now;
        collect(candidate.program.statements, now);
        if (l >= now.size()) break;
        if (i >= now[l]->size()) {
          i = now[l]->size();
          continue;
        }
        smaller |= change(candidate, l, i);
      }
    }
    return smaller;
  }

  static std::vector<Statement>& list_of(Case& candidate, std::size_t which) {
    std::vector<std::vector<Statement>*> lists;
    collect(candidate.program.statements, lists);
    return *lists[which];
  }

  // Removes a statement. Statements that use its outputs get another value: an input of the removed statement, a value
  // that its blocks returned, an argument, or a tensor of the module.
  bool fewer_statements() {
    return each_statement([this](const Case& from, std::size_t l, std::size_t i) {
      Case plain = from;
      const Statement removed = list_of(plain, l)[i];
      std::vector<int> others = removed.inputs;
      for (const Block& block : removed.blocks) others.push_back(block.yields);
      for (int value = 0; value < from.program.first_free(); ++value) others.push_back(value);
      others.push_back(from.program.first_free() + 1);  // the module's matrix
      others.push_back(from.program.first_free() + 2);  // the module's scalar
      if (removed.outputs.empty()) others = {-1};
      for (const int other : others) {
        Case candidate = from;
        std::vector<Statement>& list = list_of(candidate, l);
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
        for (const int output : removed.outputs) replace_value(candidate.program, output, other);
        if (keep(std::move(candidate))) return true;
      }
      return false;
    });
  }

  // Replaces a branch by one of its blocks, or a mode or checkpoint by its block.
  bool open_blocks() {
    return each_statement([this](const Case& from, std::size_t l, std::size_t i) {
      Case plain = from;
      const Statement opened = list_of(plain, l)[i];
      for (const Block& block : opened.blocks) {
        if (opened.operation->control == Control::ForEach) continue;
        Case candidate = from;
        std::vector<Statement>& list = list_of(candidate, l);
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
        list.insert(list.begin() + static_cast<std::ptrdiff_t>(i), block.statements.begin(), block.statements.end());
        if (!opened.outputs.empty()) replace_value(candidate.program, opened.outputs[0], block.yields);
        if (keep(std::move(candidate))) return true;
      }
      return false;
    });
  }

  bool fewer_results() {
    bool smaller = false;
    for (std::size_t i = best_.program.results.size(); i-- > 0 && best_.program.results.size() > 1;) {
      Case candidate = best_;
      candidate.program.results.erase(candidate.program.results.begin() + static_cast<std::ptrdiff_t>(i));
      smaller |= keep(std::move(candidate));
    }
    return smaller;
  }

  // Replaces an input by an argument of the program, or a number by a constant.
  bool simpler_statements() {
    return each_statement([this](const Case& from, std::size_t l, std::size_t i) {
      Case plain = from;
      const Statement before = list_of(plain, l)[i];
      for (std::size_t input = 0; input < before.inputs.size(); ++input) {
        for (int value = 0; value < std::min(before.inputs[input], from.program.first_free()); ++value) {
          Case candidate = from;
          list_of(candidate, l)[i].inputs[input] = value;
          if (keep(std::move(candidate))) return true;
        }
      }
      for (std::size_t number = 0; number < before.numbers.size(); ++number) {
        if (before.numbers[number].of == Number::kConstant) continue;
        for (const std::int64_t constant : {0, 1, 2, 3, 4}) {
          Case candidate = from;
          list_of(candidate, l)[i].numbers[number] = {.add = constant};
          if (keep(std::move(candidate))) return true;
        }
      }
      return false;
    });
  }

  bool simpler_rest() {
    bool smaller = false;
    for (std::size_t i = 0; i < best_.program.arguments.size(); ++i) {
      const Form form = best_.program.arguments[i].form;
      for (const Form simpler : {Form::Plain, Form::Leaf, Form::Computed}) {
        if (simpler >= form) break;
        Case candidate = best_;
        candidate.program.arguments[i].form = simpler;
        if (keep(std::move(candidate))) {
          smaller = true;
          break;
        }
      }
      smaller |= simpler_elements(i);
    }
    if (best_.program.change != Change::None) {
      Case candidate = best_;
      candidate.program.change = Change::None;
      if (keep(std::move(candidate))) smaller = true;
    }
    for (const Backward backward : {Backward::None, Backward::AllTogether, Backward::SumOfAll}) {
      if (best_.program.backward == backward) break;
      Case candidate = best_;
      candidate.program.backward = backward;
      if (keep(std::move(candidate))) {
        smaller = true;
        break;
      }
    }
    return smaller || drop_last_argument() || drop_last_layer();
  }

  bool simpler_elements(std::size_t which) {
    Case candidate = best_;
    Argument& argument = candidate.program.arguments[which];
    const bool odd = std::exchange(argument.odd, false);
    if (odd && keep(candidate)) return true;
    argument.odd = odd;
    return std::exchange(argument.dtype, c10::ScalarType::Double) == c10::ScalarType::Float && keep(candidate);
  }

  bool drop_last_layer() {
    if (best_.program.layers.empty()) return false;
    Case candidate = best_;
    candidate.program.layers.pop_back();
    return keep(std::move(candidate));
  }

  // Values that are no arguments have larger numbers than all arguments, so their numbers decrease by one.
  bool drop_last_argument() {
    if (best_.program.arguments.size() < 2) return false;
    Case candidate = best_;
    const int gone = candidate.program.first_free() - 1;
    const int values = values_of(candidate.program);
    candidate.program.arguments.pop_back();
    replace_value(candidate.program, gone, -7);
    for (int value = gone + 1; value < values; ++value) {
      replace_value(candidate.program, value, value - 1);
      renumber_output(candidate.program.statements, value);
    }
    return keep(std::move(candidate));
  }

  static void renumber_output(std::vector<Statement>& list, int value) {
    for (Statement& statement : list) {
      for (int& output : statement.outputs) output = output == value ? value - 1 : output;
      for (Block& block : statement.blocks) renumber_output(block.statements, value);
    }
  }

  Case best_;
  const Fails& fails_;
};

}  // namespace

Case shrink(Case failing, const std::function<bool(const Case&)>& fails) {
  return Shrinker(std::move(failing), fails).run();
}

}  // namespace rehearse_test::differential
