// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/exec/check.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include <rehearse_internal/exec/rank_of_thread.h>
#include <rehearse_internal/exec/signal_io.h>

namespace rehearse::exec {
namespace {

// Builds a line without allocation, because the heap may be corrupt. Drops text that does not fit.
class CheckLine {
 public:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) noexcept {
    const auto room = text_.size() - used_;
    const auto end = fmt::format_to_n(text_.data() + used_, room, format, std::forward<Args>(args)...);
    used_ += std::min(end.size, room);
  }
  std::string_view text() const noexcept { return {text_.data(), used_}; }

 private:
  std::array<char, 1024> text_{};
  std::size_t used_ = 0;
};

constinit CheckLine g_failed{};

template <class Value>
void add_value(CheckLine& line, const Value& value) noexcept {
  if constexpr (std::same_as<Value, std::string_view>) {
    line.add("{:.200}", value);  // so that a long text leaves room for the rest
  } else {
    line.add("{}", value);
  }
}

// Removes and returns the first name: the text up to a comma outside of brackets and quotes.
std::string_view take_name(std::string_view& names) noexcept {
  int depth = 0;
  bool quoted = false;
  std::size_t end = 0;
  for (; end < names.size() && (names[end] != ',' || depth > 0 || quoted); ++end) {
    const char c = names[end];
    if (c == '"') quoted = !quoted;
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
  }
  const auto name = names.substr(0, end);
  names.remove_prefix(std::min(end + 1, names.size()));
  names.remove_prefix(std::min(names.find_first_not_of(' '), names.size()));
  return name;
}

}  // namespace

void check_failed(const CheckText& check, std::initializer_list<CheckedValue> values) noexcept {
  auto& line = g_failed;
  line.add("rehearse: internal error at {}:{}: not {}", check.file, check.line, check.condition);
  auto names = check.names;
  for (const char* before = " ("; const CheckedValue& value : values) {
    line.add("{}{} = ", std::exchange(before, ", "), take_name(names));
    std::visit([&line](const auto& each) { add_value(line, each); }, value.value());
  }
  if (values.size() > 0) line.add(")");
  if (const auto owner = rank_of_thread(); owner.rank >= 0) {
    line.add(", on rank {} at {} ns of virtual time", owner.rank, owner.at.time_since_epoch().count());
  } else {
    line.add(", outside of ranks");
  }
  line.add("; this is a bug in Rehearse\n");
  write_at_once(STDERR_FILENO, line.text().data(), line.text().size());
  std::abort();
}

std::string_view failed_check() noexcept { return g_failed.text().substr(0, g_failed.text().find('\n')); }

}  // namespace rehearse::exec
