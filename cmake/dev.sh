#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One command for each thing that a developer does here; see usage.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. cmake/packages.sh

usage() {
  cat <<'END'
Usage: cmake/dev.sh COMMAND

  demo             build the kvarts program, evaluate the sample, write report.html
  test             build everything and run all tests
  sanitize         the tests with clang++ under AddressSanitizer and UndefinedBehaviorSanitizer,
                   those of kernels under ThreadSanitizer too
  clang            the tests with clang++ as it is
  fuzz [SECONDS]   fuzz the file parsers side by side, 60 seconds unless told otherwise
  bench [ARG...]   run the benchmarks; arguments go to Google Benchmark
  sass [ARG...]    count the instructions of the CUDA kernels; see cmake/dev.sh sass --help
  cost [ARG...]    predict the time of attention on GPUs; see bench/cost_model/model.py
  release          compile all CUDA kernels for all architectures (nvcc)
  format           format the sources with clang-format 14

Debian packages that are missing are installed first, as root or through sudo.
END
}

fail() {
  echo "dev.sh: $1" >&2
  exit "${2:-1}"
}

# quietly COMMAND...: shows the output only when the command fails.
quietly() {
  local output
  output=$("$@" 2>&1) || { echo "$output" >&2; fail "failed: $*"; }
}

# build PRESET [configure arguments] [-- build arguments]
build() {
  local preset=$1 configure=() progress=()
  shift
  while (($# > 0)) && [[ $1 != -- ]]; do configure+=("$1") && shift; done
  (($# == 0)) || shift
  [[ -t 1 ]] || progress=(-- --quiet)
  echo "Building build/$preset"
  quietly cmake --preset "$preset" "${configure[@]}"
  cmake --build --preset "$preset" "$@" "${progress[@]}"
}

run_tests() { ctest --preset "$1" --parallel "${CTEST_PARALLEL_LEVEL:-$(nproc)}"; }

demo() {
  local sample=examples/data/sample
  install_build_packages
  build release -- --target kvarts_program
  build/release/bin/kvarts eval $sample.safetensors \
    --calibration $sample.calibration.safetensors --html report.html
  echo "Open $PWD/report.html in a browser."
}

# nvcc, where it is: its kernels keep to their budgets, those of one head_dim here.
test_release() {
  local shapes=(-D KVARTS_HEAD_DIMS=128 -D KVARTS_BLOCKS=32)
  install_build_packages
  build release
  run_tests release
  if find_nvcc; then
    quietly sass "${shapes[@]}" --check bench/budgets.json kernels/instances/*.cu \
      kernels/instances/codes/midrise3.cu
    quietly sass "${shapes[@]}" "${attention_shapes[@]}" --check bench/budgets.json \
      kernels/instances/attention/*.cu
  fi
}

# What budgets and predictions of attention are about.
attention_shapes=(-D KVARTS_COLUMN_TILES=1 -D KVARTS_WINDOW_TYPES=half)

find_nvcc() { command -v nvcc || [[ -x /usr/local/cuda/bin/nvcc ]]; } >/dev/null

release() {
  install_build_packages
  find_nvcc || fail "release needs nvcc 13"
  build cuda
}

sanitize() {
  install_build_packages
  choose_clang
  build asan -D CMAKE_CXX_COMPILER="$clang"
  UBSAN_OPTIONS=print_stacktrace=1 run_tests asan
  build tsan -D CMAKE_CXX_COMPILER="$clang"
  run_tests tsan
}

test_clang() {
  install_build_packages
  choose_clang
  build clang -D CMAKE_CXX_COMPILER="$clang"
  run_tests clang
}

# Inputs that reached new code stay in build/fuzz/NAME/corpus for the next run.
fuzz() {
  local seconds=$1 program name work seeds names=()
  local -A running=()
  [[ $seconds =~ ^[1-9][0-9]*$ ]] || fail "fuzz takes a number of seconds, not '$seconds'" 2
  install_build_packages
  choose_clang
  build fuzz -D CMAKE_CXX_COMPILER="$clang"
  trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
  for program in build/fuzz/bin/fuzz_*; do
    name=${program##*/fuzz_}
    names+=("$name")
    work=build/fuzz/$name
    seeds=tests/fuzz/corpus/$name
    mkdir -p "$work/corpus"
    [[ -d $seeds ]] || seeds=
    # A parser that believes a lying header meets the limit on one allocation.
    "$program" -max_total_time="$seconds" -timeout=10 -malloc_limit_mb=64 \
      -artifact_prefix="$work/" "$work/corpus" ${seeds:+"$seeds"} >"$work/log" 2>&1 &
    running[$name]=$!
  done
  for name in "${names[@]}"; do
    work=build/fuzz/$name
    if ! wait "${running[$name]}"; then
      grep -A 25 -m 1 ERROR "$work/log" >&2 || tail "$work/log" >&2
      fail "fuzz_$name failed: $work holds the whole log and the input"
    fi
    echo "fuzz_$name: no finding in $(grep -oP 'Done \K[0-9]+' "$work/log") runs"
  done
}

bench() {
  local program
  install_build_packages
  build release
  for program in build/release/bin/*_bench; do "$program" "$@"; done
}

# Without a GPU; a CUDA toolkit comes from PyPI when none is installed.
sass() {
  install_missing g++=g++ python3=python3 c++filt=binutils
  python3 -c 'import ensurepip, venv' 2>/dev/null || install_missing python3-venv
  python3 -B cmake/sass "$@"
}

# Instructions are counted first, for the shapes that are predicted; spills do not matter here.
cost() {
  local counts=build/sass/cost.json
  rm -f $counts
  sass -D KVARTS_HEAD_DIMS=128 -D KVARTS_BLOCKS=32 "${attention_shapes[@]}" --arch sm_80 \
    --arch sm_90 --arch sm_120 --json $counts kernels/instances/attention/*.cu >/dev/null ||
    [[ -s $counts ]] || fail "counting failed"
  python3 -B bench/cost_model $counts "$@"
}

format() {
  install_missing clang-format-14=clang-format-14
  find . -path ./build -prune -o \( -name '*.[ch]pp' -o -name '*.cu' -o -name '*.cuh' \) \
    -exec clang-format-14 -i {} +
}

command=${1:-}
case $command in
  demo | test | sanitize | clang | release | format) (($# == 1)) || fail "$command takes no arguments" 2 ;;
  fuzz) (($# <= 2)) || fail "fuzz takes one argument" 2 ;;
esac
case $command in
  demo) demo ;;
  test) test_release ;;
  sanitize) sanitize ;;
  clang) test_clang ;;
  release) release ;;
  fuzz) fuzz "${2:-60}" ;;
  bench) bench "${@:2}" ;;
  sass) sass "${@:2}" ;;
  cost) cost "${@:2}" ;;
  format) format ;;
  help | -h | --help) usage ;;
  '') usage >&2 && exit 2 ;;
  *) fail "unknown command '$command'; see cmake/dev.sh --help" 2 ;;
esac
