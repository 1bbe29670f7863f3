// SPDX-License-Identifier: BSD-3-Clause
#include "dumps/pickle.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "dumps/pickle_values.h"

namespace rehearse::sim {
namespace {

using pickle::Id;

// The opcodes of Python's pickles: those for plain data, and those that the reader refuses by name.
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
constexpr RefusedOpcode kCodeOpcodes[] = {
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

constexpr std::size_t kProtocolsMost = 5;

// Takes little-endian numbers and texts from the front of the bytes.
class PickleBytes {
 public:
  explicit PickleBytes(std::string_view bytes) : bytes_(bytes) {}

  std::size_t at() const { return at_; }
  std::size_t left() const { return bytes_.size() - at_; }

  std::string_view take(std::uint64_t count) {
    if (count > left()) throw PickleError(fmt::format("ends in the middle of a value, at byte {}", at_));
    const auto taken = bytes_.substr(at_, static_cast<std::size_t>(count));
    at_ += taken.size();
    return taken;
  }

  std::uint64_t number(std::size_t width) {
    std::uint64_t value = 0;
    const auto taken = take(width);
    for (std::size_t i = width; i-- > 0;) value = (value << 8) | static_cast<unsigned char>(taken[i]);
    return value;
  }

  // Python writes doubles with the high byte first.
  double real() {
    std::uint64_t bits = 0;
    for (const char byte : take(sizeof bits)) bits = (bits << 8) | static_cast<unsigned char>(byte);
    return std::bit_cast<double>(bits);
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

// The stack machine that runs a pickle, without the instructions that reach code.
class Unpickler {
 public:
  Unpickler(std::string_view bytes, PickleLimits limits) : bytes_(bytes), limits_(limits), values_(limits.values) {}

  Json run() {
    while (true) {
      begin_ = bytes_.at();
      code_ = static_cast<std::uint8_t>(bytes_.number(1));
      if (begin_ == 0 && code_ != static_cast<std::uint8_t>(Opcode::protocol)) fail("begins with");
      if (code_ == static_cast<std::uint8_t>(Opcode::stop)) return end();
      if (!number() && !text() && !container() && !memo()) refuse();
    }
  }

 private:
  // Refuses bytes behind the end, such as another dump in the same file. Python would ignore them.
  Json end() {
    if (bytes_.left() > 0)
      throw PickleError(fmt::format("goes on for {} bytes behind its end, at byte {}", bytes_.left(), bytes_.at()));
    return values_.json(pop(), limits_);
  }

  [[noreturn]] void fail(std::string_view what) const {
    throw PickleError(
        fmt::format("{} opcode {:#04x} at byte {}, which no flight recorder writes there", what, code_, begin_));
  }

  [[noreturn]] void refuse() const {
    const auto name = code_opcode(code_);
    if (name.empty()) fail("has");
    throw PickleError(
        fmt::format("would have Python run code: opcode {} at byte {}; a dump holds only dicts, lists, "
                    "texts and numbers, so do not load this file with Python",
                    name, begin_));
  }

  void push(Id id) { stack_.push_back(id); }

  // Pops only values above the last mark.
  Id pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail("has too few values for");
    const Id id = stack_.back();
    stack_.pop_back();
    return id;
  }

  std::vector<Id> pop_to_mark() {
    if (marks_.empty()) fail("has no mark for");
    const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<Id> items(first, stack_.end());
    stack_.erase(first, stack_.end());
    marks_.pop_back();
    return items;
  }

  std::vector<Id> pop_some(std::size_t count) {
    std::vector<Id> items(count);
    for (std::size_t i = count; i-- > 0;) items[i] = pop();
    return items;
  }

  bool number() {
    switch (static_cast<Opcode>(code_)) {
      case Opcode::none:
        return push(values_.none()), true;
      case Opcode::new_true:
      case Opcode::new_false:
        return push(values_.boolean(static_cast<Opcode>(code_) == Opcode::new_true)), true;
      case Opcode::bin_int:
        return push(values_.integer(static_cast<std::int32_t>(bytes_.number(4)))), true;
      case Opcode::bin_int_1:
        return push(values_.integer(static_cast<std::int64_t>(bytes_.number(1)))), true;
      case Opcode::bin_int_2:
        return push(values_.integer(static_cast<std::int64_t>(bytes_.number(2)))), true;
      case Opcode::long_1:
        return push(values_.integer(long_number())), true;
      case Opcode::bin_float:
        return push(values_.real(bytes_.real())), true;
      default:
        return false;
    }
  }

  std::int64_t long_number() {
    const auto width = bytes_.number(1);
    if (width == 0) return 0;
    if (width > sizeof(std::int64_t)) fail("has a number of more than 64 bits in");
    const auto shift = 64 - 8 * width;
    return static_cast<std::int64_t>(bytes_.number(width) << shift) >> shift;
  }

  bool text() {
    switch (static_cast<Opcode>(code_)) {
      case Opcode::short_bin_string:
      case Opcode::short_bin_unicode:
        return push(values_.text(bytes_.take(bytes_.number(1)))), true;
      case Opcode::bin_string:
      case Opcode::bin_unicode:
        return push(values_.text(bytes_.take(bytes_.number(4)))), true;
      case Opcode::bin_unicode_8:
        return push(values_.text(bytes_.take(bytes_.number(8)))), true;
      default:
        return false;
    }
  }

  bool container() {
    switch (static_cast<Opcode>(code_)) {
      case Opcode::mark:
        return marks_.push_back(stack_.size()), true;
      case Opcode::empty_list:
      case Opcode::empty_tuple:
        return push(values_.array({})), true;
      case Opcode::empty_dict:
        return push(values_.dict()), true;
      case Opcode::list:
      case Opcode::tuple:
        return push(values_.array(pop_to_mark())), true;
      case Opcode::tuple_1:
      case Opcode::tuple_2:
      case Opcode::tuple_3:
        return push(values_.array(pop_some(code_ - static_cast<std::size_t>(Opcode::tuple_1) + 1))), true;
      case Opcode::dict: {
        auto items = pop_to_mark();
        const Id dict = values_.dict();
        add_items(dict, items);
        return push(dict), true;
      }
      default:
        return growth();
    }
  }

  // Handles opcodes that add the topmost values of the stack to the container below these values; false: another
  // opcode.
  bool growth() {
    std::vector<Id> items;
    switch (static_cast<Opcode>(code_)) {
      case Opcode::append:
        items = pop_some(1);
        return append(items), true;
      case Opcode::appends:
        items = pop_to_mark();
        return append(items), true;
      case Opcode::set_item:
        items = pop_some(2);
        return set(items), true;
      case Opcode::set_items:
        items = pop_to_mark();
        return set(items), true;
      default:
        return false;
    }
  }

  void append(const std::vector<Id>& items) {
    const Id list = pop();
    if (!values_.is_array(list)) fail("has no list below");
    auto& all = values_.items(list);
    all.insert(all.end(), items.begin(), items.end());
    push(list);
  }

  void set(const std::vector<Id>& items) {
    const Id dict = pop();
    if (!values_.is_dict(dict)) fail("has no dict below");
    add_items(dict, items);
    push(dict);
  }

  void add_items(Id dict, const std::vector<Id>& items) {
    if (items.size() % 2 != 0) fail("has a key without a value below");
    auto& all = values_.items(dict);
    all.insert(all.end(), items.begin(), items.end());
  }

  bool memo() {
    switch (static_cast<Opcode>(code_)) {
      case Opcode::protocol:
        if (const auto number = bytes_.number(1); number < 2 || number > kProtocolsMost)
          fail("has no known protocol in");
        return true;
      case Opcode::frame:
        return bytes_.number(8), true;
      case Opcode::bin_put:
        return put(bytes_.number(1)), true;
      case Opcode::long_bin_put:
        return put(bytes_.number(4)), true;
      case Opcode::memoize:
        return put(memo_.size()), true;
      case Opcode::bin_get:
        return get(bytes_.number(1)), true;
      case Opcode::long_bin_get:
        return get(bytes_.number(4)), true;
      default:
        return false;
    }
  }

  // Picklers number memo entries from 0 without gaps.
  void put(std::uint64_t index) {
    const Id top = pop();
    push(top);
    if (index > memo_.size()) fail("leaves a gap in the memo by");
    if (index == memo_.size()) return memo_.push_back(top);
    memo_[static_cast<std::size_t>(index)] = top;
  }

  void get(std::uint64_t index) {
    if (index >= memo_.size()) fail("has nothing in the memo for");
    push(memo_[static_cast<std::size_t>(index)]);
  }

  PickleBytes bytes_;
  const PickleLimits limits_;
  pickle::Values values_;
  std::vector<Id> stack_;
  std::vector<std::size_t> marks_;
  std::vector<Id> memo_;
  std::size_t begin_ = 0;
  std::uint8_t code_ = 0;
};

}  // namespace

Json unpickled(std::string_view bytes, PickleLimits limits) { return Unpickler(bytes, limits).run(); }

}  // namespace rehearse::sim
