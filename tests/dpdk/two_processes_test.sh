#!/usr/bin/env bash
# Tests two processes of examples/two_processes over memif and over kernel sockets. Neither needs privileges.
#
#   two_processes_test.sh PROGRAM
set -eu
program=$1
folder=$(mktemp -d)
receiver=
end() {
  [ -z "$receiver" ] || kill "$receiver" 2>/dev/null || true
  rm -rf "$folder"
}
trap end EXIT

# Arguments: the receiver's device and address, then the sender's device and address.
talk() {
  "$program" receive "$1" "$2" >"$folder/received" 2>&1 &
  receiver=$!
  for _ in $(seq 100); do
    grep -q ready "$folder/received" && break
    kill -0 "$receiver" 2>/dev/null || break
    sleep 0.1
  done
  local status=0
  "$program" send "$3" "$4" "${2%/*}" || status=$?
  wait "$receiver" || status=$?
  receiver=
  cat "$folder/received"
  grep -q 'received 100 messages, 0 bytes of them wrong' "$folder/received"
  [ "$status" = 0 ]
}
talk "memif:$folder/m.sock,role=server" 10.0.0.1/24 "memif:$folder/m.sock,role=client" 10.0.0.2/24
talk udp: 127.0.0.1/8 udp:lo 127.0.0.2/8

# Checks that the program reports errors in its arguments in one line.
says() {
  local text=$1 message
  shift
  message=$("$program" "$@" 2>&1) && { echo "two_processes $* did not fail"; exit 1; }
  [[ $message == *"$text"* ]] || { echo "two_processes $* says: $message"; exit 1; }
}
says 'no IP address' receive ring:loop ten/24
says 'no prefix length' receive ring:loop 10.0.0.1
says 'is no port; give 0 to 65535' send ring:loop 10.0.0.2/24 10.0.0.1:http
