// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <rehearse/graph/exported_program.h>
#include <rehearse/graph/text.h>
#include <rehearse/parallel/bucket_splitter.h>

#include "cli/process.h"

// Contract: `split` prints the buckets and pieces that the splitter makes of a model of torch.export. If it cannot read
// a file, or if options contradict each other, it prints the error in one line. A line of usage may follow.
namespace rehearse::test {
namespace {

constexpr const char* kUsageSplit = "usage: job split MODEL [options]   (see job split --help)\n";

class Split : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"truth/bert_tiny.pt2", "pt2/dynamic.pt2", "pt2/unbacked.pt2", "pt2/mutation.pt2"}) {
      const std::filesystem::path file = std::filesystem::path(REHEARSE_ROOT "/tests/data") / name;
      std::filesystem::copy_file(file, folder_ / file.filename());
    }
  }

  std::string printed(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "split");
    const auto finished = run_process(CLI_JOB, arguments, folder_);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_EQ(finished.err, "");
    return finished.out;
  }

  void refuses(std::vector<std::string> arguments, const std::string& text) const {
    arguments.insert(arguments.begin(), "split");
    const auto finished = run_process(CLI_JOB, arguments, folder_);
    EXPECT_EQ(finished.exit_code, 64);
    EXPECT_EQ(finished.err, text);
    EXPECT_EQ(finished.out, "");
  }

  const std::filesystem::path folder_ = fresh_folder();
};

TEST_F(Split, BertTiny_ReadsWell) {
  EXPECT_EQ(printed({"bert_tiny.pt2", "--bucket-cap=0.1"}), read_file(CLI_GOLDEN "/split_bert_tiny.txt"));
}

TEST_F(Split, SymbolsTravelOnTheirOwn) {
  EXPECT_EQ(printed({"dynamic.pt2", "--bucket-cap=0"}), read_file(CLI_GOLDEN "/split_dynamic.txt"));
}

TEST_F(Split, AGraphThatIsNotCut_IsOnePieceWithAReason) {
  EXPECT_EQ(printed({"unbacked.pt2"}),
            "unbacked.pt2: a graph of 18 nodes, exported by torch 2.11.0+cu130\n"
            "symbols: u0 from 0 to 5, u1 from 0 to 10\n"
            "1 bucket at a cap of 25 MiB (1 MiB at the graph's end), counted by the rules \"default\"\n"
            "\n"
            "bucket  bytes  nodes  parameters\n"
            "     0      0     15  (none)\n"
            "warning: the graph was not split: it uses no parameters that DDP reduces\n"
            "\n"
            "pieces, in the order in which they are called; the last bucket is reduced first:\n"
            "\n"
            "forward: bucket 0, 15 nodes, 0 parameters, 0 bytes to reduce\n"
            "  in   x  float32[5] (input)\n"
            "       n  int64[] (input)\n"
            "  out  mul    int64[u0, 1]\n"
            "       mul_1  float32[u1]\n"
            "       add    int u0 + 1\n");
}

