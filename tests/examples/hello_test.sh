#!/bin/bash
# A hello that waits, and one that connects by what the first has printed.
#
#   hello_test.sh WAITING-COMMAND CONNECTING-COMMAND
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
timeout 60 $1 127.0.0.1 > "$folder/said" 2> "$folder/errors" &
waiting=$!
for _ in $(seq 600); do
  [ -s "$folder/said" ] && break
  sleep 0.05
done
address=$(head -n 1 "$folder/said")
timeout 60 $2 127.0.0.1 "$address" > "$folder/other" || { echo "the connecting one failed: $(cat "$folder/other")"; exit 1; }
wait $waiting || { echo "the waiting one failed: $(cat "$folder/said" "$folder/errors")"; exit 1; }
[ "$(tail -n 1 "$folder/said")" = "hello, you there" ] || { cat "$folder/said"; exit 1; }
# And what is said where the address is none.
if timeout 60 $2 127.0.0.1 "${address:0:40}" > "$folder/other" 2>&1; then
  echo "an address that was cut off was taken"
  exit 1
fi
grep -q "address" "$folder/other"
