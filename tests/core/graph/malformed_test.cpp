// SPDX-License-Identifier: BSD-3-Clause
// For any contents of a text, a JSON document or an archive, the reader and the walks over the module either succeed or
// throw GraphError (imports throw ImportError). Mutations come from a fixed random seed.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include <caffe2/serialize/inline_container.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <rehearse/graph/exported_program.h>
#include <rehearse/graph/split.h>
#include <rehearse/graph/text.h>
#include <rehearse_internal/graph/dead_code.h>
#include <rehearse_internal/graph/structural_hash.h>

#include "core/graph/check/verify.h"
#include "kit/graph/program_runner.h"

// LibTorch's reader leaks the archive's directory if its constructor throws.
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
using LeaksOfReader = __lsan::ScopedDisabler;
#else
struct LeaksOfReader {};
#endif

namespace rehearse::graph {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string archive_path(const std::string& name) { return std::string(REHEARSE_TEST_DATA) + "/pt2/" + name + ".pt2"; }

std::string record_of(const std::string& archive, const std::string& record) {
  caffe2::serialize::PyTorchStreamReader reader(archive_path(archive));
  const auto [data, size] = reader.getRecord(record);
  return {static_cast<const char*>(data.get()), size};
}

std::string model_of(const std::string& archive) { return record_of(archive, "models/model.json"); }

// Draws the same numbers on every machine, unlike the standard library's distributions.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(engine_() % count); }
  template <class Items>
  auto& of(Items& items) {
    return items[below(std::size(items))];
  }

 private:
  std::mt19937_64 engine_;
};

// Returns whether `action` succeeded. Any exception but an Error fails the test.
template <class Error, class Action>
bool ends_well(const std::string& input, Action&& action) {
  try {
    action();
    return true;
  } catch (const Error&) {
  } catch (const std::exception& error) {
    ADD_FAILURE() << typeid(error).name() << ": " << error.what() << "\nof\n" << input;
  }
  return false;
}

// Calls the functions of core/graph that walk over a module.
void walk(const std::shared_ptr<GraphModule>& module, const std::string& input) {
  ends_well<GraphError>(input, [&] { verify(*module); });
  ends_well<GraphError>(input, [&] {
    const std::string text = to_text(*module);
    const auto again = parse_graph_module(text);
    EXPECT_EQ(to_text(*again), text);
    EXPECT_EQ(structural_hash(*again), structural_hash(*module));
  });
  ends_well<GraphError>(input, [&] { Interpreter interpreter(module); });
  ends_well<GraphError>(input, [&] {
    int seen = 0;
    split_by(*module, [&](const Node&) { return seen++ / 4; });
  });
  ends_well<GraphError>(input, [&] { eliminate_dead_code(*copy_graph_module(*module)); });
}

const char* const kArchives[] = {"dynamic", "lists", "cond", "while_loop", "modes", "unbacked", "scalars", "constants"};

std::string mutated(std::string text, Random& random) {
  static const char* const pieces[] = {"-1",
                                       "99999999999999999999",
                                       "1e999",
                                       "nan",
                                       "[",
                                       "]",
                                       "{",
                                       "}",
                                       "\"",
                                       "\\u00",
                                       "%x",
                                       "none",
                                       "sym(\"u0\")",
                                       "submodule \"a\" shared 0\n",
                                       "slice(",
                                       "dtype(Undefined)",
                                       "...",
                                       "device(\"cuda:200\")",
                                       ",",
                                       ";",
                                       "\n",
                                       "true",
                                       "attribute \"w\" {}",
                                       "%output",
                                       "\x80"};
  for (std::size_t count = 1 + random.below(3); count > 0; --count) {
    const std::size_t at = random.below(text.size());
    const std::size_t length = 1 + random.below(12);
    switch (random.below(5)) {
      case 0:
        text[at] = static_cast<char>(random.below(256));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, random.of(pieces));
        break;
      case 3:
        text.insert(random.below(text.size()), text.substr(at, 5 * length));
        break;
      default:
        text.replace(at, length, random.of(pieces));
    }
    if (text.empty()) text = " ";
  }
  return text;
}

