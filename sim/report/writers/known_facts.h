// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <rehearse/job/report.h>

#include "report/writers/json.h"

namespace rehearse::sim {

class JsonReader;

// False if nobody measured the run: its process died without notes of its calls and its time, it was a replay that
// differed from its log, or only dumps describe it.
bool is_measured(const Report& report);

// True if nothing went wrong as far as is known, but some rank of the job left no dump.
bool is_partial(const Report& report);

// The keys of report.json whose values nobody measured. Their fields in the report are zeros or empty, except that the
// schedule of a report on dumps is "real".
std::vector<std::string_view> unmeasured_keys(const Report& report);

// The facts by which a file of a run says to which run it belongs: program, seed, verdict and identity. And what
// carried its tensors: "simulation", or Report::transport.
Json run_facts(const Report& report);

// Writes "where", the place's text, and "place", which has the rest if it is known. `prefix`: "last_" for another
// place.
void put_place(Json& json, const std::string& prefix, const Place& place);
Place place_in(const JsonReader& reader, const std::string& prefix);  // what put_place() has written

}  // namespace rehearse::sim
