// SPDX-License-Identifier: BSD-3-Clause
#include "dump_maker.h"

#include <cstdlib>
#include <fstream>
#include <numeric>

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/serialization/pickler.h>

#include "dumps/dump.h"
#include "dumps/explain_dumps.h"

namespace rehearse::sim {
namespace {

Json group_json(const std::string& name, const std::string& description, const std::vector<int>& ranks) {
  return {{"name", name}, {"desc", description}, {"ranks", fmt::format("[{}]", fmt::join(ranks, ", "))}};
}

c10::IValue ivalue_of(const Json& value) {
  if (value.is_null()) return {};
  if (value.is_text()) return value.get<std::string>();
  if (value.is_object()) {
    c10::impl::GenericDict dict(c10::AnyType::get(), c10::AnyType::get());
    for (const auto& [key, item] : value.entries()) dict.insert(key, ivalue_of(item));
    return dict;
  }
  if (value.is_array()) {
    c10::impl::GenericList list(c10::AnyType::get());
    for (const auto& item : value.items()) list.push_back(ivalue_of(item));
    return list;
  }
  try {
    return value.get<bool>();
  } catch (const JsonError&) {
    return value.get<std::int64_t>();
  }
}

}  // namespace

DumpMaker::DumpMaker(int ranks, std::string version) {
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  for (int rank = 0; rank < ranks; ++rank) {
    dumps_.push_back({{"version", version}, {"pg_config", Json::object()}, {"entries", Json::array()}});
    dumps_.back()["pg_config"]["0"] = group_json("0", "default_pg", all);
  }
  descriptions_["0"] = "default_pg";
}

void DumpMaker::add_group(const std::string& name, std::vector<int> ranks) {
  add_group(name, ranks, "undefined", ranks);
}

void DumpMaker::add_group(const std::string& name, std::vector<int> ranks, const std::string& description,
                          const std::vector<int>& made_by) {
  descriptions_[name] = description;
  for (const int rank : made_by) dump(rank)["pg_config"][name] = group_json(name, description, ranks);
}

Json& DumpMaker::call(int rank, const std::string& name, std::vector<std::int64_t> sizes, bool completed,
                      const std::string& group) {
  const bool is_message = name.starts_with("send") || name.starts_with("recv");
  auto& [collective, message] = sequences_[{rank, group}];
  ++(is_message ? message : collective);
  auto& entries = dump(rank)["entries"];
  const auto record = entries.items().size();
  Json frames = Json::array();
  if (line_ > 0) {
    frames.push_back({{"name", "all_reduce"},
                      {"filename", "/x/site-packages/torch/distributed/distributed_c10d.py"},
                      {"line", 3068}});
    frames.push_back({{"name", "step"}, {"filename", "/job/train.py"}, {"line", line_}});
  }
  const Json tensors = Json::array({Json(sizes)});
  entries.push_back({{"frames", frames},
                     {"record_id", record},
                     {"pg_id", group == "0" ? 0 : 1},
                     {"process_group", Json::array({group, descriptions_.at(group)})},
                     {"collective_seq_id", collective},
                     {"p2p_seq_id", message},
                     {"op_id", collective + message},
                     {"profiling_name", "nccl:" + name},
                     {"time_created_ns", static_cast<std::int64_t>(record) * 1000 + rank},
                     {"input_sizes", tensors},
                     {"input_dtypes", Json::array({"Float"})},
                     {"output_sizes", tensors},
                     {"output_dtypes", Json::array({"Float"})},
                     {"state", completed ? "completed" : "scheduled"},
                     {"retired", completed},
                     {"timeout_ms", 600000},
                     {"is_p2p", is_message}});
  return entries.items().back();
}

Report DumpMaker::explained(std::vector<int> ranks) const {
  if (ranks.empty()) {
    ranks.resize(dumps_.size());
    std::iota(ranks.begin(), ranks.end(), 0);
  }
  const auto folder = dumps_folder();
  for (const int rank : ranks) write_dump(folder / fmt::format("dump_rank_{}", rank), pickled(dump(rank)));
  return explain_dumps({folder.string()});
}

std::string pickled(const Json& value) {
  std::string bytes;
  const auto write = [&bytes](const char* data, std::size_t size) { bytes.append(data, size); };
  torch::jit::Pickler pickler(write, nullptr, nullptr, nullptr, nullptr, /*tag_aggregates=*/false);
  pickler.protocol();
  pickler.pushIValue(ivalue_of(value));
  pickler.stop();
  return bytes;
}

std::filesystem::path dumps_folder() {
  const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
  const auto folder =
      std::filesystem::path(testing::TempDir()) / fmt::format("dumps-{}-{}", test->test_suite_name(), test->name());
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

void write_dump(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

std::string refusal(const std::vector<std::string>& paths) {
  try {
    explain_dumps(paths);
  } catch (const DumpError& error) {
    std::string text = error.what();
    const auto folder = std::filesystem::path(paths.front()).parent_path().string() + "/";
    for (auto at = text.find(folder); at != text.npos; at = text.find(folder)) text.erase(at, folder.size());
    return text;
  }
  return "";
}

}  // namespace rehearse::sim
