#!/bin/bash
# Tests the all-reduces of an MPI program, first over MPI itself and then over MLTCP. The two runs differ only in a
# preloaded library.
#
#   mpi_all_reduce_test.sh MPIRUN TRAIN OVER_MLTCP
set -euo pipefail
mpirun=$1 train=$2 over=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
run() {
  timeout 120 "$mpirun" --oversubscribe "$@" < /dev/null > "$folder/out" 2> "$folder/errors"
}
failed=0
fail() {
  echo "$1:"
  cat "$folder/out" "$folder/errors"
  failed=1
}
for ranks in 2 3; do
  run -n $ranks "$train" || fail "MPI itself"
  [ "$(grep -c 'all sums right' "$folder/out")" -eq $ranks ] || fail "MPI itself, $ranks ranks"
  ! grep -q MLTCP "$folder/out" || fail "MLTCP without having been asked"
  run -n $ranks -x LD_PRELOAD="$over" "$train" || fail "over MLTCP"
  [ "$(grep -c 'all sums right' "$folder/out")" -eq $ranks ] || fail "over MLTCP, $ranks ranks"
  grep -q "all-reduces of $ranks ranks run over MLTCP" "$folder/out" || fail "not over MLTCP, $ranks ranks"
done
# With a wrong device, the program ends and reports the cause. It does not hang.
if run -n 2 -x LD_PRELOAD="$over" -x MLTCP_DEVICE=udp:eth99 "$train"; then fail "a wrong interface was taken"; fi
grep -q 'endpoint: .*eth99' "$folder/errors" || fail "a wrong interface was not named"
exit $failed
