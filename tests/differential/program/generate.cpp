// SPDX-License-Identifier: BSD-3-Clause
#include "differential/program/generate.h"

#include <algorithm>
#include <exception>
#include <random>

#include "differential/program/interpret.h"
#include "differential/program/net.h"
#include "differential/program/propose.h"
#include "differential/run/inputs.h"
#include "differential/run/observe.h"

namespace rehearse_test::differential {
namespace {

constexpr int kTriesPerStatement = 12;
constexpr std::size_t kArgumentsMax = 3;

// compile() may refuse a whole program because of one of these families, so only one program in kSeldomIn uses each.
constexpr const char* kSeldom[] = {"swallow", "generator",    "flags",    "form",   "out",      "unbacked",
                                   "member",  "eager_region", "opaque",   "state",  "thread",   "argument",
                                   "facts",   "storage",      "versions", "single", "function", "kept_hook"};
constexpr int kSeldomIn = 12;
constexpr int kOthersIn = 4;  // a program leaves out about one in kOthersIn of the other families

bool is_seldom(const std::string& family) {
  return std::any_of(std::begin(kSeldom), std::end(kSeldom), [&](const char* each) { return family == each; });
}

bool has_branch(const std::vector<Statement>& statements) {
  return std::any_of(statements.begin(), statements.end(), [](const Statement& each) {
    return each.operation->control == Control::Branch ||
           std::any_of(each.blocks.begin(), each.blocks.end(),
                       [](const Block& block) { return has_branch(block.statements); });
  });
}

bool has_checkpoint(const std::vector<Statement>& statements) {
  return std::any_of(statements.begin(), statements.end(),
                     [](const Statement& each) { return each.operation->control == Control::Checkpoint; });
}

// A checkpoint contains none of these families. It runs its code twice, so it would repeat effects on things that are
// not tensors. It would also repeat writes that leave a tensor's version as it is, and nothing would notice them.
constexpr const char* kNotInCheckpoints[] = {"argument", "state",  "member",  "collective",   "thread", "generator",
                                             "flags",    "opaque", "swallow", "eager_region", "facts",  "versions"};

bool runs(const Program& program, const CallSpec& call, Answer answer) {
  at::manual_seed(program.seed);
  Net net(program);
  // As long as the program has no results, returns the outputs of all its statements.
  const Forward forward = [&](const Tensors& arguments, std::int64_t count, std::int64_t& steps) {
    Interpreted all = interpret(program, arguments, count, steps, &net, answer);
    if (!program.results.empty()) return all.results;
    const std::size_t first = program.arguments.size() + free_names().size();
    return Tensors(all.values.begin() + static_cast<std::ptrdiff_t>(first), all.values.end());
  };
  return observe(program, call, net, forward).thrown_in.empty();
}

class Generator {
 public:
  Generator(std::uint64_t seed, const Recipe& recipe) : recipe_(recipe), random_(seed) { program_.seed = seed; }

  Program generate() {
    choose_families();
    make_arguments();
    ask_views();
    make_layers();
    for (int tries = 0; statements_in(program_.statements) < recipe_.statements && tries < 20 * recipe_.statements;
         ++tries) {
      add_to(program_.statements, Answer::Ask, 2);
    }
    choose_results();
    return program_;
  }

 private:
  int below(int bound) { return random_.below(bound); }

  // Each program uses only some families of statements, so that one family does not hide the effects of another.
  void choose_families() {
    for (const std::string& family : recipe_.families) {
      if (is_seldom(family) ? below(kSeldomIn) == 0 : below(kOthersIn) > 0) families_.push_back(family);
    }
    if (families_.empty()) families_ = recipe_.families;
  }

  void make_arguments() {
    const bool mixed = below(4) == 0, odd = below(3) == 0;
    const std::size_t count = 1 + static_cast<std::size_t>(below(static_cast<int>(kArgumentsMax)));
    for (std::size_t i = 0; i < count; ++i) {
      Argument argument;
      argument.sizes = sizes();
      if (i > 0 && below(5) == 0) argument.dtype = below(2) == 0 ? at::kLong : at::kBool;
      if (mixed && argument.is_floating() && below(2) == 0) argument.dtype = at::kFloat;
      if (argument.is_floating()) argument.form = form(i);
      if (argument.form == Form::Overlapping || argument.form == Form::SameAsBefore) {
        argument.sizes = program_.arguments.back().sizes;
        argument.dtype = program_.arguments.back().dtype;
      }
      argument.odd = odd && argument.is_floating() && below(2) == 0;
      program_.arguments.push_back(argument);
    }
  }

  Form form(std::size_t place) {
    static constexpr Form kForms[] = {Form::Plain,    Form::Plain, Form::Leaf,       Form::Leaf,
                                      Form::Computed, Form::View,  Form::Transposed, Form::Sliced};
    if (place > 0 && below(12) == 0 && program_.arguments.back().is_floating()) {
      Argument& before = program_.arguments.back();
      if (before.form == Form::Plain && !before.sizes.empty() && below(2) == 0) return Form::Overlapping;
      return Form::SameAsBefore;
    }
    return kForms[static_cast<std::size_t>(below(8))];
  }

  // Programs with views as arguments ask more often whether a tensor is a view.
  void ask_views() {
    const auto is_view = [](const Argument& each) {
      return each.form == Form::View || each.form == Form::Transposed || each.form == Form::Sliced;
    };
    const std::vector<std::string>& all = recipe_.families;
    if (enabled("facts") || std::find(all.begin(), all.end(), "facts") == all.end()) return;
    const bool views = std::any_of(program_.arguments.begin(), program_.arguments.end(), is_view);
    if (views && below(6) == 0) families_.emplace_back("facts");
  }

