# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""Writes tensors of a GGUF file to standard output as binary32, little-endian, row-major, one after
the other. Their names are read from standard input, one a line. A failure is one line on standard
error and exit status 3.

  dequantise_gguf.py MODEL.gguf <NAMES
"""

import sys

import gguf
import numpy

BLOCK_ROWS_BYTES = 1 << 24  # dequantised at once: keeps memory small beside a large embedding


def write(tensor, out):
    data = tensor.data
    rows = data.reshape(-1, data.shape[-1])
    width = int(tensor.shape[0])
    step = max(1, BLOCK_ROWS_BYTES // (4 * width))
    for begin in range(0, rows.shape[0], step):
        values = gguf.quants.dequantize(rows[begin:begin + step], tensor.tensor_type)
        out.write(numpy.ascontiguousarray(values, dtype="<f4").data.cast("B"))


def main():
    names = sys.stdin.read().splitlines()
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(sys.argv[1]).tensors}
    for name in names:
        write(tensors[name], sys.stdout.buffer)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        sys.exit(3)
    except Exception as problem:  # whatever the package finds wrong with a file
        print(f"{type(problem).__name__}: {problem}".splitlines()[0], file=sys.stderr)
        sys.exit(3)
