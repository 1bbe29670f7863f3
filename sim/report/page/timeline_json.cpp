// SPDX-License-Identifier: BSD-3-Clause
#include "report/page/timeline_json.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>

namespace rehearse::sim {
namespace {

std::uint64_t zigzag(std::int64_t number) {
  return (static_cast<std::uint64_t>(number) << 1) ^ static_cast<std::uint64_t>(number >> 63);
}

}  // namespace

void ByteText::add(std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) bytes_.push_back(static_cast<char>(number | 0x80));
  bytes_.push_back(static_cast<char>(number));
}

void ByteText::add_signed(std::int64_t number) { add(zigzag(number)); }

void ByteText::add_time(std::int64_t time, std::int64_t base) {
  add(time == Timeline::kNever ? 0 : zigzag(time - base) + 1);
}

std::string ByteText::base64() const {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto byte = [&](std::size_t at) {
    return at < bytes_.size() ? static_cast<std::uint32_t>(static_cast<unsigned char>(bytes_[at])) : 0u;
  };
  std::string text;
  text.reserve((bytes_.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes_.size(); at += 3) {
    const std::uint32_t bits = byte(at) << 16 | byte(at + 1) << 8 | byte(at + 2);
    for (std::size_t digit = 0; digit < 4; ++digit) {
      const bool is_there = at + digit <= bytes_.size();
      text.push_back(is_there ? kDigits[bits >> (18 - 6 * digit) & 63] : '=');
    }
  }
  return text;
}

namespace {

using Call = Timeline::Call;
using Kind = Timeline::Kind;

class CallWriter {
 public:
  explicit CallWriter(const Timeline& timeline) : timeline_(timeline) {}

  std::string write() {
    for (const auto& calls : timeline_.calls) {
      bytes_.add(calls.size());
      numbers_.clear();
      before_ = 0;
      for (const auto& call : calls) add(call);
    }
    return bytes_.base64();
  }

 private:
  struct Interval {
    std::int64_t started, ended;
  };

  void add(const Call& call) {
    const Kind& kind = timeline_.kinds[call.kind];
    const bool message = kind.type != Timeline::CallType::collective;
    auto& last = numbers_[{kind.group, message}];
    const auto step = static_cast<std::int64_t>(call.number) - last - 1;
    last = call.number;
    bytes_.add(std::uint64_t{call.kind} * 2 + (step == 0 ? 0 : 1));
    if (step != 0) bytes_.add_signed(step);
    bytes_.add_signed(call.created - before_);
    before_ = call.ended == Timeline::kNever ? call.created : call.ended;
    const auto interval = message ? own_interval(call) : interval_of(kind, call);
    bytes_.add_time(call.started, interval.started);
    bytes_.add_time(call.ended, interval.ended);
  }

  static Interval own_interval(const Call& call) {
    return {call.created, call.started == Timeline::kNever ? call.created : call.started};
  }

  // The times of the collective, taken from the first rank whose call started and ended.
  Interval interval_of(const Kind& kind, const Call& call) {
    const auto key = std::uint64_t{kind.group} << 32 | call.number;
    if (const auto known = intervals_.find(key); known != intervals_.end()) return known->second;
    if (call.started != Timeline::kNever && call.ended != Timeline::kNever)
      intervals_.emplace(key, Interval{call.started, call.ended});
    return own_interval(call);
  }

  const Timeline& timeline_;
  ByteText bytes_;
  std::map<std::pair<std::uint32_t, bool>, std::int64_t> numbers_;  // the rank's last number, by group and `message`
  std::int64_t before_ = 0;
  std::unordered_map<std::uint64_t, Interval> intervals_;
};

// Writes, for each failed call, how many calls lie between it and the previous failed call: few calls fail.
std::string failure_text(const Timeline& timeline) {
  ByteText bytes;
  std::uint64_t position = 0, next = 0;
  for (const auto& calls : timeline.calls) {
    for (const auto& call : calls) {
      if (call.failed) bytes.add(position - std::exchange(next, position + 1));
      ++position;
    }
  }
  return bytes.base64();
}

std::string span_text(const Timeline& timeline) {
  ByteText bytes;
  for (const auto& spans : timeline.spans) {
    bytes.add(spans.size());
    std::int64_t before = 0;
    for (const auto& span : spans) {
      bytes.add(span.name);
      bytes.add_signed(span.begin - before);
      bytes.add_time(span.end, span.begin);
      before = span.end == Timeline::kNever ? span.begin : span.end;
    }
  }
  return bytes.base64();
}

// The result of `write`. If the text is longer than `text_most`, shortens the items to as many as will probably fit,
// and writes again.
template <class Items, class Write, class Shorten>
std::string fitting(const Items& items, std::size_t text_most, const Write& write, const Shorten& shorten) {
  std::string text = write();
  for (std::size_t tries = 0; text.size() > text_most && tries < 8; ++tries) {
    std::size_t count = 0;
    for (const auto& of_rank : items) count += of_rank.size();
    shorten(static_cast<std::size_t>(static_cast<double>(count) * 0.95 * static_cast<double>(text_most) /
                                     static_cast<double>(text.size())));
    text = write();
  }
  return text;
}

Json table_row(const Timeline::Group& group) {
  return {{"name", group.name}, {"description", group.description}, {"ranks", rank_runs(group.ranks)}};
}

Json table_row(const Timeline::Signature& signature) {
  return Json::array({signature.name, signature.fingerprint, signature.label});
}

Json table_row(const Kind& kind) {
  return Json::array({kind.group, kind.signature, kind.site, static_cast<int>(kind.type),
                      kind.any_peer ? Json() : Json(kind.peer_offset), kind.tag});
}

template <class Items>
Json table_of(const Items& items) {
  Json list = Json::array();
  for (const auto& item : items) list.push_back(table_row(item));
  return list;
}

}  // namespace

Json rank_times(const std::vector<VirtualTime>& times) {
  const bool all_equal = std::adjacent_find(times.begin(), times.end(), std::not_equal_to<>()) == times.end();
  Json json = Json::array();
  for (const auto time : times) {
    json.push_back(time.time_since_epoch().count());
    if (all_equal) break;
  }
  return json;
}

Json timeline_json(Timeline timeline, std::size_t text_most) {
  const auto spans = fitting(
      timeline.spans, text_most / 3, [&] { return span_text(timeline); },
      [&](std::size_t most) { shorten_spans(timeline, most); });
  const auto calls = fitting(
      timeline.calls, text_most - std::min(spans.size(), text_most), [&] { return CallWriter(timeline).write(); },
      [&](std::size_t most) { shorten_calls(timeline, most); });
  Json sites = Json::array();
  for (const auto& site : timeline.sites) sites.push_back(Json(site));
  return {{"groups", table_of(timeline.groups)},
          {"signatures", table_of(timeline.signatures)},
          {"kinds", table_of(timeline.kinds)},
          {"sites", std::move(sites)},
          {"calls", calls},
          {"failed", failure_text(timeline)},
          {"span_names", timeline.span_names},
          {"spans", spans},
          {"left_out", timeline.left_out},
          {"spans_left_out", timeline.spans_left_out}};
}

}  // namespace rehearse::sim
