// SPDX-License-Identifier: BSD-3-Clause
#include "record/call_list.h"

#include <algorithm>
#include <ostream>

#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rehearse_internal/comm/operation.h>

#include "report/writers/json_reader.h"

namespace rehearse::sim {
std::string call_text(std::string fingerprint, const comm::Signature& kind, const comm::Event& event) {
  if (!comm::is_point_to_point(kind.type)) return fingerprint;
  const auto* const direction = kind.type == c10d::OpType::SEND ? "to" : "from";
  const auto peer = event.peer >= 0 ? fmt::format("rank {}", event.peer) : std::string("any rank");
  return fmt::format("{} {} {} with tag {}", fingerprint, direction, peer, event.tag);
}

namespace {

constexpr int kCallsVersion = 1;
constexpr std::string_view kCalls = "list of calls";

// Removes the device type, which stands between commas or brackets, from a fingerprint. Stops at the label, which comes
// last and may contain anything.
std::string without_device(std::string text) {
  const auto label = std::min(text.find(" label="), text.size());
  for (const std::string_view device : {", cpu", ", cuda"}) {
    for (auto at = text.find(device); at < label && at != std::string::npos; at = text.find(device, at)) {
      const auto after = at + device.size();
      const bool whole = after < text.size() && (text[after] == ',' || text[after] == ')');
      if (whole) {
        text.erase(at, device.size());
      } else {
        at = after;
      }
    }
  }
  return text;
}

void add_tensors(std::vector<std::string>& texts, std::string_view way,
                 const std::vector<std::vector<std::int64_t>>& sizes, const std::vector<at::ScalarType>& dtypes) {
  for (std::size_t i = 0; i < std::min(sizes.size(), dtypes.size()); ++i)
    texts.push_back(fmt::format("{} {}[{}]", way, c10::getDtypeNames(dtypes[i]).first, fmt::join(sizes[i], ", ")));
}

}  // namespace

std::vector<ListedCall> listed_calls(const comm::EventLog& events) {
  std::vector<ListedCall> calls;
  for (const auto& event : events.kept()) {
    const auto& kind = events.signature(event);
    ListedCall call{event.rank, events.group(event).name, event.seq_id, comm::is_point_to_point(kind.type),
                    call_text(without_device(kind.fingerprint), kind, event)};
    add_tensors(call.tensors, "in", kind.input_sizes, kind.input_dtypes);
    add_tensors(call.tensors, "out", kind.output_sizes, kind.output_dtypes);
    calls.push_back(std::move(call));
  }
  return calls;
}

void write_calls(std::ostream& out, const std::vector<ListedCall>& calls) {
  out << "{\"rehearse_calls\": " << kCallsVersion << ", \"calls\": [";
  const char* before = "\n";
  for (const auto& call : calls) {
    Json json{{"rank", call.rank},       {"process_group_name", call.group},
              {"seq_id", call.sequence}, {"is_p2p", call.point_to_point},
              {"call", call.call},       {"tensors", call.tensors}};
    out << before << json_text(std::move(json));
    before = ",\n";
  }
  out << "\n]}\n";
}

std::vector<ListedCall> calls_from_json(std::string_view text) {
  const Json json = parsed_json(text, kCalls);
  const JsonReader reader(json, kCalls);
  if (reader.get<int>("rehearse_calls") != kCallsVersion) {
    throw ReportFormatError(fmt::format("is a list of calls of format {}; this rehearse reads format {}",
                                        reader.get<int>("rehearse_calls"), kCallsVersion));
  }
  return reader.get_list("calls", [](const JsonReader& call) {
    return ListedCall{call.get<int>("rank"),
                      call.get<std::string>("process_group_name"),
                      call.get<std::uint64_t>("seq_id"),
                      call.get<bool>("is_p2p"),
                      call.get<std::string>("call"),
                      call.get<std::vector<std::string>>("tensors")};
  });
}

}  // namespace rehearse::sim