TEST_F(Split, Json_HasWhatTheSplitterSays) {
  const auto program = graph::load_pt2(folder_ / "bert_tiny.pt2");
  for (const std::string rules : {"default", "pytorch", "ddp"}) {
    const auto json = nlohmann::json::parse(
        printed({"bert_tiny.pt2", "--bucket-cap=0.1", "--first-bucket-cap=0.05", "--rules=" + rules, "--json"}));
    parallel::BucketSplitterOptions options{104'857, 52'428, {}};
    if (rules == "pytorch") options.rules = parallel::CountingRules::pytorch();
    if (rules == "ddp") options.rules = parallel::CountingRules::ddp();
    const auto split = parallel::split_by_buckets(program.module, options);
    EXPECT_EQ(json["bucket_bytes_cap"], 104'857);
    EXPECT_EQ(json["first_bucket_bytes_cap"], 52'428);
    EXPECT_EQ(json["rules"], rules);
    EXPECT_EQ(json["nodes"], 123);
    ASSERT_EQ(json["buckets"].size(), split.buckets.size());
    ASSERT_EQ(json["pieces"].size(), split.pieces.size());
    for (std::size_t i = 0; i < split.buckets.size(); ++i) {
      EXPECT_EQ(json["buckets"][i]["bytes"], split.buckets[i].bytes);
      EXPECT_EQ(json["buckets"][i]["parameters"].size(), split.buckets[i].parameters.size());
      EXPECT_EQ(json["buckets"][i]["nodes"].size(), split.buckets[i].nodes.size());
      EXPECT_EQ(json["pieces"][i]["name"], split.pieces[i].name);
      EXPECT_EQ(json["pieces"][i]["bucket"], split.pieces[i].id);
      EXPECT_EQ(json["pieces"][i]["inputs"].size(), split.pieces[i].inputs.size());
      EXPECT_EQ(json["pieces"][i]["outputs"].size(), split.pieces[i].outputs.size());
    }
  }
}

TEST_F(Split, Json_HasTypesAndSymbols) {
  const auto json = nlohmann::json::parse(printed({"dynamic.pt2", "--bucket-cap=0", "--json"}));
  EXPECT_EQ(json["symbols"], nlohmann::json::parse(R"({"s17": {"min": 2, "max": 32}, "s77": {"min": 2, "max": 64}})"));
  EXPECT_EQ(json["buckets"][1]["parameters"], nlohmann::json::parse(R"(["linear.weight", "linear.bias"])"));
  const auto& inputs = json["pieces"][0]["inputs"];
  EXPECT_EQ(inputs[0], nlohmann::json::parse(R"({"name": "x", "kind": "input", "type": "float32[s77, 4]",
                                                 "dtype": "float32", "sizes": ["s77", 4]})"));
  EXPECT_EQ(json["pieces"][1]["inputs"][1]["kind"], "symbol");
}

TEST_F(Split, ModelJson_GivesWhatTheArchiveGives) {
  const auto archive = run_process("/usr/bin/env",
                                   {"python3", "-c",
                                    "import zipfile; z = zipfile.ZipFile('bert_tiny.pt2'); "
                                    "print(z.read('bert_tiny/models/model.json').decode())"},
                                   folder_);
  ASSERT_EQ(archive.exit_code, 0) << archive.err;
  write_file(folder_ / "model.json", archive.out);
  auto text = printed({"model.json", "--bucket-cap=0.1"});
  EXPECT_EQ(text.replace(0, std::string_view("model.json").size(), "bert_tiny.pt2"),
            read_file(CLI_GOLDEN "/split_bert_tiny.txt"));
}

TEST_F(Split, APieceIsPrintedAsTextAndForGraphviz) {
  const auto program = graph::load_pt2(folder_ / "bert_tiny.pt2");
  const auto split = parallel::split_by_buckets(program.module, {104'857, 104'857, {}});
  const auto text = printed({"bert_tiny.pt2", "--bucket-cap=0.1", "--text=submod_1"});
  EXPECT_EQ(text, graph::to_text(*split.pieces.at(1).module));
  EXPECT_EQ(graph::to_text(*graph::parse_graph_module(text)), text);
  EXPECT_EQ(printed({"mutation.pt2", "--dot=forward"}),
            "digraph \"forward\" {\n"
            "  \"x\" [shape=ellipse, label=\"x\\nx\\nFloat[3]\"];\n"
            "  \"mul_\" [shape=box, label=\"mul_\\ntorch.ops.aten.mul_.Tensor\\nFloat[3]\"];\n"
            "  \"add\" [shape=box, label=\"add\\ntorch.ops.aten.add.Tensor\\nFloat[3]\"];\n"
            "  \"output\" [shape=ellipse, label=\"output\\noutput\"];\n"
            "  \"x\" -> \"mul_\";\n"
            "  \"mul_\" -> \"add\";\n"
            "  \"add\" -> \"output\";\n"
            "}\n");
}

TEST_F(Split, OptionsThatAreWrong_AreRefused) {
  const std::string usage = kUsageSplit;
  refuses({}, "job split: which model?\n" + usage);
  for (const std::string cap : {"-1", "nan", "inf", "25MB", "1000001"}) {
    refuses({"a.pt2", "--bucket-cap=" + cap},
            "job split: --bucket-cap is \"" + cap + "\"; it takes a number from 0 to 1000000\n" + usage);
  }
  refuses({"a.pt2", "--bucket-cap=1", "--first-bucket-cap=1.5"},
          "job split: --first-bucket-cap (1.5) is larger than --bucket-cap (1)\n" + usage);
  refuses({"a.pt2", "--rules=ptorch"},
          "job split: --rules is \"ptorch\"; it takes one of default, pytorch, ddp\n" + usage);
  refuses({"a.pt2", "--json", "--dot=submod_0"},
          "job split: --text, --dot and --json each print something else: give one of them\n" + usage);
  refuses({"bert_tiny.pt2", "--bucket-cap=0.1", "--text=submd_1"},
          "job split: there is no piece \"submd_1\" (did you mean \"submod_1\"?); this model has submod_0, submod_1, "
          "submod_2, submod_3\n" +
              usage);
}

TEST_F(Split, FilesThatAreNoModels_AreRefused) {
  write_file(folder_ / "empty.pt2", "");
  write_file(folder_ / "train.toml", "program = \"train\"\n");
  write_file(folder_ / "model.json.gz", "\x1f\x8b\x08");
  write_file(folder_ / "report.json", "{\"rehearse_report\": 1}");
  write_file(folder_ / "broken.json", "{\"graph_module\": ");
  write_file(folder_ / "broken.pt2", read_file(folder_ / "bert_tiny.pt2").substr(0, 1000));
  const std::string neither = ": is neither an archive of torch.export (.pt2) nor the model.json of one\n";
  refuses({"nothing.pt2"}, "nothing.pt2: cannot be read: No such file or directory\n");
  refuses({"."}, ".: cannot be read: Is a directory\n");
  refuses({"empty.pt2"}, "empty.pt2" + neither);
  refuses({"train.toml"}, "train.toml" + neither);
  refuses({"model.json.gz"}, "model.json.gz: is compressed; gunzip it first\n");
  refuses({"report.json"}, "report.json: model: has no 'schema_version'\n");
  refuses({"bert_tiny.pt2", "--model=decoder"}, "bert_tiny.pt2: has no record 'models/decoder.json'\n");
  refuses({"report.json", "--model=decoder"}, "report.json: is one model; --model is for archives that have several\n");
  for (const std::string name : {"broken.json", "broken.pt2"}) {
    const auto finished = run_process(CLI_JOB, {"split", name}, folder_);
    EXPECT_EQ(finished.exit_code, 64);
    EXPECT_EQ(finished.err.substr(0, name.size() + 2), name + ": ");
    EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1) << finished.err;
  }
}

}  // namespace
}  // namespace rehearse::test
