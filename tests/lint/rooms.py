# SPDX-License-Identifier: BSD-3-Clause
"""The table of which room inside a house may include which, and its exceptions."""

import re
import typing


class House(typing.NamedTuple):
    """The rooms of a house. A room is a folder, also a nested one ("report/diagnosis"); "." holds the files of `folder`
    itself."""
    folder: str
    rooms: dict  # room: the rooms that it may include besides itself; folders without an entry may include anything
    prefix: str  # the path at which its public headers are included; its internal ones have "rehearse_internal/" there
    headers: dict  # room: its public and internal headers
    rest: str | None = None  # the room of headers without an entry; None: every room may include them


def ladder(*names, below=()):
    """Each room may include the rooms before it, and those in `below`."""
    return {name: (*below, *names[:place]) for place, name in enumerate(names)}


SIMULATION = ("schedule", "options", "report/writers", "record", "report/ranks", "report/calls", "report/diagnosis",
              "report/page", "dumps", "world", "run", "scenario")
# "cli" is the room of the files beside the other rooms: run, replay, explain, list. The larger commands do not know
# each other.
COMMAND = ("cli/terminal", "cli/grammar", "cli/death", "cli")

HOUSES = (
    # A world owns an executor, which owns the parts in the other rooms. Every room may include headers without an
    # entry.
    House("core/exec", {
        "fiber": (), "choice": (), "time": (),
        "call_site": ("fiber",),
        "monitor": ("fiber", "call_site"),
        "executor": ("fiber", "choice", "time", "call_site", "monitor"),
        "wait": ("fiber", "time", "executor"),
        "interpose": ("fiber", "choice", "time", "call_site", "executor", "wait"),
    }, "rehearse/exec/", {
        "fiber": ("fiber_local.h", "stack_fault.h", "thread_exit_keeper.h"),
        "choice": ("decision_list.h", "decision_log.h", "oracle.h"),
        "time": ("clock.h", "idle_policy.h", "kind_of_time.h", "timer_queue.h"),
        "call_site": ("address_alias.h", "call_site.h", "call_site_scope.h", "throw_site.h"),
        "monitor": ("watchdog.h",),
        "wait": ("this_rank.h", "wait_queue.h"),
        "interpose": ("clock_jump.h", "kept_files.h", "process_exit.h"),
    }),
    House("core/torch_state", {"tls": (), "devices": ("tls",), ".": ("tls", "devices")}, "rehearse/torch_state/", {}),
    House("core/comm", ladder("call", "agree", "record", "work", "matcher", "group", "backend"), "rehearse/comm/", {
        "call": ("call_interceptor.h", "coalescing.h", "described_backend.h", "device_end.h", "errors.h", "fabric.h",
                 "group_identity.h", "mismatch.h", "op_table.h", "operation.h", "signature.h", "title.h"),
        "agree": ("connection_text.h",),
        "record": ("event_log.h", "span_log.h", "wait_for_graph.h"),
        "work": ("pending.h", "several_works.h"),
        "group": ("communicator_options.h",),
    }, rest="backend"),
    # A pass knows graphs and the functions that they call, but never how they run.
    House("core/graph", {
        "ir": (), "text": ("ir",), "run/call": ("ir",), "run/python": ("ir",),
        "passes": ("ir", "run/call", "run/python"),
        "run": ("ir", "run/call"), "run/steps": ("ir", "text", "run", "run/call", "run/python"),
        "pt2": ("ir", "text"),
    }, "rehearse/graph/", {
        "text": ("text.h",),
        "passes": ("dead_code.h", "split.h", "structural_hash.h"),
        "run": ("interpreter.h",),
        "run/call": ("operators.h",),
        "pt2": ("exported_program.h",),
    }, rest="ir"),
    # Checks of values need no world. Nor do the watchers of operators.
    House("core/checks", {
        "values": (), "watch": ("values",), ".": ("values", "watch"),
    }, "rehearse/checks/", {
        "values": ("model_state.h", "non_finite.h", "unwatched.h"),
        "watch": ("origins.h",),
        ".": ("reductions.h", "world_checks.h"),
    }),
    # Models and hooks do not depend on the reducer that uses them, and the bucket splitter needs no reducer.
    House("core/parallel", {
        "model": (), "hooks": (), "mesh": (), ".": ("model", "hooks"), "splitter": (),
        "fsdp": ("model", "mesh", "."),
    }, "rehearse/parallel/", {
        "model": ("module_traits.h", "output_tensors.h"),
        "hooks": ("comm_hooks.h", "power_sgd.h"),
        "mesh": ("device_mesh.h", "placement.h"),
        "fsdp": ("fsdp.h", "fsdp_options.h", "fsdp_session.h", "shard_state.h"),
        "splitter": ("bucket_splitter.h",),
    }),
    House("real", {
        **ladder("nccl", "fabric", "interpose", "runner"),
        **ladder("process/check", "process/session"),
        "process/backend": ("process/check", "process/session", "runner"),
        "process": ("process/check", "process/session", "process/backend"),
    }, "rehearse/real/", {}),
    House("core/shapes", ladder("expr", "expr/bounds", "env"), "rehearse/shapes/", {
        "expr/bounds": ("range.h",),
        "env": ("guard_program.h", "shape_env.h", "sym_node.h"),
    }, rest="expr"),
    # The forward capture and the joint capture do not know each other. All of them may include errors.h.
    House("core/capture", {
        "fake/call": (), "fake/infer": ("fake/call",), "fake/rules": ("fake/call", "fake/infer"),
        "fake": ("fake/call", "fake/infer"),
        "graph": (),
        "trace/caller": (), "trace/operators": ("trace/caller", "fake/call"),
        "trace/recording": ("trace/caller", "trace/operators", "fake/call", "graph"),
        "trace/recorders": ("trace/caller", "trace/operators", "trace/recording", "fake/call", "fake", "graph"),
        "trace": ("trace/caller", "trace/operators", "trace/recording", "trace/recorders", "fake/call", "fake",
                  "graph"),
        "trace/hooks": ("trace/caller", "trace/operators", "trace/recording", "trace/recorders", "trace", "fake/call",
                        "fake", "graph"),
        "joint": ("fake/call", "fake", "graph"),
    }, "rehearse/capture/", {
        "fake/call": ("fake_errors.h", "fake_mode.h", "fake_tensor.h"),  # the base of all of fake
        "trace/recording": ("captured_graph.h", "forward_capture.h", "segments.h"),  # the description of a recording
        "trace": ("opaque.h",),
        "joint": ("joint_graph.h", "joint_partition.h"),
    }),
    # Guards and back ends do not need a callable, nor do compiler collectives. All of them may include backend.h,
    # compile_options.h, errors.h, explanation.h and leaf.h.
    House("core/compile", {
        "arguments": (), "guards": (), "compiler_collectives": ("arguments",), "aot": (), "cache": ("guards",),
        "partitions": ("compiler_collectives", "aot", "cache"),
        "segments": ("arguments", "guards", "compiler_collectives", "partitions"),
        "captures": ("arguments", "guards", "partitions", "segments"),
        ".": ("arguments", "guards", "compiler_collectives", "aot", "cache", "partitions", "segments", "captures"),
    }, "rehearse/compile/", {
        "arguments": ("argument_sinks.h", "argument_walk.h", "mark_dynamic.h"),
        "partitions": ("counting_backend.h",),
        "guards": ("guard_failure.h", "watch.h"),
        
        "aot": ("aot_eager.h",),
        "captures": ("user_code.h",),
        ".": ("argument_copies.h", "callable.h", "compile.h", "eager_region.h", "typed_call.h"),
    }),
    # Writers know a report as data, but not how it came about. A run log contains a report. All may include
    # world_options.h.
    House("sim", {
        **ladder(*SIMULATION),
        "network": (), "compute": ("layers", "faults"), "buffers": ("layers",), "memory": ("schedule",),
        "layers": (), "explain": ("layers",), "checks": ("layers",),
        "faults": ("schedule", "memory", "layers"),
        "report/diagnosis": (*SIMULATION[:SIMULATION.index("report/diagnosis")], "faults"),
        "scenario": (*SIMULATION[:-1], "faults"),
        "world": ("schedule", "record", "report/diagnosis", "report/writers", "network", "compute", "memory", "layers",
                  "faults"),
        "gtest": SIMULATION,
        **ladder(*COMMAND, below=SIMULATION),
        **{f"cli/{room}": (*SIMULATION, *COMMAND) for room in ("completion", "split", "sweep")},
        **ladder("cli/launch", "cli/merge", "cli/real", "cli/validate", below=(*SIMULATION, *COMMAND, "cli/sweep")),
    }, "rehearse/sim/", {
        "schedule": ("format_time.h", "oracles.h", "pct_oracle.h", "random_stream.h", "schedule.h", "seed.h"),
        "network": ("network_model.h",),
        "compute": ("compute_model.h",),
        "report/writers": ("chrome_trace.h", "flight_recorder.h", "report_writers.h"),
        "record": ("determinism.h", "input_file.h", "run_log.h"),
        "world": ("virtual_clock.h", "world.h"),
        "run": ("output_options.h",),
        "scenario": ("scenario.h",),
    }),
)

