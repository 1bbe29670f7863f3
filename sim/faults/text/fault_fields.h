// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rehearse/sim/fault.h>

// What the text of a fault may say, as tables: the parser, its errors, [[fault]] of scenarios and docs/FAULTS.md.
namespace rehearse::sim {

struct FaultTraits {
  bool alone = false;     // needs no call: happens at a time, or on another fault, if nothing else is given
  bool of_world = false;  // of no rank: `times` counts all, and `rank` says whose calls may bring it about
  bool of_store = false;  // at calls of the store, not of groups
  bool any_call = false;  // at calls of groups or of the store, or at writes
  bool of_disk = false;   // at writes to files
  bool later = false;     // fires after the call, or the time, that brings it about
  bool of_ended = false;  // of a rank that has crashed or returned: no call brings it about, and the world waits for it
};

struct FaultVerb {
  Fault::Verb verb;
  std::string_view name;
  std::string_view does;  // for the page, in Markdown
  FaultTraits traits = {};
};

// In the order of Fault::Verb.
const std::vector<FaultVerb>& fault_verbs();
std::string_view to_string(Fault::Verb verb);
const FaultTraits& traits_of(Fault::Verb verb);

// Whose calls a fault is at, by its verb or by the call that it names. Of the disk the only call is a write.
enum class Callee { group, store, disk };
Callee callee_of(const Fault& fault);
inline constexpr std::string_view kWrite = "write";

struct FaultField {
  std::string_view name;
  std::string takes;                                                        // completes "it takes ..."
  std::vector<Fault::Verb> verbs;                                           // that have it; empty: all
  std::function<bool(Fault&, const std::string&)> read;                     // false: not such a text
  std::function<std::string(const Fault&)> print;                           // empty: as without it
  std::function<std::string(const Fault&, const std::string&)> meant = {};  // what a wrong text may have meant, or ""
};

// In the order in which they are printed. Verbs may have different ones of a name.
const std::vector<FaultField>& fault_fields();
bool has(const FaultField& field, Fault::Verb verb);

// A fault of its words, as they stand in a text or a table; not looked at as a whole. Throws FaultError.
Fault make_fault(std::string_view verb, const std::vector<std::pair<std::string, std::string>>& fields);

// Throws FaultError where the fields of a fault do not make one; of a family, who and when may be open.
void require_whole(const Fault& fault);
void require_family(const Fault& fault);

// Throws FaultError where a fault is not for a world of so many ranks.
void require_valid(const std::vector<Fault>& faults, int ranks);

}  // namespace rehearse::sim