TEST(Malformed, TextsGiveGraphErrors) {
  Random random(1);
  std::vector<std::string> texts;
  for (const char* name : kArchives) texts.push_back(to_text(*parse_exported_program(model_of(name)).module));
  int whole = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string text = mutated(random.of(texts), random);
    std::shared_ptr<GraphModule> module;
    if (!ends_well<GraphError>(text, [&] { module = parse_graph_module(text); })) continue;
    ++whole;
    walk(module, text);
  }
  EXPECT_EQ(whole, 173);
}

void collect(json& value, std::vector<json*>& places) {
  places.push_back(&value);
  if (!value.is_structured()) return;
  for (json& item : value) collect(item, places);
}

// Replaces, removes or repeats one or two values of a document.
void mutate(json& document, Random& random) {
  const json replacements[] = {nullptr,
                               -1,
                               0,
                               1,
                               9223372036854775807,
                               std::int64_t{-9223372036854775807} - 1,
                               18446744073709551615ULL,
                               1e308,
                               0.5,
                               "",
                               "x",
                               "u0",
                               "Symbol('s0'",
                               json::array(),
                               json::object(),
                               true,
                               json::array({1})};
  for (std::size_t count = 1 + random.below(2); count > 0; --count) {
    std::vector<json*> places;
    collect(document, places);
    json& place = *random.of(places);
    const std::size_t choice = random.below(4);
    if (choice == 0 && place.is_object() && !place.empty()) {
      place.erase(std::next(place.begin(), static_cast<std::ptrdiff_t>(random.below(place.size()))));
    } else if (choice == 0 && place.is_array() && !place.empty()) {
      place.push_back(json(place[random.below(place.size())]));
    } else if (choice == 1) {
      place = json(*random.of(places));
    } else {
      place = random.of(replacements);
    }
  }
}

TEST(Malformed, DocumentsGiveImportErrors) {
  Random random(2);
  std::vector<json> documents;
  for (const char* name : kArchives) documents.push_back(json::parse(model_of(name)));
  int whole = 0;
  for (int i = 0; i < 1000; ++i) {
    json document = random.of(documents);
    mutate(document, random);
    const std::string text = document.dump();
    ExportedProgram program;
    if (!ends_well<ImportError>(text, [&] { program = parse_exported_program(text); })) continue;
    ++whole;
    walk(program.module, text);
    ends_well<GraphError>(text, [&] { ProgramRunner runner(program); });
  }
  EXPECT_EQ(whole, 126);
}

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name) : path_(testing::TempDir() + name) {}
  ~TemporaryFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Writes the archive again, with this content for its record `changed`.
void write_archive(const std::string& path, const std::string& archive, const std::string& changed,
                   const std::string& content) {
  caffe2::serialize::PyTorchStreamReader reader(archive_path(archive));
  caffe2::serialize::PyTorchStreamWriter writer(path);
  for (const std::string& record : reader.getAllRecords()) {
    if (record == "version" || record.starts_with(".data/")) continue;  // the writer adds these records itself
    const auto [data, size] = reader.getRecord(record);
    const void* bytes = record == changed ? content.data() : data.get();
    writer.writeRecord(record, bytes, record == changed ? content.size() : size);
  }
  writer.writeEndOfFile();
}

constexpr const char* kWeights = "data/weights/model_weights_config.json";

TEST(Malformed, TablesOfTensorsGiveImportErrors) {
  Random random(3);
  const json table = json::parse(record_of("dynamic", kWeights));
  const TemporaryFile file("rehearse_malformed_table.pt2");
  for (int i = 0; i < 150; ++i) {
    json changed = table;
    mutate(changed, random);
    write_archive(file.path(), "dynamic", kWeights, changed.dump());
    ends_well<ImportError>(changed.dump(), [&] { load_pt2(file.path()); });
  }
}

