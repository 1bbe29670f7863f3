// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/job/parameter_text.h>

#include <cmath>

#include <fmt/format.h>

namespace rehearse {
namespace {

// Does not cut a UTF-8 character in the middle.
std::string_view beginning(std::string_view text, std::size_t end) {
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

std::string escaped(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (c == '"' || c == '\\') return {'\\', c};
  if (c == '\n') return "\\n";
  if (c == '\t') return "\\t";
  return byte < 0x20 || byte == 0x7F ? fmt::format("\\u{:04x}", byte) : std::string(1, c);
}

}  // namespace

std::string in_quotes(std::string_view text, std::size_t bytes_most) {
  const bool whole = text.size() <= bytes_most;
  std::string result = "\"";
  for (const char c : whole ? text : beginning(text, bytes_most)) result += escaped(c);
  return result + (whole ? "\"" : "...\"");
}

std::string with_point(double number) {
  const auto text = fmt::format("{}", number);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string shown(const ParameterValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *integer);
  if (const auto* number = std::get_if<double>(&value)) return with_point(*number);
  return in_quotes(std::get<std::string>(value));
}

std::string type_name(const ParameterValue& value) {
  constexpr const char* kNames[] = {"true or false", "an integer", "a number", "a text"};
  return kNames[value.index()];
}

std::string what_it_takes(const ParameterSpec& spec) {
  auto type = type_name(spec.fallback);
  const bool number =
      std::holds_alternative<std::int64_t>(spec.fallback) || std::holds_alternative<double>(spec.fallback);
  if (!number || spec.least == spec.most) return type;
  if (std::isinf(spec.most)) return fmt::format("{} of {} or more", type, spec.least);
  if (std::isinf(spec.least)) return fmt::format("{} of {} or less", type, spec.most);
  return fmt::format("{} from {} to {}", type, spec.least, spec.most);
}

}  // namespace rehearse
