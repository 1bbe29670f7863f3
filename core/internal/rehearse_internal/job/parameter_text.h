// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <rehearse/job/parameters.h>

// Texts for values that users wrote or may write, in errors and listings. Each text is on one line, whatever the value
// contains.
namespace rehearse {

// The text in quotes, as in TOML. If it is longer than `bytes_most`, its beginning and "...".
std::string in_quotes(std::string_view text, std::size_t bytes_most = 80);

// 4.0, 0.5, 1e+300, inf: a number that TOML reads as a float.
std::string with_point(double number);

std::string shown(const ParameterValue& value);

// "an integer", "a text"
std::string type_name(const ParameterValue& value);

// Completes "it takes ...": "an integer from 1 to 100000".
std::string what_it_takes(const ParameterSpec& spec);

}  // namespace rehearse
