# SPDX-License-Identifier: BSD-3-Clause
"""Commands that show gdb every rank. The ranks are fibers of one thread, and gdb itself sees only the running fiber.

    (gdb) source rehearse-gdb.py
    (gdb) info ranks          each rank's fibers: what they wait for, and where
    (gdb) rank 2 bt           the stack of rank 2; takes any command, such as `rank 2 frame 5`
    (gdb) rank 2.1 bt         the stack of its helper fiber 1 (a thread that the rank made, or a callback)

Works in a stopped process and on a core file, on x86-64 only. A suspended fiber's frames follow frame 0, which stays
the thread's own. To learn what a rank waits for, gdb calls a function of the program. It cannot do that in a core
file, nor (before version 14) on processors with AMX: `info ranks` then says so.
"""
import gdb
import gdb.unwinder

WORD = 8
STATES = ("runnable", "running", "blocked", "ended")
OURS = ("rehearse::", "boost::", "std::", "c10d::", "c10::", "torch::", "at::", "__", "pthread_", "make_fcontext",
        "jump_fcontext", "rehearse_")


def read(address, size=WORD, signed=False):
    memory = gdb.selected_inferior().read_memory(address, size)
    return int.from_bytes(memory.tobytes(), "little", signed=signed)


def symbol_address(name):
    try:
        return int(gdb.parse_and_eval(f"(unsigned long)&{name}"))
    except gdb.error:
        raise gdb.GdbError(f"there is no symbol {name}: is this a program that runs Rehearse?") from None


class Table:
    """The RehearseDebuggerTable of core/exec/monitor/debugger.h. It shows the world that began last."""

    FIELDS = ("version", "fibers", "current", "rank", "fiber_of_rank", "state", "context", "stack_size", "stack_top")
    VERSION = 1

    def __init__(self):
        address = symbol_address("rehearse_debugger_table")
        for index, field in enumerate(self.FIELDS):
            setattr(self, field, read(address + index * WORD))
        if self.version != self.VERSION:
            raise gdb.GdbError(f"this script reads version {self.VERSION} of the table, the program has {self.version}")

    def all_fibers(self):
        if self.fibers == 0:
            raise gdb.GdbError("no world is running")
        begin, end = read(self.fibers), read(self.fibers + WORD)
        fibers = [Fiber(self, read(at)) for at in range(begin, end, WORD)]
        return sorted((f for f in fibers if f.state != "ended"), key=lambda f: (f.rank, f.number))


class Fiber:
    def __init__(self, table, address):
        self.table = table
        self.address = address
        self.rank = read(address + table.rank, 4, signed=True)
        self.number = read(address + table.fiber_of_rank, 4)
        state = read(address + table.state, 1)
        self.state = STATES[state] if state < len(STATES) else f"state {state}"

    def runs(self):
        return read(self.table.current) == self.address

    def saved_registers(self):
        """The registers of a suspended fiber. Boost.Context has saved them on the fiber's stack."""
        context = read(self.address + self.table.context)
        top = read(self.address + self.table.stack_top)
        low = top - read(self.address + self.table.stack_size)
        # The context lies at the top of the fiber's own stack. Its only pointer into the stack below itself is the
        # saved stack pointer.
        for at in range(context, context + 512, WORD):
            word = read(at)
            if low <= word < context:
                return layout(word)
        raise gdb.GdbError(f"rank {self.rank} has no saved stack pointer")

    def waits_for(self):
        """What blocks the fiber; empty if nothing does. Raises gdb.error if gdb cannot call the program."""
        return self.ask("describe") if self.state == "blocked" else ""

    def interpreted_place(self):
        """The innermost frame of the user's Python code; empty if there is none, or if gdb cannot call the program."""
        try:
            return self.ask("place")
        except gdb.error:
            return ""

    def ask(self, what):
        call = f"((const char*(*)(const void*))rehearse_debugger_{what})((const void*){self.address})"
        return gdb.parse_and_eval(call).string(errors="replace")


