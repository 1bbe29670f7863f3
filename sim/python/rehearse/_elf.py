# SPDX-License-Identifier: BSD-3-Clause
"""Reads the symbol table of a 64-bit little-endian ELF library."""

import mmap
import struct

_SYMTAB, _TLS = 2, 6


def thread_locals(path):
    """The library's thread-local variables: symbol -> (offset in the library's block, size)."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        sections, = struct.unpack_from("<Q", data, 0x28)
        entry_size, count = struct.unpack_from("<HH", data, 0x3A)
        headers = [struct.unpack_from("<IIQQQQIIQQ", data, sections + i * entry_size) for i in range(count)]
        for _, kind, _, _, offset, size, link, _, _, symbol_size in headers:
            if kind == _SYMTAB:
                return _thread_locals_in(data, offset, size, symbol_size, headers[link][4])
    raise RuntimeError(f"rehearse: {path} has no symbol table")


def _thread_locals_in(data, offset, size, symbol_size, names):
    found = {}
    for at in range(offset, offset + size, symbol_size):
        name, info, _, section, value, bytes_ = struct.unpack_from("<IBBHQQ", data, at)
        if info & 0xF == _TLS and section != 0:
            found[data[names + name : data.find(b"\0", names + name)].decode()] = (value, bytes_)
    return found
