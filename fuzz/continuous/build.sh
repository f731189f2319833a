#!/bin/bash -eu
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
# Builds the fuzz targets for ClusterFuzzLite and OSS-Fuzz, which set CC, CXX, CFLAGS, CXXFLAGS,
# LIB_FUZZING_ENGINE, SRC, WORK and OUT, and puts into OUT each target, its corpus as a zip file,
# and the shared libraries that the machine that runs them may lack.
#
#   build.sh [TARGET…]        all targets without arguments
source=${SRC:?}/kvsim
targets=("$@")

# The libraries of the distribution are built with its own C++ library.
CXXFLAGS=${CXXFLAGS//-stdlib=libc++/}
cmake -S "$source" -B "${WORK:?}/kvsim" -G Ninja -DCMAKE_BUILD_TYPE=None \
  -DCMAKE_C_COMPILER="${CC:?}" -DCMAKE_CXX_COMPILER="${CXX:?}" -DCMAKE_CXX_FLAGS="$CXXFLAGS" \
  -DCMAKE_EXE_LINKER_FLAGS="-Wl,--disable-new-dtags,-rpath,'\$ORIGIN/lib'" \
  -DKVSIM_BUILD_FUZZERS=ON -DKVSIM_FUZZING_ENGINE="${LIB_FUZZING_ENGINE:?}" \
  -DKVSIM_BUILD_TESTS=OFF -DKVSIM_BUILD_CLI=OFF -DKVSIM_PRECOMPILE=OFF -DKVSIM_TORCH=OFF \
  -DKVSIM_CUDA=OFF -DKVSIM_WERROR=OFF
cmake --build "$WORK/kvsim" ${targets:+--target "${targets[@]}"}

mkdir -p "${OUT:?}/lib"
for program in "$WORK"/kvsim/fuzz/fuzz_*; do
  [ -f "$program" ] && [ -x "$program" ] || continue
  name=$(basename "$program")
  cp "$program" "$OUT/"
  (cd "$source/fuzz/corpora/${name#fuzz_}" &&
    python3 -m zipfile -c "$OUT/${name}_seed_corpus.zip" ./*)
  ldd "$program" | sed -n 's|.*=> \(/[^ ]*\) .*|\1|p' |
    grep -vE '/(libc|libm|libgcc_s|libpthread|libdl|librt|libresolv|ld-linux[^/]*)\.so' |
    xargs -r cp -Lnt "$OUT/lib"
done
printf '[libfuzzer]\nmax_len = 262144\nlen_control = 0\n' >"$OUT/fuzz_flip_search.options"
