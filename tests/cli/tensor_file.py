# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""Writes safetensors files for cases, without the program: `tensor_file.py FILE < description`.

Each line describes one tensor: NAME DTYPE SHAPE VALUES, with the shape as 2,4 and the values
separated by blanks: numbers, hexadecimal codes (0x3c00), `VALUE*COUNT` for repeated ones, or
`random*COUNT*SEED` for seeded numbers of 8 bits between -2 and 2, whose exponents spread over eight
powers of two; every type holds them. DTYPE is F32, F16, BF16 or F64. Values are rounded to nearest,
ties to even.
"""

import json
import pathlib
import random
import struct
import sys

WIDTHS = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}


def encode(dtype, value):
    if value.startswith("0x") and "p" not in value:
        return int(value, 16).to_bytes(WIDTHS[dtype], "little")
    number = float.fromhex(value) if "p" in value else float(value)
    if dtype == "BF16":
        bits = struct.unpack("<I", struct.pack("<f", number))[0]
        bits += 0x7FFF + (bits >> 16 & 1)
        return (bits >> 16 & 0xFFFF).to_bytes(2, "little")
    return struct.pack({"F64": "<d", "F32": "<f", "F16": "<e"}[dtype], number)


def payload(dtype, words):
    out = bytearray()
    for word in words:
        value, *rest = word.split("*")
        if value == "random":
            numbers = [
                [encode(dtype, str((byte / 64 - 2) / 2**scale)) for byte in range(256)]
                for scale in range(8)
            ]
            codes = random.Random(int(rest[1])).randbytes(2 * int(rest[0]))
            out += b"".join(numbers[scale % 8][code] for code, scale in zip(*[iter(codes)] * 2))
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
        offsets = [len(data), len(data) + len(part)]
        header[name] = {"dtype": dtype, "shape": sizes, "data_offsets": offsets}
        data += part
    text = json.dumps(header).encode()
    pathlib.Path(sys.argv[1]).write_bytes(struct.pack("<Q", len(text)) + text + data)


if __name__ == "__main__":
    main()
