// SPDX-License-Identifier: BSD-3-Clause
#include "label.h"

#include <algorithm>

#include <fmt/format.h>

namespace rehearse::comm {
namespace {

constexpr std::size_t kLabelShown = 48;
constexpr std::size_t kLabelTail = 16;

std::string full_label(const Operation& call) {
  if (call.payload == nullptr) return call.label != nullptr ? *call.label : std::string{};
  return call.label != nullptr ? *call.label + ": " + call.payload->text : call.payload->text;
}

std::string shortened(const std::string& text) {
  if (text.size() <= kLabelShown) return text;
  auto head = text.substr(0, kLabelShown - kLabelTail);
  auto tail = text.substr(text.size() - kLabelTail);
  // Cut between words if there is a space near the cut.
  const auto space = text[head.size()] == ' ' ? std::string::npos : head.rfind(' ');
  if (space != std::string::npos && space > head.size() / 2) head.resize(space);
  if (const auto start = tail.find(' '); start < tail.size() / 2) tail.erase(0, start + 1);
  return head + " ... " + tail;
}

}  // namespace

std::string label_of(const Operation& call) { return shortened(full_label(call)); }

std::optional<Mismatch::Field> label_difference(const Operation& first, const Operation& second) {
  const auto a = full_label(first), b = full_label(second);
  if (a == b) return std::nullopt;
  auto common = static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  // Begin with the word that differs, if shortened() will show the difference then.
  const auto word = a.substr(0, common).find_last_of(" ,") + 1;
  if (word > 0 && common - word < kLabelShown - kLabelTail) common = word;
  const auto from = [common](const std::string& text) {
    return fmt::format("\"... {}\"", shortened(text.substr(common)));
  };
  return Mismatch::Field{"label", from(a), from(b)};
}

}  // namespace rehearse::comm
