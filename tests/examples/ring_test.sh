#!/bin/bash
# Tests a ring with one rank per command.
#
#   ring_test.sh COMMAND...
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
first=$1
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
# Tests wrong arguments of the first command. Expects the given exit status and one line of error that matches the given
# pattern.
refused() {
  local expected=$1 line=$2 status=0
  shift 2
  timeout 60 $first "$@" > "$folder/other" 2> "$folder/errors" || status=$?
  if [ $status -ne "$expected" ] || [ -s "$folder/other" ] || [ "$(wc -l < "$folder/errors")" -ne 1 ] ||
    ! grep -qE "$line" "$folder/errors"; then
    echo "$first $*: exit status $status where $expected was expected, and one line like \"$line\":"
    cat "$folder/other" "$folder/errors"
    failed=1
  fi
}
refused 2 "RANK RANKS OWN-IP FOLDER"
refused 2 "RANK RANKS OWN-IP FOLDER" --help
for numbers in "a 2" "0 b" "0 1" "2 2" "-1 2" "0 1001" "0 2x" "0 99999999999999999999" " 2"; do
  refused 2 "RANK RANKS OWN-IP FOLDER" "${numbers% *}" "${numbers#* }" 127.0.0.1 "$folder"
done
refused 1 "^ring: .*elsewhere" 0 2 elsewhere "$folder"
refused 1 "^ring: .*/nowhere.*give a folder that all ranks share" 0 2 127.0.0.1 /nowhere
exit $failed
