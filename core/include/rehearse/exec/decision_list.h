// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <rehearse/exec/oracle.h>

namespace rehearse {

// One answered choice.
struct Decision {
  ChoiceKind kind = ChoiceKind::next_fiber;
  std::uint32_t options = 0;  // how many candidates there were
  std::uint32_t answer = 0;   // the index of the chosen candidate
  bool operator==(const Decision&) const = default;
};

// Decisions in order, in 2 to 6 bytes each (at most 11, if there are more than 131,071 options) instead of a Decision's
// 12. The size matters because every switch with more than one runnable fiber adds a decision, and a long run has
// hundreds of millions of such switches. A run log stores the same bytes.
//
// A decision is two varints (7 bits per byte, lowest first, the high bit set in all but the last byte). The first holds
// the number of options times 16 plus the kind, the second the answer.
class DecisionList {
 public:
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Decision;
    using difference_type = std::ptrdiff_t;
    using pointer = const Decision*;
    using reference = Decision;

    Iterator() = default;
    Decision operator*() const;
    Iterator& operator++();
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator&) const = default;

   private:
    friend DecisionList;
    explicit Iterator(const char* at) : at_(at) {}
    const char* at_ = nullptr;
  };

  DecisionList() = default;
  explicit DecisionList(std::span<const Decision> decisions);
  DecisionList(const DecisionList&) = default;
  DecisionList(DecisionList&& other) noexcept { swap(other); }
  DecisionList& operator=(DecisionList other) noexcept {
    swap(other);
    return *this;
  }
  ~DecisionList() = default;

  // Returns nullopt unless `bytes` holds exactly `count` decisions, each with its answer among its options.
  static std::optional<DecisionList> from_bytes(std::string bytes, std::size_t count);

  void push_back(const Decision& decision) {
    if (bytes_.size() - used_ < kLongest) [[unlikely]]
      grow();
    char* at = put(bytes_.data() + used_, decision.options * kKinds + static_cast<std::uint64_t>(decision.kind));
    at = put(at, decision.answer);
    used_ = static_cast<std::size_t>(at - bytes_.data());
    ++size_;
  }

  // The functions from size() to bytes() take constant time. Iterators are valid until the next push_back(); each step
  // decodes one decision.
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  Iterator begin() const noexcept { return Iterator(bytes_.data()); }
  Iterator end() const noexcept { return Iterator(bytes_.data() + used_); }
  std::string_view bytes() const noexcept { return {bytes_.data(), used_}; }

  bool operator==(const DecisionList& other) const { return size_ == other.size_ && bytes() == other.bytes(); }

 private:
  static constexpr std::uint64_t kKinds = 16;  // leaves room for the kind beside the number of options
  static constexpr unsigned kPayloadBits = 7;
  static constexpr std::uint8_t kMoreFollows = 0x80;
  static constexpr std::size_t kLongest = 6 + 5;  // a 32-bit number of options with its kind, and a 32-bit answer

  static char* put(char* at, std::uint64_t number) noexcept {
    while (number >= kMoreFollows) {
      *at++ = static_cast<char>((number & (kMoreFollows - 1)) | kMoreFollows);
      number >>= kPayloadBits;
    }
    *at++ = static_cast<char>(number);
    return at;
  }
  // Takes a number off the front of bytes that must hold one.
  static std::uint64_t take(const char*& at) noexcept;
  static std::optional<std::uint64_t> take_checked(std::string_view& bytes) noexcept;
  void grow();
  void swap(DecisionList& other) noexcept;

  std::string bytes_;  // the first used_ bytes hold decisions; the rest is reserve
  std::size_t used_ = 0;
  std::size_t size_ = 0;
};

}  // namespace rehearse
