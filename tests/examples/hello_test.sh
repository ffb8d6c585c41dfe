#!/bin/bash
# Tests two hello programs. The first one waits, and the second one connects to the address that the first one prints.
#
#   hello_test.sh WAITING-COMMAND CONNECTING-COMMAND
set -euo pipefail
waiter=$1
sender=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
timeout 60 $waiter 127.0.0.1 > "$folder/said" 2> "$folder/errors" &
waiting=$!
for _ in $(seq 600); do
  [ -s "$folder/said" ] && break
  sleep 0.05
done
address=$(head -n 1 "$folder/said")
timeout 60 $sender 127.0.0.1 "$address" > "$folder/other" || { echo "the connecting one failed: $(cat "$folder/other")"; exit 1; }
wait $waiting || { echo "the waiting one failed: $(cat "$folder/said" "$folder/errors")"; exit 1; }
[ "$(tail -n 1 "$folder/said")" = "hello, you there" ] || { cat "$folder/said"; exit 1; }
# The errors of the connecting program do not depend on the waiting program, so one combination is enough.
[ "$waiter" = "$sender" ] || exit 0
# Tests wrong arguments. Expects the given exit status and one line of error that matches the given pattern.
refused() {
  local expected=$1 line=$2 status=0
  shift 2
  timeout 60 $sender "$@" > "$folder/other" 2> "$folder/errors" || status=$?
  if [ $status -ne "$expected" ] || [ -s "$folder/other" ] || [ "$(wc -l < "$folder/errors")" -ne 1 ] ||
    ! grep -qE "$line" "$folder/errors"; then
    echo "$sender $*: exit status $status where $expected was expected, and one line like \"$line\":"
    cat "$folder/other" "$folder/errors"
    exit 1
  fi
}
refused 2 "OWN-IP waits"
refused 2 "OWN-IP waits" --help
refused 2 "OWN-IP waits" 127.0.0.1 "$address" more
refused 1 "^hello: .*elsewhere.*; " elsewhere
refused 1 "^hello: .*192.0.2.1.*; " 192.0.2.1
refused 1 "^hello: .*address.*; " 127.0.0.1 "${address:0:40}"
refused 1 "^hello: .*address.*; " 127.0.0.1 "${address:0:41}"
refused 1 "^hello: .*address.*; " 127.0.0.1 "${address}00"
refused 1 "^hello: .*; " 127.0.0.1 "${address%??}zz"
refused 1 "^hello: .*; " 127.0.0.1 nonsense
refused 1 "^hello: .*address.*; " 127.0.0.1 ""
# This address was valid, but its endpoint no longer exists.
refused 1 "^hello: .*; " 127.0.0.1 "$address"
