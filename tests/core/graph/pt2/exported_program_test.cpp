// SPDX-License-Identifier: BSD-3-Clause
// When the interpreter runs archives of torch.export, the results are those that PyTorch recorded, up to rounding. For
// archives that LibTorch's own runner can run, the results equal those of that runner bit for bit.
#include <rehearse/graph/exported_program.h>

#include <cmath>
#include <fstream>

#include <ATen/ATen.h>
#include <caffe2/serialize/inline_container.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/api/include/torch/nativert/ModelRunnerHandle.h>

#include <rehearse/graph/split.h>
#include <rehearse/graph/text.h>
#include <rehearse_internal/libtorch/version.h>

#include "bit_equal.h"
#include "core/graph/module_path.h"
#include "core/graph/recorded_graph.h"
#include "graph/pt2/schema_values.h"
#include "kit/graph/program_runner.h"

namespace rehearse::graph {
namespace {

using nlohmann::json;
using rehearse::test::BitEqual;
using testing::HasSubstr;

std::string data_file(const std::string& name) { return std::string(REHEARSE_TEST_DATA) + "/" + name; }

const json& expected_runs() {
  static const json runs = json::parse(std::ifstream(data_file("pt2/expected.json")));
  return runs;
}

c10::IValue decode(const json& value) {
  if (value.is_null()) return {};
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number()) return value.get<double>();
  static const std::map<std::string, c10::ScalarType> dtypes = {{"float32", at::kFloat},
                                                                {"float64", at::kDouble},
                                                                {"bfloat16", at::kBFloat16},
                                                                {"int64", at::kLong},
                                                                {"int32", at::kInt}};
  std::vector<double> numbers;
  for (const json& number : value.at("data")) numbers.push_back(number.is_string() ? INFINITY : number.get<double>());
  const auto shape = value.at("shape").get<std::vector<std::int64_t>>();
  return at::tensor(numbers, at::kDouble).reshape(shape).to(dtypes.at(value.at("dtype")));
}

std::vector<c10::IValue> decode_all(const json& values) {
  std::vector<c10::IValue> decoded;
  for (const json& value : values) decoded.push_back(decode(value));
  return decoded;
}

void expect_same(const c10::IValue& found, const c10::IValue& wanted, bool bits) {
  ASSERT_EQ(found.isTensor(), wanted.isTensor());
  if (!wanted.isTensor()) {
    EXPECT_EQ(found, wanted);
    return;
  }
  if (bits) {
    EXPECT_THAT(found.toTensor(), BitEqual(wanted.toTensor()));
    return;
  }
  const at::Tensor& tensor = found.toTensor();
  ASSERT_EQ(tensor.scalar_type(), wanted.toTensor().scalar_type());
  ASSERT_EQ(tensor.sizes(), wanted.toTensor().sizes());
  EXPECT_TRUE(at::allclose(tensor, wanted.toTensor(), 1e-5, 1e-6)) << tensor << "\nwanted\n" << wanted.toTensor();
}

class RecordedProgram : public testing::TestWithParam<std::string> {};

TEST_P(RecordedProgram, RunsAsInPyTorch) {
  const ProgramRunner runner(load_pt2(data_file("pt2/" + GetParam() + ".pt2")));
  for (const json& run : expected_runs().at(GetParam())) {
    const std::vector<c10::IValue> inputs = decode_all(run.at("inputs"));
    const std::vector<c10::IValue> outputs = runner.run(inputs);
    ASSERT_EQ(outputs.size(), run.at("outputs").size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      SCOPED_TRACE("output " + std::to_string(i));
      expect_same(outputs[i], decode(run.at("outputs")[i]), false);
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      SCOPED_TRACE("input " + std::to_string(i) + " after the run");
      expect_same(inputs[i], decode(run.at("inputs_after")[i]), true);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(ExportedProgram, RecordedProgram,
                         testing::Values("dynamic", "lists", "constants", "constants_functional", "mutation",
                                         "mutation_functional", "cond", "while_loop", "modes", "unbacked", "scalars"),
                         [](const auto& info) { return info.param; });

// nativert is LibTorch's own runner. `Runner` is a parameter so that nothing refers to it if LibTorch does not export
// it.
template <bool is_exported, class Runner>
void expect_nativerts_bits(const std::string& path, const std::vector<c10::IValue>& inputs,
                           const std::vector<c10::IValue>& outputs) {
  if constexpr (is_exported) {
    Runner nativert(path, "model");
    const std::vector<c10::IValue> wanted = nativert.runWithFlatInputsAndOutputs(inputs);
    ASSERT_EQ(outputs.size(), wanted.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) expect_same(outputs[i], wanted[i], true);
  }
}

void expect_nativerts_bits(const std::string& path, const std::vector<c10::IValue>& inputs,
                           const std::vector<c10::IValue>& outputs) {
  expect_nativerts_bits<libtorch::kExportsNativert, torch::nativert::ModelRunnerHandle>(path, inputs, outputs);
}

// Of the small archives, nativert runs only "dynamic", "lists" and "cond". The others have, for example, autocast or
// gradient regions, or change their inputs. nativert does not support this.
TEST(ExportedProgram, GivesNativertsBits) {
  if (!libtorch::kExportsNativert) GTEST_SKIP() << "this LibTorch does not export nativert";
  for (const std::string name : {"dynamic", "lists", "cond"}) {
    SCOPED_TRACE(name);
    const std::string path = data_file("pt2/" + name + ".pt2");
    const ProgramRunner runner(load_pt2(path));
    for (const json& run : expected_runs().at(name)) {
      const std::vector<c10::IValue> outputs = runner.run(decode_all(run.at("inputs")));
      expect_nativerts_bits(path, decode_all(run.at("inputs")), outputs);
    }
  }
}

TEST(ExportedProgram, BertTinyRunsToPyTorchsOutputAndNativertsBits) {
  const std::string path = data_file("truth/bert_tiny.pt2");
  const json expected = json::parse(std::ifstream(data_file("truth/bert_tiny_expected.json")));
  const at::Tensor ids = (at::arange(64, at::kLong) * 7 % 1000).reshape({2, 32});
  const ProgramRunner runner(load_pt2(path));
  const std::vector<c10::IValue> outputs = runner.run({ids});
  expect_nativerts_bits(path, {ids}, outputs);
  ASSERT_EQ(outputs.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(outputs[i].toTensor().sizes().vec(), expected.at("output_shapes")[i].get<std::vector<std::int64_t>>());
    const double sum = outputs[i].toTensor().to(at::kDouble).abs().sum().item<double>();
    EXPECT_NEAR(sum, expected.at("output_abssum")[i].get<double>(), 1e-5 * sum);
  }
}

TEST(ExportedProgram, GraphAlone_HasEverythingButTheData) {
  const ExportedProgram whole = load_pt2(data_file("truth/bert_tiny.pt2"));
  const ExportedProgram graph = load_pt2_graph(data_file("truth/bert_tiny.pt2"));
  EXPECT_EQ(to_text(*graph.module), to_text(*whole.module));
  EXPECT_EQ(graph.inputs.size(), whole.inputs.size());
  EXPECT_EQ(graph.torch_version, whole.torch_version);
  for (const auto& [name, attribute] : graph.module->attributes()) EXPECT_FALSE(attribute.tensor.defined()) << name;
  EXPECT_THROW(load_pt2_graph(data_file("truth/README.md")), ImportError);
  EXPECT_THROW(load_pt2_graph(data_file("truth/bert_tiny.pt2"), "other"), ImportError);
}

TEST(ExportedProgram, SplitProgramsGiveTheSameBits) {
  const ExportedProgram whole = load_pt2(data_file("truth/bert_tiny.pt2"));
  int seen = 0;
  const SplitModule split = split_by(*whole.module, [&](const Node&) { return seen++ / 17; });
  EXPECT_EQ(split.partitions.size(), 5u);
  ExportedProgram parts = whole;
  parts.module = split.module;
  for (const auto& [name, attribute] : whole.module->attributes()) parts.module->set_attribute(name, attribute);
  const at::Tensor ids = at::arange(64, at::kLong).reshape({2, 32});
  const auto outputs = ProgramRunner(parts).run({ids});
  const auto wanted = ProgramRunner(whole).run({ids});
  ASSERT_EQ(outputs.size(), wanted.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) expect_same(outputs[i], wanted[i], true);
}

TEST(ExportedProgram, BertBaseLoadsAsAGraphAndSplits) {
  const json document = read_json_gz(data_file("truth/bert_base_mlm_model.json.gz"));
  const ExportedProgram program = parse_exported_program(document.dump());
  const json& graph = document.at("graph_module").at("graph");
  const std::size_t inputs = graph.at("inputs").size();
  EXPECT_EQ(program.module->graph().size(), inputs + graph.at("nodes").size() + 1);
  EXPECT_EQ(program.module->graph().placeholders().size(), inputs);
  int seen = 0;
  const SplitModule split = split_by(*program.module, [&](const Node&) { return seen++ / 30; });
  EXPECT_EQ(split.partitions.size(), (graph.at("nodes").size() + 29) / 30);
  const Node* embedding = program.module->graph().find("embedding");
  ASSERT_NE(embedding, nullptr);
  EXPECT_EQ(embedding->target(), "torch.ops.aten.embedding.default");
  EXPECT_THAT(embedding->meta().origin->source_line(), HasSubstr("sparse.py:"));
  EXPECT_THAT(module_path(*embedding->meta().origin), HasSubstr("embeddings.word_embeddings"));
}

TEST(ExportedProgram, SymbolsAndRangesAreRead) {
  const ExportedProgram program = load_pt2(data_file("pt2/dynamic.pt2"));
  const Graph& graph = program.module->graph();
  const auto expression = [&](const char* name) { return graph.find(name)->meta().value->scalar()->expression.text(); };
  const std::string rows = expression("sym_size_int_2");
  EXPECT_EQ(to_string(graph.find("x")->meta().tensor()->sizes[0]), rows);
  EXPECT_EQ(expression("mul"), "2*" + rows);
  EXPECT_EQ(expression("floordiv"), "(" + rows + "//2)");
  EXPECT_EQ(program.ranges.at(rows).min, 2);
  EXPECT_EQ(program.ranges.at(rows).max, 64);
  EXPECT_EQ(program.torch_version.substr(0, 4), "2.11");
  const ExportedProgram unbacked = load_pt2(data_file("pt2/unbacked.pt2"));
  EXPECT_THAT(unbacked.module->graph().find("nonzero")->meta().unbacked_bindings, testing::ElementsAre("u0"));
  EXPECT_THAT(unbacked.module->graph().find("item")->meta().unbacked_bindings, testing::ElementsAre("u1"));
}

TEST(ExportedProgram, UnbackedFloatsAreBoundWhereTheyAppearFirst) {
  caffe2::serialize::PyTorchStreamReader reader(data_file("pt2/unbacked.pt2"));
  const auto [data, size] = reader.getRecord("models/model.json");
  std::string text(static_cast<const char*>(data.get()), size);
  for (std::size_t at = text.find("'u1'"); at != std::string::npos; at = text.find("'u1'", at))
    text.replace(at, 4, "'zuf1'");
  const ExportedProgram program = parse_exported_program(text);
  EXPECT_THAT(program.module->graph().find("item")->meta().unbacked_bindings, testing::ElementsAre("zuf1"));
}

TEST(ExportedProgram, FloatsAreReadWithAllTheirDigits) {
  const auto text_of = [](double value) {
    const json recorded = {{"as_float", value}};
    return read_sym_scalar(Field(recorded, "value"), SymScalarMeta::Kind::Float).expression.text();
  };
  EXPECT_EQ(text_of(0.1), "0.1");
  EXPECT_EQ(text_of(2.0), "2.0");
  EXPECT_EQ(text_of(1e-7), "1e-07");
  EXPECT_EQ(text_of(0.1234567890123), "0.1234567890123");
}

std::string error_of(const ProgramRunner& runner, const std::vector<c10::IValue>& inputs) {
  try {
    runner.run(inputs);
  } catch (const GraphError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ExportedProgram, InputsThatDoNotFitAreNamed) {
  const ProgramRunner dynamic(load_pt2(data_file("pt2/dynamic.pt2")));
  const at::Tensor x = at::ones({5, 4});
  EXPECT_EQ(error_of(dynamic, {x}), "inputs: there must be 2, and there are 1");
  EXPECT_EQ(error_of(dynamic, {x, 3}), "node 'y', input: must be a tensor, and is Int");
  EXPECT_EQ(error_of(dynamic, {x, x.to(at::kDouble)}), "node 'y', input: must be Float, and is Double");
  EXPECT_THAT(error_of(dynamic, {x, at::ones({5, 3})}), HasSubstr("4], and has [5, 3]"));
  EXPECT_THAT(error_of(dynamic, {x, at::ones({4})}), HasSubstr("4], and has [4]"));
  EXPECT_THAT(error_of(dynamic, {at::ones({65, 4}), x}), HasSubstr("node 'x', input: size 0 is 65; s"));
  EXPECT_THAT(error_of(dynamic, {at::ones({65, 4}), x}), HasSubstr("must be in [2, 64]"));
  const ProgramRunner scalars(load_pt2(data_file("pt2/scalars.pt2")));
  EXPECT_THAT(error_of(scalars, {at::ones({2, 3, 2, 2}), 4}), HasSubstr("node 'k', input: is a constant"));
}

TEST(ExportedProgram, NumbersOfAnotherKindThanExportedAreRefused) {
  const at::Tensor tensor = at::ones({});
  for (const auto& [kind, fitting, text] :
       {std::tuple<std::string, c10::IValue, std::string>("sym_int", 3, "an int, and is Double"),
        {"sym_float", 0.5, "a float, and is Int"},
        {"sym_bool", true, "a bool, and is Double"}}) {
    ExportedProgram program;
    program.module = parse_graph_module("graph_module \"G\" {%x = placeholder \"x\" [] ; {\"value\": {\"" + kind +
                                        "\": sym(\"s0\")}} %output = output \"output\" [[%x]]}");
    program.inputs.push_back({InputSpec::Kind::UserInput, "x", "", true, {}});
    program.outputs.push_back({OutputSpec::Kind::UserOutput, ""});
    const ProgramRunner runner(program);
    EXPECT_EQ(runner.run({fitting})[0], fitting);
    const c10::IValue other = kind == "sym_float" ? c10::IValue(3) : c10::IValue(0.5);
    EXPECT_EQ(error_of(runner, {other}), "node 'x', input: must be " + text);
    EXPECT_THAT(error_of(runner, {tensor}), HasSubstr(", and is Tensor"));
  }
}

std::string import_error(const json& document) {
  try {
    parse_exported_program(document.dump());
  } catch (const ImportError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ExportedProgram, WhatIsNotKnownIsNamedWithNodeAndField) {
  const json good = read_json_gz(data_file("truth/bert_base_mlm_model.json.gz"));
  const auto changed = [&](const char* pointer, const json& value) {
    json document = good;
    document[json::json_pointer(pointer)] = value;
    return import_error(document);
  };
  EXPECT_EQ(import_error(good), "no error");
  EXPECT_EQ(changed("/schema_version/major", 9),
            "model.schema_version.major: is 9; schema 8 is read here, as PyTorch 2.11 writes it");
  EXPECT_EQ(
      changed("/graph_module/graph/nodes/3/inputs/0/arg", {{"as_new", 1}}),
      "node '" + good["graph_module"]["graph"]["nodes"][3]["name"].get<std::string>() +
          "', model.graph_module.graph.nodes[3].inputs[0].arg: 'as_new' is no kind of argument that is known here");
  EXPECT_THAT(changed("/graph_module/graph/nodes/3/inputs/0/arg/as_tensor/name", "nobody"),
              HasSubstr("nodes[3].inputs[0].arg.as_tensor.name: there is no value 'nobody' before this"));
  EXPECT_THAT(changed("/graph_module/graph/nodes/3/inputs", 7), HasSubstr("nodes[3].inputs: must be a list, and is 7"));
  EXPECT_THAT(changed("/graph_module/signature/input_specs/0", {{"token", {}}}),
              HasSubstr("input_specs[0]: 'token' is no kind of input that is known here"));
  EXPECT_THAT(changed("/graph_module/graph/inputs", json::array()), HasSubstr("has 0 inputs; the signature has"));
  EXPECT_THROW(parse_exported_program("{"), ImportError);
  EXPECT_THROW(parse_exported_program("[]"), ImportError);
}

TEST(ExportedProgram, ArchivesThatCannotBeReadAreNamed) {
  const auto error_of_file = [](const std::string& path, const std::string& model) -> std::string {
    try {
      load_pt2(path, model);
    } catch (const ImportError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(error_of_file(data_file("nothing.pt2"), ""), HasSubstr("nothing.pt2: cannot be read as an archive"));
  EXPECT_THAT(error_of_file(data_file("pt2/expected.json"), ""), HasSubstr("cannot be read as an archive"));
  EXPECT_THAT(error_of_file(data_file("pt2/cond.pt2"), "other"), HasSubstr("has no record 'models/other.json'"));
}

}  // namespace
}  // namespace rehearse::graph
