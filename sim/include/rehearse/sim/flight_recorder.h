// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include <rehearse/comm/event_log.h>

namespace rehearse::sim {

// One rank's events as c10d's flight recorder would have dumped them, in JSON, for the tools that people have
// for dumps of real jobs. Its analyzer reads one pickle for each rank:
//
//   python3 -c 'import json, pickle, sys; pickle.dump(json.load(open(sys.argv[1])), open(sys.argv[2], "wb"))' IN OUT
//   python3 -m torch.distributed.flight_recorder.fr_trace <folder> --prefix <prefix>
//
// Frames are there for operations whose call site was captured. Times are nanoseconds of virtual time.
std::string flight_recorder_json(const comm::EventLog& events, int rank);

}  // namespace rehearse::sim
