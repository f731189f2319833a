# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
# shellcheck shell=sh What ./kvsim and ./check share: install the packages that are missing, and
# build when a source is newer. The caller sets `root` to the repository and `program` to its own
# name. POSIX sh.

say() { printf '%s: %s\n' "$program" "$1" >&2; }

die() { say "$1"; exit 3; }

# section_packages SECTION… : the packages of these sections, one a line
section_packages() {
  for section in "$@"; do
    sed -n "s/^$section //p" "$root/scripts/packages"
  done
}

# missing_packages SECTION… : those of them that are not installed, one a line
missing_packages() {
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null |
    sed -n 's/^installed //p')
  section_packages "$@" | while read -r package; do
    printf '%s\n' "$installed" | grep -qxF -e "$package" || printf '%s\n' "$package"
  done
}

# install_packages SECTION… : installs what is missing, or says what to do and exits with 3
install_packages() {
  if ! command -v dpkg-query >/dev/null 2>&1; then
    say "this is not Debian: expecting the likes of $(section_packages "$@" | tr '\n' ' ')"
    return 0
  fi
  missing=$(missing_packages "$@" | tr '\n' ' ')
  missing=${missing% }
  [ -n "$missing" ] || return 0
  if [ "${KVSIM_NO_INSTALL:-}" = 1 ]; then
    die "missing, and KVSIM_NO_INSTALL=1 forbids installing: $missing"
  fi
  if [ "$(id -u)" = 0 ]; then
    as_root=
  elif sudo -n true 2>/dev/null; then
    as_root='sudo -n'
  else
    say "missing packages, and neither root nor sudo without a password. Run this, then try again:"
    printf 'apt-get install -y --no-install-recommends %s\n' "$missing" >&2
    exit 3
  fi
  for package in $missing; do say "installing $package"; done
  log=$root/build/install.log
  # The package lists may be empty or old: refresh them only where the first try fails.
  # shellcheck disable=SC2086  # as_root and missing are lists of words
  if ! apt_install >"$log" 2>&1; then
    { $as_root apt-get update -q && apt_install; } >"$log" 2>&1 || {
      tail -n 20 "$log" >&2
      die "apt-get could not install: $missing"
    }
  fi
}

apt_install() {
  # shellcheck disable=SC2086
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
    -o DPkg::Lock::Timeout=600 $missing </dev/null
}

# configure PRESET ON|OFF : with or without tests; quiet unless it fails. OFF does not take the
# tests away from a build that has them, because CMake would delete what they were built into.
configure() {
  log=$root/build/$1.log
  cache=$root/build/$1/CMakeCache.txt
  preset=$1
  set -- "-DKVSIM_BUILD_TESTS=$2"
  if [ -f "$cache" ]; then
    if ! grep -qxF -e "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$cache"; then
      set -- --fresh "$@"  # the tree was moved or copied here
    elif [ "$1" = -DKVSIM_BUILD_TESTS=OFF ]; then
      set --
    fi
  fi
  if ! (cd "$root" && cmake --preset "$preset" "$@") </dev/null >"$log" 2>&1; then
    cat "$log" >&2
    say "cannot configure build/$preset (the text above is build/$preset.log)"
    return 1
  fi
}

# build PRESET [TARGET…] : quiet unless it fails. One compiler for each core: Ninja's own two more
# take longer.
build() {
  log=$root/build/$1.log
  folder=$root/build/$1
  shift
  [ $# = 0 ] || set -- --target "$@"
  if ! cmake --build "$folder" --parallel "$(nproc)" "$@" </dev/null >"$log" 2>&1; then
    # The lines of the failing step stand at the end.
    tail -n 60 "$log" >&2
    say "cannot build build/${folder##*/} (the whole text is build/${folder##*/}.log)"
    return 1
  fi
}

# is_stale : true when the program is not built, or something it is made of is newer. Folders are
# looked at too, which notices a source that was removed, and the log of commits, because the
# program prints the commit it was built from.
is_stale() {
  [ -x "$root/build/release/cli/kvsim" ] && [ -f "$root/build/release/built" ] || return 0
  set -- softfloat sim model run fuzz gpu experiments include cli cmake CMakeLists.txt \
    CMakePresets.json scripts/packages
  [ ! -f "$root/.git/logs/HEAD" ] || set -- "$@" .git/logs/HEAD
  newer=$(cd "$root" && find "$@" -newer build/release/built -print 2>&1 | head -n 1)
  [ -n "$newer" ] || tools_are_newer
}

# tools_are_newer : true when scripts/torch/install has installed a libtorch, or
# scripts/cuda/install an nvcc, since the build
tools_are_newer() {
  for cache in "${KVSIM_CACHE:-}" "${XDG_CACHE_HOME:+$XDG_CACHE_HOME/kvsim}" \
    "${HOME:-}/.cache/kvsim"; do
    case $cache in /*) break ;; esac
  done
  for tool in "$cache"/torch-*/torch "$cache"/cuda-*/nvidia; do
    [ "$tool" -nt "$root/build/release/built" ] && return 0
  done
  return 1
}

# mark_built COMMAND… : runs the command; when it succeeds, remembers when it started
mark_built() {
  mkdir -p "$root/build/release" || return 1
  : >"$root/build/release/started" || return 1
  "$@" || return 1
  mv -f "$root/build/release/started" "$root/build/release/built"
}

# with_lock COMMAND… : one launcher at a time installs or builds in this tree
with_lock() {
  mkdir -p "$root/build" 2>/dev/null || die "cannot write to $root/build"
  (
    flock -n 9 || { say "waiting for another build of this tree"; flock 9; }
    "$@"
  ) 9>"$root/build/lock"
}
