#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Kernel tests and benchmarks on a machine that has a GPU and nothing to build with: see usage.
set -euo pipefail

usage() {
  cat <<'END'
Usage: bench/on_gpu.sh pack FOLDER   where nvcc is: builds the programs (sm_80 and sm_90, head_dim
                                     128) and copies them, with this script, to FOLDER
       FOLDER/on_gpu.sh run          where the GPU is: tests, then benchmarks, within 5 minutes; the
                                     table comes last, all numbers are in FOLDER/gemv.csv
END
}

pack() {
  cd "$(dirname "${BASH_SOURCE[0]}")/.."
  cmake --preset release -B build/gpu -D CMAKE_CUDA_ARCHITECTURES="80-real;90" -D KVARTS_CUDA=ON
  cmake --build build/gpu --target cuda_test gemv_cuda_bench
  mkdir -p "$1"
  cp bench/on_gpu.sh build/gpu/tests/cuda/cuda_test build/gpu/bin/gemv_cuda_bench "$1"
  ldd build/gpu/bin/gemv_cuda_bench | awk '/lib(benchmark|stdc|gcc_s)/ {print $3}' |
    xargs -I {} cp -L {} "$1"
}

# Time, bytes/s and how many times as fast as 16-bit rows, for the longest sequences.
table() {
  awk -F, '
    /^"(qk|pv)\// {
      gsub(/"/, ""); split($1, name, "/")
      shape = name[3] "/" name[4] "/" name[5]; rows[++n] = $1
      product[$1] = name[1]; codec[$1] = name[2]; of[$1] = shape
      time[$1] = $3; rate[$1] = $6; copy[$1] = $11
      if (name[2] == "f16") plain[name[1], shape] = $3
    }
    END {
      printf "%-4s %-20s %-12s %10s %8s %7s %7s\n", "", "codec", "shape", "us", "GB/s", "copy", "x f16"
      for (i = 1; i <= n; ++i) {
        r = rows[i]
        if (of[r] !~ /32768$/) continue
        printf "%-4s %-20s %-12s %10.1f %8.0f %6.0f%% %7.2f\n", product[r], codec[r], of[r],
               time[r], rate[r] * 1e-9, 100 * copy[r], plain[product[r], of[r]] / time[r]
      }
    }' gemv.csv
}

run() {
  cd "$(dirname "${BASH_SOURCE[0]}")"
  local tests=passed
  timeout 120 ./cuda_test || tests="FAILED (exit status $?)"
  timeout 170 ./gemv_cuda_bench --require-device --benchmark_out=gemv.csv \
    --benchmark_out_format=csv >gemv.txt 2>&1
  grep -m 1 copy_gbytes gemv.txt || true
  table
  echo "Tests $tests"
  [[ $tests == passed ]]
}

case ${1:-} in
  pack) (($# == 2)) || { usage >&2 && exit 2; } && pack "$2" ;;
  run) run ;;
  help | -h | --help) usage ;;
  *) usage >&2 && exit 2 ;;
esac