# Calls are compared in the coordinator, too, where no executor runs. So this room knows only call sites of exec.
CALLS = "core/comm/call"
EXEC_FOR_CALLS = ("rehearse/exec/call_site.h",)

# Existing includes against the order: the includer (a folder ends with /), the included header, the reason. The lint
# finds an exception that is no longer needed; remove it.
EXCEPTIONS = (
    ("core/exec/executor/", "exec/interpose/interpose.h", "a run starts with the check that libc's calls come to us"),
    ("core/exec/executor/", "exec/interpose/world_state.h", "what the interposed calls know of a world goes with it"),
)


def without_house(house, path):
    """The file's path below the house's folder, as parts; None if it belongs to another house."""
    parent = house.folder.rpartition("/")[0]
    for folder in (house.folder + "/", house.folder.removeprefix(parent + "/") + "/" if parent else None):
        if folder and path.startswith(folder):
            return path.removeprefix(folder).split("/")
    return None


def header_of(path):
    """A public or internal header, as a file or as an include, in the form of a public one: rehearse/AREA/name.h."""
    included = re.sub(r"^\w+/(include|internal)/", "", path)
    return re.sub(r"^rehearse_internal/", "rehearse/", included)


def room_of(house, path, is_include):
    """The room of a file, or of an include as written; None if it belongs to no room in the table."""
    header = header_of(path)
    if header.startswith(house.prefix):
        name = header.removeprefix(house.prefix)
        return next((room for room, headers in house.headers.items() if name in headers), house.rest)
    from_house = house.folder in ("sim", "real")  # includes name their private headers from there
    if from_house and is_include:
        parts = path.split("/")
    else:
        parts = without_house(house, path)
    if not parts or (len(parts) == 1 and is_include and from_house):
        return None
    if len(parts) == 1:
        return "." if "." in house.rooms else None
    folders = ("/".join(parts[:depth]) for depth in range(len(parts) - 1, 0, -1))
    return next((folder for folder in folders if folder in house.rooms), None)  # the innermost folder that is a room


