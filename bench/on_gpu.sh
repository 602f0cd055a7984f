#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Kernel tests and benchmarks on a machine that has a GPU and nothing to build with: see usage.
set -euo pipefail

usage() {
  cat <<'END'
Usage: bench/on_gpu.sh pack FOLDER [ARCHITECTURES]
           where nvcc is: builds the programs (head_dim 128; "80-real;90" unless told otherwise)
           and copies them, with this script, to FOLDER
       FOLDER/on_gpu.sh run
           where the GPU is: tests, then benchmarks, within 8 minutes; short tables come last, all
           numbers are in FOLDER/gemv.csv and FOLDER/attention.csv; predictions stand beside those
           of attention where cmake/dev.sh cost --csv FOLDER/cost_model.csv has put them
END
}

# Libraries of the distribution go along; the C library is taken from where the programs run.
pack() {
  local architectures=${2:-80-real;90} bin=build/gpu/bin size
  cd "$(dirname "${BASH_SOURCE[0]}")/.."
  # Kernels that spill registers are to be measured, too.
  cmake --preset release -B build/gpu -D CMAKE_CUDA_ARCHITECTURES="$architectures" \
    -D KVARTS_CUDA=ON -D KVARTS_CUDA_ATTENTION=ON -D KVARTS_WERROR=OFF
  cmake --build build/gpu --target cuda_test gemv_cuda_bench attention_cuda_bench
  mkdir -p "$1"
  cp bench/on_gpu.sh "$1"
  strip -o "$1/cuda_test" build/gpu/tests/cuda/cuda_test
  strip -o "$1/gemv_cuda_bench" $bin/gemv_cuda_bench
  strip -o "$1/attention_cuda_bench" $bin/attention_cuda_bench
  ldd $bin/gemv_cuda_bench | awk '/lib(benchmark|stdc|gcc_s)/ {print $3}' |
    xargs -I {} cp -L {} "$1"
  size=$(du -sm "$1" | cut -f 1)
  echo "$1 has $size MB: copy it to the machine with the GPU and run on_gpu.sh run there"
  ((size < 64)) || { echo "on_gpu.sh: that is more than the 64 MB it may have" >&2 && return 1; }
}

# Products: time, bytes/s and how many times as fast as 16-bit rows, for the longest sequences.
gemv_table() {
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

# Attention: time, bytes/s, the part of a copy's speed, how many times as fast as 16-bit rows, and
# what the cost model says, at one length; then those ratios at all lengths.
attention_table() {
  local model=cost_model.csv
  [[ -e $model ]] || model=/dev/null
  awk -F, -v arch="$(sed -n 's/^arch: //p' attention.txt)" '
    FILENAME != "attention.csv" {
      # A model of sm_80 stands for all parts of the generation.
      if (int($2 == "" ? 0 : substr($2, 4) / 10) == int(substr(arch, 4) / 10)) {
        predicted[$1, $3, $4] = $5
      }
      next
    }
    /^"attention\// && $3 != "" {
      gsub(/"/, ""); split($1, name, "/")
      preset = name[2]; heads = name[3] "/" name[4]; tokens = name[5]; batch = name[6]
      if (!(preset in known)) { known[preset]; presets[++n] = preset }
      time[preset, heads, tokens, batch] = $3
      rate[preset, heads, tokens, batch] = $6; copy[preset, heads, tokens, batch] = $11
    }
    function ratio(preset, heads, tokens, batch) {
      if (!((preset, heads, tokens, batch) in time)) return "-"
      if (!(("fp16", heads, tokens, batch) in time)) return "-"
      return sprintf("%.2f", time["fp16", heads, tokens, batch] / time[preset, heads, tokens, batch])
    }
    function row(preset, heads, batch,    k, p) {
      if (!((preset, heads, 32768, batch) in time)) return
      k = preset SUBSEP heads SUBSEP 32768 SUBSEP batch
      p = "-"
      if (heads == "8/32" && (preset, 32768, batch) in predicted) {
        p = sprintf("%.1f", predicted[preset, 32768, batch])
      }
      printf "%-14s %-6s %5d %10.1f %8.0f %6.0f%% %7s %10s\n", preset, heads, batch, time[k],
             rate[k] * 1e-9, 100 * copy[k], ratio(preset, heads, 32768, batch), p
    }
    END {
      printf "\n%-14s %-6s %5s %10s %8s %7s %7s %10s\n", "attention", "heads", "batch", "us", "GB/s",
             "copy", "x fp16", "predicted"
      for (i = 1; i <= n; ++i) for (b = 1; b <= 32; ++b) row(presets[i], "8/32", b)
      for (i = 1; i <= n; ++i) row(presets[i], "32/32", 8)
      for (i = 1; i <= n; ++i) row(presets[i], "8/64", 8)
      for (i = 1; i <= n; ++i) row(presets[i], "4/64", 8)
      printf "\n%-14s %5s", "x fp16, 8/32", "batch"
      for (t = 512; t <= 131072; t *= 2) printf " %7d", t
      print ""
      for (b = 1; b <= 32; ++b) for (i = 1; i <= n; ++i) {
        if (!((presets[i], "8/32", 512, b) in time) || presets[i] == "fp16") continue
        printf "%-14s %5d", presets[i], b
        for (t = 512; t <= 131072; t *= 2) printf " %7s", ratio(presets[i], "8/32", t, b)
        print ""
      }
    }' $model attention.csv
}

# measure SECONDS NAME: the benchmark NAME_cuda_bench, to NAME.csv and NAME.txt.
measure() {
  local code=0
  rm -f "$2.csv"
  timeout "$1" "./$2_cuda_bench" --require-device --benchmark_out="$2.csv" \
    --benchmark_out_format=csv >"$2.txt" 2>&1 || code=$?
  ((code == 0)) || echo "$2_cuda_bench ended with exit status $code after at most $1 s; see $2.txt"
}

# A small set of tests under the memory checker, where a CUDA toolkit has put one.
check_memory() {
  local tool
  tool=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null) ||
    { echo "compute-sanitizer is not here" && return; }
  if timeout 80 "${tool%%$'\n'*}" --error-exitcode 9 ./cuda_test "[small]" >memory.txt 2>&1; then
    echo "passed"
  else
    echo "FAILED (exit status $?, see memory.txt)"
  fi
}

run() {
  cd "$(dirname "${BASH_SOURCE[0]}")"
  local code=0 tests=passed memory
  timeout 100 ./cuda_test || code=$?
  if ((code == 77)); then
    echo "Nothing was run: on_gpu.sh run needs a CUDA device."
    exit 77
  fi
  ((code == 0)) || tests="FAILED (exit status $code)"
  memory=$(check_memory)
  measure 110 gemv
  measure 170 attention
  grep -h -m 1 copy_gbytes gemv.txt attention.txt || true
  [[ ! -s gemv.csv ]] || gemv_table
  [[ ! -s attention.csv ]] || attention_table
  echo "Tests $tests; memory checker: $memory"
  [[ $tests == passed && $memory != FAILED* ]]
}

case ${1:-} in
  pack) (($# == 2 || $# == 3)) || { usage >&2 && exit 2; } && pack "${@:2}" ;;
  run) run ;;
  help | -h | --help) usage ;;
  *) usage >&2 && exit 2 ;;
esac
