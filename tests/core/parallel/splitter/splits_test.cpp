// SPDX-License-Identifier: BSD-3-Clause
// Every recorded case at every recorded cap: buckets and pieces equal those of PyTorch's DDPOptimizer.
#include <algorithm>
#include <cctype>
#include <exception>
#include <iomanip>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rehearse/parallel/bucket_splitter.h>

#include "core/graph/recorded_graph.h"
#include "core/parallel/splitter/truth_file.h"

namespace {

using nlohmann::json;
using rehearse_test::RecordedSplits;
namespace graph = rehearse::graph;
namespace parallel = rehearse::parallel;

using Lines = std::vector<std::string>;

// ---- the compared properties as lines of text, so that a difference is easy to read

std::string joined(const Lines& items) {
  std::string text;
  for (const auto& item : items) text += (text.empty() ? "" : " ") + item;
  return text;
}

Lines sorted(Lines items) {
  std::sort(items.begin(), items.end());
  return items;
}

bool is_unbacked(const std::string& symbol) {
  return symbol.size() > 1 && symbol[0] == 'u' &&
         std::all_of(symbol.begin() + 1, symbol.end(), [](unsigned char c) { return std::isdigit(c); });
}

// The symbols as text. Unbacked symbols may have other names than in the record, so each becomes `u`, and the test
// compares only how many there are. PyTorch turned some backed symbols into numbers when it ran the piece on fake
// tensors (a matrix product fixed them). In our pieces, these symbols are inputs. So numbers and such symbols all
// become `number`.
std::string symbols(const Lines& expressions, const std::set<std::string>& specialised) {
  Lines texts;
  for (const auto& text : expressions) {
    const bool number = !text.empty() && std::all_of(text.begin(), text.end(), ::isdigit);
    texts.push_back(is_unbacked(text) ? "u" : number || specialised.contains(text) ? "number" : text);
  }
  return joined(sorted(texts));
}

Lines recorded_buckets(const json& compile) {
  Lines lines;
  for (const auto& bucket : compile.at("buckets")) {
    lines.push_back("size " + bucket.at("size").dump());
    lines.push_back("  params " + joined(bucket.at("params").get<Lines>()));
    lines.push_back("  nodes " + joined(bucket.at("nodes").get<Lines>()));
    lines.push_back("  extended " + bucket.at("extended_ops").dump() + " after " +
                    bucket.at("paramsize_before_extend").dump());
  }
  return lines;
}

Lines our_buckets(const std::vector<parallel::ForwardBucket>& buckets) {
  Lines lines;
  for (const auto& bucket : buckets) {
    Lines nodes;
    for (const auto* node : bucket.nodes) nodes.push_back(node->name());
    lines.push_back("size " + std::to_string(bucket.bytes));
    lines.push_back("  params " + joined(bucket.parameters));
    lines.push_back("  nodes " + joined(nodes));
    lines.push_back("  extended " + std::to_string(bucket.extended_ops) + " after " +
                    std::to_string(bucket.bytes_before_extension));
  }
  return lines;
}

void names_in(const json& value, Lines& names) {
  if (value.is_object() && value.contains("n"))
    names.push_back(value.at("n").get<std::string>());
  else if (value.is_structured())
    for (const auto& item : value) names_in(item, names);
}

Lines names_in(const json& value) {
  Lines names;
  names_in(value, names);
  return names;
}

std::string name_of(const json& item) {
  return item.is_string() ? item.get<std::string>() : item.at("name").get<std::string>();
}
std::string body_name(const json& item) {
  return item.is_string() ? item.get<std::string>() : item.at(0).get<std::string>();
}

struct Piece {
  std::string name;
  Lines arguments, inputs, body, outputs, symint_inputs;
};

std::vector<Piece> recorded_pieces(const json& compile) {
  std::vector<Piece> pieces;
  for (const auto& record : compile.at("split_submods")) {
    Piece piece;
    piece.name = record.at("name");
    piece.arguments = names_in(record.at("args"));
    for (const auto& input : record.at("inputs")) piece.inputs.push_back(name_of(input));
    for (const auto& node : record.at("body")) piece.body.push_back(body_name(node));
    piece.outputs = names_in(record.at("outputs"));
    for (const auto& symbol : record.at("symint_inputs")) piece.symint_inputs.push_back(symbol);
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

Piece our_piece(const graph::Node& call, const graph::GraphModule& module) {
  Piece piece;
  piece.name = call.target();
  for (const auto& argument : call.args()) {
    graph::for_each_node(argument, [&](const graph::Node& node) { piece.arguments.push_back(node.name()); });
  }
  for (const auto& node : module.graph()) {
    if (node.op() == graph::Op::Placeholder) {
      piece.inputs.push_back(node.name());
      const auto* scalar = node.meta().value ? node.meta().value->scalar() : nullptr;
      if (scalar && scalar->kind == graph::SymScalarMeta::Kind::Int) {
        piece.symint_inputs.push_back(scalar->expression.text());
      }
    } else if (node.op() == graph::Op::Output) {
      graph::for_each_node(node.args().at(0), [&](const graph::Node& out) { piece.outputs.push_back(out.name()); });
    } else {
      piece.body.push_back(node.name());
    }
  }
  return piece;
}

std::vector<Piece> our_pieces(const graph::GraphModule& split) {
  std::vector<Piece> pieces;
  for (const auto& node : split.graph()) {
    if (node.op() == graph::Op::CallModule) pieces.push_back(our_piece(node, *split.find_submodule(node.target())));
  }
  return pieces;
}

// The properties of each piece. Arguments, inputs, outputs and symbols are sorted, because their order does not count.
Lines lines_of(const std::vector<Piece>& pieces, const std::set<std::string>& specialised) {
  Lines lines;
  for (const auto& piece : pieces) {
    lines.push_back(piece.name);
    lines.push_back("  arguments " + joined(sorted(piece.arguments)));
    lines.push_back("  inputs " + joined(sorted(piece.inputs)));
    lines.push_back("  body " + joined(piece.body));
    lines.push_back("  outputs " + joined(sorted(piece.outputs)));
    lines.push_back("  symints " + symbols(piece.symint_inputs, specialised));
  }
  return lines;
}

// Backed symbols that are inputs of our pieces, and for which PyTorch recorded a number.
std::set<std::string> specialised_symbols(const std::vector<Piece>& recorded, const std::vector<Piece>& ours) {
  std::set<std::string> found;
  for (std::size_t i = 0; i < std::min(recorded.size(), ours.size()); ++i) {
    std::set<std::string> theirs(recorded[i].symint_inputs.begin(), recorded[i].symint_inputs.end());
    const bool number =
        std::any_of(theirs.begin(), theirs.end(), [](const auto& text) { return std::isdigit(text[0]); });
    for (const auto& symbol : ours[i].symint_inputs) {
      if (number && !is_unbacked(symbol) && !theirs.contains(symbol)) found.insert(symbol);
    }
  }
  return found;
}

std::string side_by_side(const Lines& expected, const Lines& found) {
  std::size_t width = 8;
  for (const auto& line : expected) width = std::max(width, std::min<std::size_t>(line.size(), 90));
  std::ostringstream text;
  text << "    " << std::left << std::setw(static_cast<int>(width)) << "expected" << "   found\n";
  for (std::size_t i = 0; i < std::max(expected.size(), found.size()); ++i) {
    const std::string left = i < expected.size() ? expected[i] : "";
    const std::string right = i < found.size() ? found[i] : "";
    text << (left == right ? "    " : "  ! ") << std::setw(static_cast<int>(width)) << left << " | " << right << '\n';
  }
  return text.str();
}

testing::AssertionResult same(const std::string& what, const Lines& expected, const Lines& found) {
  if (expected == found) return testing::AssertionSuccess();
  return testing::AssertionFailure() << what << ":\n" << side_by_side(expected, found);
}

// ---- one compilation of one graph at one cap

void compare(const std::shared_ptr<graph::GraphModule>& module, const json& compile) {
  parallel::BucketSplitterOptions options;
  options.bucket_bytes_cap = compile.at("bucket_bytes_cap");
  options.first_bucket_bytes_cap = compile.at("first_bucket_cap");
  options.rules = parallel::CountingRules::pytorch();
  SCOPED_TRACE("cap " + std::to_string(options.bucket_bytes_cap) + ", first " +
               std::to_string(options.first_bucket_bytes_cap));
  const auto split = parallel::split_by_buckets(module, options);
  EXPECT_TRUE(same("buckets", recorded_buckets(compile), our_buckets(split.buckets)));
  const std::size_t graphs = compile.at("num_split_graphs");
  if (graphs < 2) {
    EXPECT_FALSE(split.was_split());
    EXPECT_EQ(split.module, module);
    return;
  }
  const auto ours = our_pieces(*split.module);
  EXPECT_EQ(ours.size(), graphs);
  const auto recorded = recorded_pieces(compile);
  const auto specialised = specialised_symbols(recorded, ours);
  EXPECT_TRUE(same("pieces", lines_of(recorded, specialised), lines_of(ours, specialised)));
}

// In runs with the path "same_dynamo_graph", PyTorch split the graph of an earlier run again, and the earlier split may
// have fixed a symbolic size. The record of the pieces' inputs then shows the number. Returns the nodes with these
// numbers.
json with_fixed_sizes(json nodes, const json& compile) {
  std::map<std::string, json> sizes;
  for (const auto& piece : compile.at("split_submods")) {
    for (const auto& input : piece.at("inputs")) {
      if (input.is_object() && input.at("val").contains("shape")) sizes[input.at("name")] = input.at("val");
    }
  }
  for (auto& node : nodes) {
    const auto found = sizes.find(node.at("name"));
    if (found == sizes.end()) continue;
    for (const char* field : {"shape", "stride"}) node.at("val").at(field) = found->second.at(field);
  }
  return nodes;
}

std::shared_ptr<graph::GraphModule> recorded_module(const json& nodes) {
  auto module = std::make_shared<graph::GraphModule>();
  graph::add_recorded_nodes(*module, nodes);
  return module;
}

// Returns the number of compared compilations.
int compare_case(const std::string& name) {
  const json record = RecordedSplits::load().parse(name);
  const auto& graphs = record.at("graphs");
  std::vector<std::shared_ptr<graph::GraphModule>> modules;
  for (const auto& nodes : graphs) modules.push_back(recorded_module(nodes));
  int compared = 0;
  for (const auto& run : record.at("runs")) {
    const auto& compiles = run.at("compiles");
    const bool again = run.value("path", "") == "same_dynamo_graph";
    EXPECT_EQ(compiles.size(), modules.size());
    for (std::size_t i = 0; i < std::min(compiles.size(), modules.size()); ++i) {
      SCOPED_TRACE("graph " + std::to_string(i));
      const auto module = again ? recorded_module(with_fixed_sizes(graphs[i], compiles[i])) : modules[i];
      compare(module, compiles[i]);
      ++compared;
    }
  }
  return compared;
}

Lines case_names() {
  Lines names;
  for (const auto& [name, text] : RecordedSplits::load().cases()) names.push_back(name);
  return names;
}

class Splits : public testing::TestWithParam<std::string> {};

TEST_P(Splits, EqualPyTorchs) { EXPECT_GT(compare_case(GetParam()), 0); }

// Runs before any test. If the folder cannot be read, the test that reads all of it reports that.
Lines case_names_if_readable() {
  try {
    return case_names();
  } catch (const std::exception&) {
    return {};
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Splits);
INSTANTIATE_TEST_SUITE_P(Recorded, Splits, testing::ValuesIn(case_names_if_readable()), [](const auto& info) {
  std::string name = info.param;
  std::replace_if(name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
});

// This test also covers a folder that appeared after the list of the tests above was made.
TEST(SplitsFolder, EveryCase_EqualsPyTorchs) {
  int compared = 0;
  for (const auto& name : case_names()) {
    SCOPED_TRACE(name);
    compared += compare_case(name);
  }
  EXPECT_GT(compared, 0);
  RecordProperty("compiles_compared", compared);
  std::cout << case_names().size() << " cases, " << compared << " graphs at a cap compared\n";
}

// By PyTorch's rules, a bucket that only fetches attributes has no piece. By DDP's rules, which count each parameter
// once, every bucket has a piece.
TEST(SplitsFolder, EveryCase_HasAPieceForEachBucketByDdpsRules) {
  int split_graphs = 0;
  for (const auto& name : case_names()) {
    SCOPED_TRACE(name);
    const json record = RecordedSplits::load().parse(name);
    for (const auto& nodes : record.at("graphs")) {
      const auto module = recorded_module(nodes);
      for (const std::int64_t cap : {0, 1, 4096}) {
        const auto split = parallel::split_by_buckets(module, {cap, cap, parallel::CountingRules::ddp()});
        if (!split.was_split()) continue;
        EXPECT_EQ(our_pieces(*split.module).size(), split.buckets.size()) << cap;
        ++split_graphs;
      }
    }
  }
  EXPECT_GT(split_graphs, 0);
}

}  // namespace
