# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""Writes safetensors files for cases, without the program: `tensor_file.py FILE < description`.

Each line describes one tensor: NAME DTYPE SHAPE VALUES, with the shape as 2,4 and the values
separated by blanks: numbers, hexadecimal codes (0x3c00), `VALUE*COUNT` for repeated ones, or
`normal*COUNT*SEED` for seeded numbers of about a normal distribution. DTYPE is F32, F16, BF16 or
F64. Values are rounded to nearest, ties to even.
"""

import json
import pathlib
import random
import struct
import sys

WIDTHS = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}


def encode(dtype, value):
    if value.startswith("0x"):
        return int(value, 16).to_bytes(WIDTHS[dtype], "little")
    number = float(value)
    if dtype == "BF16":
        bits = struct.unpack("<I", struct.pack("<f", number))[0]
        bits += 0x7FFF + (bits >> 16 & 1)
        return (bits >> 16 & 0xFFFF).to_bytes(2, "little")
    return struct.pack({"F64": "<d", "F32": "<f", "F16": "<e"}[dtype], number)


def payload(dtype, words):
    out = b""
    for word in words:
        value, *rest = word.split("*")
        if value == "normal":
            generator = random.Random(int(rest[1]))
            for _ in range(int(rest[0])):
                # The sum of twelve uniform numbers, minus six: the same on every platform.
                number = sum(generator.getrandbits(32) for _ in range(12)) / 2**32 - 6
                out += encode(dtype, repr(number))
        else:
            out += encode(dtype, value) * (int(rest[0]) if rest else 1)
    return out


def main():
    header, data = {}, b""
    for line in sys.stdin:
        if not line.strip():
            continue
        name, dtype, shape, *words = line.split()
        part = payload(dtype, words)
        sizes = [int(size) for size in shape.split(",")]
        header[name] = {"dtype": dtype, "shape": sizes, "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    pathlib.Path(sys.argv[1]).write_bytes(struct.pack("<Q", len(text)) + text + data)


if __name__ == "__main__":
    main()