def wrong_arrow(path, included):
    """The reason why a file must not include that; None: it may."""
    for house in HOUSES:
        room, of = room_of(house, path, False), room_of(house, included, True)
        if room and of and of != room and of not in house.rooms[room]:
            may = ", ".join(house.rooms[room]) or "none of the others"
            return f"room {room} of {house.folder} includes {included} of {of}; it may include {may}"
    if path.startswith(CALLS + "/") or room_of(HOUSES[0], path, False) == "call":
        header = header_of(included)
        if header.removeprefix("rehearse/").startswith("exec/") and header not in EXEC_FOR_CALLS:
            may = ", ".join(EXEC_FOR_CALLS)
            return f"room call of core/comm includes {included} of exec; of exec it may include {may}"
    return None


class Exceptions:
    """The exceptions, and which of them a tree of files needs."""

    def __init__(self, files):
        self.files = files
        self.used = set()

    def allow(self, path, included):
        for exception in EXCEPTIONS:
            who, what, _ = exception
            if included == what and (path == who or (who.endswith("/") and path.startswith(who))):
                self.used.add(exception)
                return True
        return False

    def unused(self):
        for exception in EXCEPTIONS:
            who, what, _ = exception
            if exception not in self.used and any(path.startswith(who) for path in self.files):
                yield f"{who}:1: does not include {what}: take it out of EXCEPTIONS in tests/lint/rooms.py"
