#!/bin/bash
# A ring of as many ranks as commands are given, each with its own.
#
#   ring_test.sh COMMAND...
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
pids=()
rank=0
for command in "$@"; do
  timeout 120 $command $rank $# 127.0.0.1 "$folder" > "$folder/said.$rank" 2>&1 &
  pids+=($!)
  rank=$((rank + 1))
done
failed=0
for rank in "${!pids[@]}"; do
  wait "${pids[$rank]}" || failed=1
  cat "$folder/said.$rank"
  grep -q "rank $rank of $#: 3 iterations, all sums right" "$folder/said.$rank" || failed=1
done
exit $failed