  std::vector<Size> sizes() {
    const Size n{0, 0}, m{0, 1}, width{kWidth, Size::kFixed}, three{3, Size::kFixed};
    switch (below(9)) {
      case 0:
        return {n};
      case 1:
        return {width};
      case 2:
        return {n, m};
      case 3:
        return {n, m, width};
      case 4:
        return {three, width};
      case 5:
        return {m, width};
      default:
        return {n, width};
    }
  }

  void make_layers() {
    if (!enabled("module")) return;
    const int count = below(4);
    for (int i = 0; i < count; ++i) {
      program_.layers.push_back(layer_kinds()[static_cast<std::size_t>(below(static_cast<int>(layer_kinds().size())))]);
    }
  }

  bool enabled(const std::string& family) const {
    return std::find(families_.begin(), families_.end(), family) != families_.end();
  }

  // `list` is part of program_. `answer`: the block that branches must take so that `list` runs; Ask: no branch leads
  // to `list`. `nest`: how deeply blocks may nest.
  bool add_to(std::vector<Statement>& list, Answer answer, int nest, bool in_checkpoint = false) {
    Proposer proposer(program_, families_, random_);
    if (!proposer.look(answer)) return false;
    for (int tries = 0; tries < kTriesPerStatement; ++tries) {
      const auto proposed = proposer.propose(nest > 0);
      if (!proposed || (in_checkpoint && !may_be_in_checkpoint(*proposed))) continue;
      list.push_back(*proposed);
      const Control control = proposed->operation->control;
      if (!runs_eagerly(program_)) {
        list.pop_back();
        continue;
      }
      if (control == Control::Checkpoint) {
        fill_checkpoint(list.back(), nest - 1);
      } else if (control != Control::None) {
        fill_blocks(list.back(), answer, in_checkpoint);
      }
      return true;
    }
    return false;
  }

  static bool may_be_in_checkpoint(const Statement& statement) {
    return std::none_of(std::begin(kNotInCheckpoints), std::end(kNotInCheckpoints),
                        [&](const char* family) { return statement.operation->family == std::string(family); });
  }

  // The checkpoint mostly returns the result of its last statement.
  void fill_checkpoint(Statement& statement, int nest) {
    std::vector<Statement>& inside = statement.blocks[0].statements;
    for (int i = 1 + below(4); i > 0; --i) add_to(inside, Answer::First, nest, true);
    if (below(6) == 0) return;
    Proposer proposer(program_, families_, random_);
    if (!proposer.look(Answer::First)) return;
    const bool own = !inside.empty() && !inside.back().outputs.empty() && below(6) > 0;
    statement.blocks[0].yields = own ? inside.back().outputs[0] : proposer.any_value();
    if (!runs_eagerly(program_)) statement.blocks[0].yields = -1;
  }

  void fill_blocks(Statement& statement, Answer answer, bool in_checkpoint) {
    const bool branch = statement.operation->control == Control::Branch;
    for (std::size_t b = 0; b < statement.blocks.size(); ++b) {
      const int count = branch ? below(3) : 1 + below(3);
      const Answer inside = branch ? (b == 0 ? Answer::First : Answer::Second) : answer;
      for (int i = 0; i < count; ++i) add_to(statement.blocks[b].statements, inside, 0, in_checkpoint);
    }
    if (branch) hand_on(statement);
  }

  // Mostly lets the branch return a value. Each of its blocks chooses a value that exists when the block ends.
  void hand_on(Statement& statement) {
    if (below(4) == 0) return;
    Statement before = statement;
    const int output = values_of(program_);
    for (std::size_t b = 0; b < 2; ++b) {
      Proposer proposer(program_, families_, random_);
      if (!proposer.look(b == 0 ? Answer::First : Answer::Second)) return;
      const auto& inside = statement.blocks[b].statements;
      const bool own = !inside.empty() && !inside.back().outputs.empty() && below(3) > 0;
      statement.blocks[b].yields = own ? inside.back().outputs[0] : proposer.any_value();
    }
    statement.outputs = {output};
    if (!runs_eagerly(program_)) statement = before;
  }

  void choose_results() {
    Proposer proposer(program_, families_, random_);
    proposer.look(Answer::Ask);
    const int count = 1 + below(3);
    for (int tries = 0; static_cast<int>(program_.results.size()) < count && tries < 20; ++tries) {
      program_.results.push_back(proposer.result());
      if (!runs_eagerly(program_)) program_.results.pop_back();
    }
    program_.backward = static_cast<Backward>(below(9) % 5);
    if (!runs_eagerly(program_)) program_.backward = Backward::AllTogether;
    const int change = below(12);
    if (change < 3) program_.change = change < 2 ? Change::Result : Change::Argument;
    if (has_checkpoint(program_.statements) && !runs_eagerly(program_)) program_.change = Change::None;
  }

  const Recipe& recipe_;
  std::vector<std::string> families_;
  Random random_;
  Program program_;
};

}  // namespace

bool runs_eagerly(const Program& program) {
  const std::vector<CallSpec> calls = all_calls(program.seed);
  for (const std::size_t which : {0, 3}) {
    if (!has_branch(program.statements)) {
      if (!runs(program, calls[which], Answer::First)) return false;
      continue;
    }
    for (const Answer answer : {Answer::First, Answer::Second}) {
      if (!runs(program, calls[which], answer)) return false;
    }
  }
  return true;
}

Program generate(std::uint64_t seed, const Recipe& recipe) { return Generator(seed, recipe).generate(); }

}  // namespace rehearse_test::differential
