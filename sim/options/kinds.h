// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rehearse_internal/job/parameter_text.h>

#include "options/option.h"
#include "schedule/units.h"

// The kinds of values that options take. `field` comes from at().
namespace rehearse::sim::kinds {

template <class Target, class Get>
struct Field {
  using Of = Target;
  Get get;
  auto& operator()(auto& target) const { return get(target); }
};

// The field to which a chain of members leads: at(&WorldOptions::network, &NetworkModel::latency).
template <class Target, class First, class... Rest>
auto at(First Target::* first, Rest... rest) {
  const auto get = [=](auto& target) -> auto& { return ((target.*first).*....*rest); };
  return Field<Target, decltype(get)>{get};
}

// Completes "it takes ..." in errors. `typed`: if errors about flags and variables say something else.
struct Takes {
  std::string in_file, typed = {};

  std::string behind(Spelling spelling) const {
    return fmt::format("; it takes {}", spelling == Spelling::file || typed.empty() ? in_file : typed);
  }
};

// `parse` returns an optional value: nothing for a wrong text. `print` returns an empty text for a value that counts as
// unset; a field that is an empty std::optional is unset. Both take the spelling as a second argument, or no second
// one.
template <class Field, class Parse, class Print>
Value<typename Field::Of> parsed(Field field, Form form, const Takes& takes, Parse parse, Print print,
                                 std::vector<std::string> words = {}) {
  using Target = typename Field::Of;
  constexpr auto kCall = [](const auto& function, const auto& argument, Spelling spelling) {
    if constexpr (std::is_invocable_v<decltype(function), decltype(argument), Spelling>) {
      return function(argument, spelling);
    } else {
      return function(argument);
    }
  };
  const auto set = [=, parse = std::move(parse)](Target& target, std::string_view text, Spelling spelling) {
    using Held = std::remove_reference_t<decltype(field(target))>;
    const auto value = kCall(parse, text, spelling);
    if (!value) return takes.behind(spelling);
    if constexpr (std::is_same_v<Held, std::remove_cv_t<decltype(value)>>) {
      field(target) = value;
    } else {
      field(target) = static_cast<Held>(*value);
    }
    return std::string();
  };
  const auto printed = [=, print = std::move(print)](const Target& target,
                                                     Spelling spelling) -> std::vector<std::string> {
    const auto& value = field(target);
    std::string text;
    if constexpr (std::is_invocable_v<Print, decltype(value)> ||
                  std::is_invocable_v<Print, decltype(value), Spelling>) {
      text = kCall(print, value, spelling);
    } else if (value) {
      text = kCall(print, *value, spelling);
    }
    return text.empty() ? std::vector<std::string>() : std::vector{text};
  };
  return {form, takes.in_file, set, printed, std::move(words)};
}

// Not for "inf" and "nan".
template <class T>
auto number_from(T least, T most) {
  return [=](std::string_view text) -> std::optional<T> {
    T value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool fits = error == std::errc() && end == text.data() + text.size() && value >= least && value <= most;
    return fits ? std::optional(value) : std::nullopt;
  };
}

// A number below `least` counts as unset.
template <class Field>
auto integer(Field field, std::int64_t least, std::int64_t most) {
  return parsed(field, Form::integer, {fmt::format("an integer from {} to {}", least, most)}, number_from(least, most),
                [=](std::int64_t value) { return value < least ? "" : fmt::format("{}", value); });
}

template <class Field>
auto number(Field field, double least, double most) {
  return parsed(field, Form::number, {fmt::format("a number from {} to {}", least, most)}, number_from(least, most),
                with_point);
}

// A file says true or false, a user 1 or 0.
template <class Field>
auto flag(Field field) {
  constexpr auto kPrint = [](bool value, Spelling spelling) -> std::string {
    return spelling == Spelling::typed ? (value ? "1" : "0") : (value ? "true" : "false");
  };
  const auto parse = [=](std::string_view text, Spelling spelling) -> std::optional<bool> {
    if (text == kPrint(true, spelling)) return true;
    return text == kPrint(false, spelling) ? std::optional(false) : std::nullopt;
  };
  return parsed(field, Form::flag, {"true or false", "0 or 1"}, parse, kPrint);
}

// A std::string or a path.
template <class Field>
auto text(Field field) {
  auto value = parsed(
      field, Form::text, {"a text that is not empty"},
      [](std::string_view text) { return text.empty() ? std::nullopt : std::optional(std::string(text)); },
      [](const std::filesystem::path& value) { return value.string(); });
  value.set = [set = value.set](auto& target, std::string_view text, Spelling spelling) {
    const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
    if (std::ranges::none_of(text, is_control)) return set(target, text, spelling);
    return std::string("; it takes a text without line ends and other control characters");
  };
  return value;
}

// One of several texts, each for one value of the field.
template <class T, class Field>
auto choice(Field field, std::vector<std::pair<std::string, T>> choices) {
  std::vector<std::string> words;
  for (const auto& each : choices) words.push_back(each.first);
  const Takes takes{fmt::format("\"{}\"", fmt::join(words, "\" or \"")),
                    fmt::format("one of {}", fmt::join(words, ", "))};
  const auto parse = [=](std::string_view text) -> std::optional<T> {
    for (const auto& [word, value] : choices) {
      if (word == text) return value;
    }
    return std::nullopt;
  };
  const auto print = [choices = std::move(choices)](const T& value) -> std::string {
    for (const auto& [word, of] : choices) {
      if (of == value) return word;
    }
    return "";
  };
  return parsed(field, Form::text, takes, parse, print, words);
}

// A choice among the enumerators from 0 on, in the order of their names.
template <class Enum, class Field>
auto enumerator(Field field, const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, Enum>> choices;
  for (const auto& name : names) choices.emplace_back(name, static_cast<Enum>(choices.size()));
  return choice<Enum>(field, std::move(choices));
}

template <class Field>
auto duration(Field field, std::string_view example) {
  return parsed(field, Form::text, {fmt::format("a duration in ns, us, ms, s, min or h, as in \"{}\"", example)},
                units::parse_duration, units::print_duration);
}

// Speeds and sizes of which 0 means that there is none: no text stands for 0.
template <class T, class Field>
auto positive(Field field, std::string takes, std::optional<T> (*parse)(std::string_view), std::string (*print)(T)) {
  return parsed(
      field, Form::text, {std::move(takes)},
      [=](std::string_view text) {
        const auto value = parse(text);
        return value && *value > 0 ? value : std::nullopt;
      },
      [=](T value) { return value > 0 ? print(value) : ""; });
}

}  // namespace rehearse::sim::kinds
