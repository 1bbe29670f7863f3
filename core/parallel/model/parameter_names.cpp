// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/model/parameter_names.h"

#include <charconv>

namespace rehearse::parallel {
namespace {

// The decimal numbers at the start of `text`, up to the end of the line, separated by anything but letters.
std::vector<std::size_t> leading_numbers(std::string_view text) {
  std::vector<std::size_t> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end && *at != '\n') {
    std::size_t number = 0;
    const auto [rest, error] = std::from_chars(at, end, number);
    if (error == std::errc()) {
      numbers.push_back(number);
      at = rest;
    } else if ((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z')) {
      break;
    } else {
      ++at;
    }
  }
  return numbers;
}

std::vector<std::size_t> parameter_indices_in(std::string_view message) {
  constexpr std::string_view kInReduction = "Parameter indices which did not receive grad for rank ";
  if (const auto at = message.find(kInReduction); at != message.npos) {
    const auto tail = message.substr(at + kInReduction.size());
    if (const auto colon = tail.find(':'); colon != tail.npos) return leading_numbers(tail.substr(colon + 1));
  }
  return {};
}

}  // namespace

std::string named_parameters_in(std::string_view message, const std::vector<std::string>& names) {
  std::string text;
  for (const std::size_t index : parameter_indices_in(message)) {
    if (index >= names.size()) continue;
    text += text.empty() ? "parameters: " : ", ";
    text += names[index];
  }
  return text;
}

}  // namespace rehearse::parallel