def layout(stack_pointer):
    """Boost.Context up to 1.79 saves r12-r15, rbx, rbp from the second word on; later versions save a canary first."""
    for shift in (0, WORD):
        pc = read(stack_pointer + 0x38 + shift)
        if "No symbol" not in gdb.execute(f"info symbol {pc:#x}", to_string=True):
            break
    names = ("r12", "r13", "r14", "r15", "rbx", "rbp", "rip")
    registers = {name: read(stack_pointer + shift + WORD * (i + 1)) for i, name in enumerate(names)}
    registers["rsp"] = stack_pointer + 0x40 + shift
    return registers


class FrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


class View(gdb.unwinder.Unwinder):
    """While it is enabled, the frames of a suspended fiber follow the thread's own frame 0."""

    def __init__(self):
        super().__init__("rehearse")
        self.enabled = False
        self.registers = None

    def __call__(self, frame):
        if self.registers is None or frame.level() != 0:
            return None
        word = gdb.lookup_type("unsigned long")
        # gdb rejects a caller whose frame lies below the callee's. So give frame 0 an address below the fiber's frames.
        below = gdb.Value(self.registers["rsp"] - WORD).cast(word)
        info = frame.create_unwind_info(FrameId(below, frame.read_register("rip")))
        for name, value in self.registers.items():
            info.add_saved_register(name, gdb.Value(value).cast(word))
        return info

    def execute(self, fiber, command):
        self.registers, self.enabled = fiber.saved_registers(), True
        gdb.invalidate_cached_frames()
        try:
            return gdb.execute(command, to_string=True)
        finally:
            self.registers, self.enabled = None, False
            gdb.invalidate_cached_frames()

    def place(self, fiber):
        """The innermost frame of the user's code: "step at train.cpp:41". Empty if there is none."""
        self.registers, self.enabled = fiber.saved_registers(), True
        gdb.invalidate_cached_frames()
        try:
            frame = gdb.newest_frame().older()
            while frame is not None:
                name = frame.name()
                if name is not None and not name.startswith(OURS):
                    line = frame.find_sal()
                    return f"{name} at {line.symtab.filename}:{line.line}" if line.symtab else name
                frame = frame.older()
        except gdb.error:
            pass
        finally:
            self.registers, self.enabled = None, False
            gdb.invalidate_cached_frames()
        return ""


view = View()
gdb.unwinder.register_unwinder(None, view, replace=True)


class InfoRanks(gdb.Command):
    """info ranks: what each rank of the world does, and where."""

    def __init__(self):
        super().__init__("info ranks", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        refusal = None
        for fiber in Table().all_fibers():
            name = f"{fiber.rank}" if fiber.number == 0 else f"{fiber.rank}.{fiber.number}"
            if fiber.runs():
                print(f"* rank {name:<6} running   this thread's own stack: bt")
                continue
            waits = ""
            try:
                waits = fiber.waits_for() if refusal is None else ""
            except gdb.error as error:
                refusal = error
            place = fiber.interpreted_place() or view.place(fiber)
            print(f"  rank {name:<6} {fiber.state:<9} {waits}{'  in ' if waits and place else ''}{place}")
        if refusal is not None:
            print(f"What the blocked ranks wait for is not known, for gdb cannot call the program: {refusal}")


class Rank(gdb.Command):
    """rank N COMMAND: COMMAND on the stack of rank N, as in `rank 2 bt`; N.K is fiber K of rank N."""

    def __init__(self):
        super().__init__("rank", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        words = argument.split(None, 1)
        if not words or not words[0].replace(".", "", 1).isdigit():
            raise gdb.GdbError("rank N COMMAND, as in: rank 2 bt")
        rank, _, number = words[0].partition(".")
        command = words[1] if len(words) > 1 else "bt"
        for fiber in Table().all_fibers():
            if (fiber.rank, fiber.number) == (int(rank), int(number or 0)):
                break
        else:
            raise gdb.GdbError(f"there is no rank {words[0]}, or it has ended; `info ranks` lists those that live")
        if fiber.runs():
            print(gdb.execute(command, to_string=True), end="")
            return
        text = view.execute(fiber, command)
        if command.split()[0] in ("bt", "backtrace", "where"):
            text = text[text.find("\n#1 ") + 1:] if "\n#1 " in text else text  # frame 0 is the thread's own
        print(text, end="")


InfoRanks()
Rank()
