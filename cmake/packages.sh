# SPDX-License-Identifier: Apache-2.0
# Debian packages for dev.sh, which sources this file.
# shellcheck shell=bash

# install_missing [COMMAND=]PACKAGE...: installs the packages that are not there. With COMMAND=, any
# program of that name will do, whoever installed it.
install_missing() {
  local item missing=()
  for item in "$@"; do
    case $item in
      *=*) command -v "${item%%=*}" >/dev/null || missing+=("${item#*=}") ;;
      *) is_installed "$item" || missing+=("$item") ;;
    esac
  done
  ((${#missing[@]} == 0)) && return
  if ! command -v apt-get >/dev/null; then
    echo "No apt-get here: install the equivalents of these yourself: ${missing[*]}" >&2
    return
  fi
  local as_root=(env)
  if ((EUID != 0)); then
    command -v sudo >/dev/null ||
      fail "Missing packages. As root: apt-get update && apt-get install -y ${missing[*]}"
    as_root=(sudo env)
  fi
  echo "Installing ${missing[*]}"
  "${as_root[@]}" apt-get -qq update || true # the next line fails if that mattered
  quietly "${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 \
    install -y --no-install-recommends "${missing[@]}"
}

is_installed() {
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

install_build_packages() {
  install_missing g++=g++ cmake=cmake ninja=ninja-build pkg-config=pkgconf \
    catch2 libbenchmark-dev libboost-context-dev libcli11-dev libfmt-dev nlohmann-json3-dev
}

# Sets `clang` to a clang++ of version 16 or later.
choose_clang() {
  local version
  version=$(clang++ -dumpversion 2>/dev/null || echo 0)
  if ! command -v clang++-16 >/dev/null && ((${version%%.*} >= 16)); then
    clang=clang++
  else
    clang=clang++-16
    install_missing clang++-16=clang-16 libclang-rt-16-dev
  fi
}
