// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rehearse/sim/fault.h>

// The text form of faults as tables. The parser, its errors, [[fault]] in scenarios and docs/FAULTS.md use them.
namespace rehearse::sim {

struct FaultTraits {
  bool alone = false;      // needs no call: without one, happens at a time or when another fault fires
  bool of_world = false;   // belongs to no rank: `times` counts all firings, `rank` limits whose calls may trigger it
  bool of_store = false;   // happens at calls of the store, not of groups
  bool any_call = false;   // happens at calls of groups or of the store, or at writes
  bool of_disk = false;    // happens at writes to files
  bool of_memory = false;  // fails the rank's next allocation, so it fires after the call or time that triggers it
  bool of_ended = false;   // acts on ranks that crashed or returned: no call triggers it, and the world waits for it
  bool of_sides = false;   // `rank` is not whom it hits, but one side of the network
  bool of_run = false;     // lasts from the start to the end, so it has no moment
  bool lasts = false;      // needs `for`
  bool ends_rank = false;  // the rank crashes; it may begin again
  bool mends = false;      // may end a hang
  bool holds_up = false;   // the data of the call moves later
  enum class Takes { any, collectives, sends, data } takes = Takes::any;  // `data`: calls that bring the rank data
};

struct FaultVerb {
  Fault::Verb verb;
  std::string_view name;
  std::string_view does;  // description for docs/FAULTS.md, in Markdown
  FaultTraits traits = {};
  void (*require)(const Fault&) = nullptr;  // throws FaultError if the values of the verb's own fields make no sense
};

// In the order of Fault::Verb.
const std::vector<FaultVerb>& fault_verbs();
inline const FaultVerb& row_of(Fault::Verb verb) { return fault_verbs()[static_cast<std::size_t>(verb)]; }
inline std::string_view to_string(Fault::Verb verb) { return row_of(verb).name; }
inline const FaultTraits& traits_of(Fault::Verb verb) { return row_of(verb).traits; }

// Whether the fault says when it happens, by one of the fields that may.
bool has_when(const Fault& fault);

// At whose calls a fault happens: a group's, the store's or the disk's. The fault's verb says so, or the call that the
// fault names. The disk's only call is a write.
enum class Callee { group, store, disk };
Callee callee_of(const Fault& fault);
inline constexpr std::string_view kWrite = "write";

struct FaultField {
  std::string_view name;
  std::string takes;                                                        // completes "it takes ..."
  std::vector<Fault::Verb> verbs;                                           // verbs with this field; empty: all
  std::function<bool(Fault&, const std::string&)> read;                     // false: the text is not valid
  std::function<std::string(const Fault&)> print;                           // empty: the field has its default
  std::function<std::string(const Fault&, const std::string&)> meant = {};  // what a wrong text may have meant, or ""
};

// In the order in which they are printed. Fields of different verbs may have the same name.
const std::vector<FaultField>& fault_fields();
bool has(const FaultField& field, Fault::Verb verb);

// Makes a fault from its words in a text or a table, without checking it as a whole. Throws FaultError.
Fault make_fault(std::string_view verb, const std::vector<std::pair<std::string, std::string>>& fields);

// Throws FaultError if the fields do not form a complete fault.
void require_whole(const Fault& fault);
// The same for a family of a swarm (SwarmOptions), which need not say on which rank or when the fault happens.
void require_family(const Fault& fault);

// Throws FaultError if a fault does not fit a world of so many ranks.
void require_valid(const std::vector<Fault>& faults, int ranks);

}  // namespace rehearse::sim