TEST(Malformed, FilesThatAreDamagedGiveImportErrors) {
  Random random(4);
  std::ifstream in(archive_path("dynamic"), std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  const TemporaryFile file("rehearse_malformed_file.pt2");
  for (int i = 0; i < 150; ++i) {
    std::string bytes = whole;
    for (std::size_t count = 1 + random.below(8); count > 0; --count) {
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    }
    if (i % 5 == 0) bytes.resize(random.below(bytes.size()));
    std::ofstream(file.path(), std::ios::binary | std::ios::trunc) << bytes;
    [[maybe_unused]] const LeaksOfReader forgiven;
    ends_well<ImportError>("damaged file " + std::to_string(i), [&] { load_pt2(file.path()); });
  }
}

std::string import_error(const std::string& archive, const std::function<void(json&)>& change) {
  json table = json::parse(record_of(archive, kWeights));
  change(table);
  const TemporaryFile file("rehearse_malformed_one.pt2");
  write_archive(file.path(), archive, kWeights, table.dump());
  try {
    load_pt2(file.path());
  } catch (const ImportError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Malformed, WhatIsWrongWithATensorIsNamed) {
  const auto with = [](const char* field, const json& value) {
    return import_error("dynamic", [&](json& table) { table["config"].begin()->at("tensor_meta")[field] = value; });
  };
  EXPECT_EQ(import_error("dynamic", [](json&) {}), "no error");
  EXPECT_THAT(with("storage_offset", {{"as_int", -4}}),
              HasSubstr("tensor_meta.storage_offset: must not be negative, and is -4"));
  EXPECT_THAT(with("storage_offset", {{"as_int", 1000000}}), HasSubstr("tensor_meta: reaches over"));
  EXPECT_THAT(with("storage_offset", {{"as_int", 9223372036854775807}}),
              HasSubstr("tensor_meta: reaches beyond 63 bits of bytes"));
  EXPECT_THAT(with("sizes", json::parse(R"([{"as_int": 1}, {"as_int": 1}])")),
              HasSubstr("tensor_meta: has not as many strides as sizes"));
  EXPECT_THAT(with("dtype", 5), HasSubstr("tensor_meta: has another dtype or other sizes than the program says"));
}

// The JSON library silently keeps one of the duplicate keys.
TEST(Malformed, KeysThatAreGivenTwiceAreRefusedWithTheirPath) {
  const auto error_of = [](const std::string& text) -> std::string {
    try {
      parse_exported_program(text);
    } catch (const ImportError& error) {
      return error.field() + " | " + error.what();
    }
    return "no error";
  };
  EXPECT_EQ(error_of(R"({"a": 1, "a": 1})"), "model.a | model.a: the key is given twice");
  EXPECT_EQ(error_of(R"({"a": {"x": 1}, "b": [0, [], {"x": [{}, {"y": 1, "z": {"y": 2}, "y": 3}]}]})"),
            "model.b[2].x[1].y | model.b[2].x[1].y: the key is given twice");
  EXPECT_THAT(error_of(R"({"a": [{"x": 1}, {"x": 1}], "x": {"a": 1}})"), HasSubstr("model: has no 'schema_version'"));
  std::string model = model_of("dynamic");
  const std::string key = "\"target\":";
  const std::size_t at = model.find(key);
  ASSERT_NE(at, std::string::npos);
  model.insert(at, key + " \"torch.ops.aten.neg.default\", ");
  EXPECT_THAT(error_of(model), HasSubstr("model.graph_module.graph.nodes[0].target: the key is given twice"));
}

// A quadratic reader would take minutes.
TEST(Malformed, LongDocumentsAreReadInLinearTime) {
  std::string text = "{\"v\": {\"0\": {}";
  for (int i = 1; i < 80000; ++i) text += ", \"" + std::to_string(i) + "\": {\"as_int\": 1}";
  EXPECT_THROW(parse_exported_program(text + ", \"7\": 1}}"), ImportError);
  try {
    parse_exported_program(text + "}}");
    FAIL() << "accepted";
  } catch (const ImportError& error) {
    EXPECT_STREQ(error.what(), "model: has no 'schema_version'");
  }
}

}  // namespace
}  // namespace rehearse::graph
