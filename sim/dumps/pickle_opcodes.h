// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string_view>

// The opcodes of Python's pickles: those for plain data, and those that the reader refuses by name.
namespace rehearse::sim::pickle {

enum class Opcode : std::uint8_t {
  mark = '(',
  stop = '.',
  bin_float = 'G',
  bin_int = 'J',
  bin_int_1 = 'K',
  bin_int_2 = 'M',
  none = 'N',
  short_bin_string = 'U',
  bin_string = 'T',
  bin_unicode = 'X',
  append = 'a',
  dict = 'd',
  appends = 'e',
  bin_get = 'h',
  long_bin_get = 'j',
  list = 'l',
  bin_put = 'q',
  long_bin_put = 'r',
  set_item = 's',
  tuple = 't',
  set_items = 'u',
  empty_tuple = ')',
  empty_list = ']',
  empty_dict = '}',
  protocol = 0x80,
  tuple_1 = 0x85,
  tuple_2 = 0x86,
  tuple_3 = 0x87,
  new_true = 0x88,
  new_false = 0x89,
  long_1 = 0x8a,
  short_bin_unicode = 0x8c,
  bin_unicode_8 = 0x8d,
  memoize = 0x94,
  frame = 0x95,
};

struct RefusedOpcode {
  std::uint8_t code;
  std::string_view name;
};

// With these opcodes a pickle names Python's functions and classes, and calls them.
inline constexpr RefusedOpcode kCodeOpcodes[] = {
    {'c', "GLOBAL"}, {'i', "INST"},       {'o', "OBJ"},           {'R', "REDUCE"}, {'b', "BUILD"},
    {'P', "PERSID"}, {'Q', "BINPERSID"},  {0x81, "NEWOBJ"},       {0x82, "EXT1"},  {0x83, "EXT2"},
    {0x84, "EXT4"},  {0x92, "NEWOBJ_EX"}, {0x93, "STACK_GLOBAL"},
};

// The name of an opcode that reaches code; empty for all other opcodes.
constexpr std::string_view code_opcode(std::uint8_t code) {
  for (const auto& refused : kCodeOpcodes) {
    if (refused.code == code) return refused.name;
  }
  return {};
}

}  // namespace rehearse::sim::pickle
