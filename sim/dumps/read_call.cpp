// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "dumps/read_dump.h"

namespace rehearse::sim {
namespace {

constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kElementsMost = std::int64_t{1} << 56;
constexpr std::size_t kDimensionsMost = 64;
constexpr std::int64_t kGroupRankMost = (1 << 24) - 1;

constexpr std::string_view kCallsTake = "a back end and a call, as in nccl:all_reduce or nccl:send 0->1";

std::vector<std::int64_t> sizes_of(const Field& field) {
  std::vector<std::int64_t> sizes;
  std::int64_t elements = 1;
  field.each([&](const Field& size) {
    sizes.push_back(size.integer(0, kElementsMost));
    if (sizes.back() > 0 && elements > kElementsMost / sizes.back()) field.wrong("sizes of a tensor");
    elements *= std::max<std::int64_t>(sizes.back(), 1);
  });
  if (sizes.size() > kDimensionsMost) field.wrong(fmt::format("at most {} sizes", kDimensionsMost));
  return sizes;
}

// Finds a type by the name that c10 prints, such as "Float". "UNKNOWN_SCALAR" is the type of the placeholder for a
// missing tensor.
at::ScalarType dtype_of(const Field& field) {
  static const auto known = [] {
    std::map<std::string, at::ScalarType, std::less<>> names;
    for (int type = 0; type < static_cast<int>(at::ScalarType::NumOptions); ++type)
      names.emplace(c10::toString(static_cast<at::ScalarType>(type)), static_cast<at::ScalarType>(type));
    names.insert_or_assign("UNKNOWN_SCALAR", at::ScalarType::Undefined);
    return names;
  }();
  const auto found = known.find(field.text());
  if (found == known.end()) field.wrong("a dtype as c10 prints it, as in Float or BFloat16");
  return found->second;
}

std::vector<DumpedTensor> tensors_of(const Field& entry, std::string_view sizes, std::string_view dtypes) {
  std::vector<DumpedTensor> tensors;
  entry.at(sizes).each([&](const Field& each) { tensors.push_back({sizes_of(each)}); });
  if (!entry.has(dtypes)) return tensors;
  const auto field = entry.at(dtypes);
  const auto& names = field.items();
  if (names.size() != tensors.size())
    field.wrong(fmt::format("as many dtypes as {} has sizes, {}", sizes, tensors.size()));
  std::size_t next = 0;
  field.each([&](const Field& dtype) { tensors[next++].dtype = dtype_of(dtype); });
  return tensors;
}

// Parses "0->1" for a send, "1<-0" for a receive.
void read_edge(std::string_view edge, std::string_view arrow, int& first, int& second, const Field& field) {
  const auto middle = edge.find(arrow);
  if (middle == edge.npos) field.wrong(kCallsTake);
  const auto number = [&](std::string_view text) {
    int value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > kGroupRankMost)
      field.wrong(kCallsTake);
    return value;
  };
  first = number(edge.substr(0, middle));
  second = number(edge.substr(middle + arrow.size()));
}

void read_name(const Field& field, DumpedCall& call) {
  const auto whole = field.text();
  const auto colon = whole.find(':');
  if (colon == whole.npos || colon == 0 || colon + 1 == whole.size()) field.wrong(kCallsTake);
  call.backend = whole.substr(0, colon);
  call.name = whole.substr(colon + 1);
  const auto space = call.name.find(' ');
  const std::string edge = space == call.name.npos ? "" : call.name.substr(space + 1);
  call.name = call.name.substr(0, space);
  if (edge.empty()) return;
  if (call.name == "send") {
    read_edge(edge, "->", call.source, call.target, field);
  } else if (call.name == "recv") {
    read_edge(edge, "<-", call.target, call.source, field);
  }
}

// Gloo reports nothing about a call except that it is over: the state stays "scheduled", and the entry is retired.
bool completed_of(const Field& entry, std::string_view backend) {
  const auto field = entry.at("state");
  const auto state = field.text();
  if (state != "scheduled" && state != "started" && state != "completed")
    field.wrong("scheduled, started or completed");
  if (state == "completed") return true;
  return backend == "gloo" && entry.has("retired") && entry.at("retired").flag();
}

// If a C++ frame has no line, a recorder may write any number.
int line_of(const Field& field) {
  const auto line = field.integer(std::numeric_limits<std::int64_t>::min(), kMost);
  return static_cast<int>(std::clamp<std::int64_t>(line, 0, std::numeric_limits<int>::max()));
}

std::size_t stack_of(const Field& entry, Stacks& stacks) {
  if (!entry.has("frames")) return Stacks::kNone;
  Stacks::Frames frames;
  entry.at("frames").each([&](const Field& frame) {
    frames.push_back({frame.at("name").text(), frame.at("filename").text(), line_of(frame.at("line"))});
  });
  return stacks.add(std::move(frames));
}

}  // namespace

DumpedCall read_call(const Field& entry, Stacks& stacks) {
  DumpedCall call;
  call.record_id = entry.at("record_id").integer(0, kMost);
  if (entry.has("pg_id")) call.group_id = entry.at("pg_id").integer(0, kMost);
  const auto group = entry.at("process_group");
  const auto& names = group.items();
  if (names.size() != 2 || !names[0].is_text() || !names[1].is_text()) group.wrong("a group's name and description");
  call.group = names[0].get<std::string>();
  call.group_description = names[1].get<std::string>();
  call.collective_seq = static_cast<std::uint64_t>(entry.at("collective_seq_id").integer(0, kMost));
  call.p2p_seq = static_cast<std::uint64_t>(entry.at("p2p_seq_id").integer(0, kMost));
  read_name(entry.at("profiling_name"), call);
  call.inputs = tensors_of(entry, "input_sizes", "input_dtypes");
  call.outputs = tensors_of(entry, "output_sizes", "output_dtypes");
  call.completed = completed_of(entry, call.backend);
  call.time_created_ns = entry.at("time_created_ns").integer(std::numeric_limits<std::int64_t>::min(), kMost);
  if (entry.has("timeout_ms")) call.timeout_ms = entry.at("timeout_ms").integer(0, kMost);
  call.stack = stack_of(entry, stacks);
  return call;
}

}  // namespace rehearse::sim
