# Tests ports on verbs in a guest (tests/guest/verbs_test.py): the programs run, and print the expected error messages.
. /root/verbs_network.sh

# must_say NAME TEXT COMMAND...: checks that the command fails and prints TEXT.
must_say() {
  name=$1 text=$2
  shift 2
  if "$@" >/tmp/said 2>&1; then
    echo "FAILED: $name: no error"
    exit 1
  fi
  grep -qF "$text" /tmp/said || { echo "FAILED: $name: $(cat /tmp/said)"; exit 1; }
  [ "$(wc -l </tmp/said)" = 1 ] || { echo "FAILED: $name: more than a line: $(cat /tmp/said)"; exit 1; }
  echo "ok: $name"
}

rdma_guest_test --gtest_brief=1

must_say 'no such device' 'there is no such RDMA device; write verbs:DEVICE with one that there is: rx0, rx1' \
  mltcp perf --listen --once --port verbs:nosuch --ip 10.0.0.1 127.0.0.1:6000
must_say 'another address' 'none of its GIDs is 10.0.0.7, but ' \
  mltcp perf --listen --once --port verbs:rx0 --ip 10.0.0.7 127.0.0.1:6000

mltcp doctor --port verbs:rx0 >/tmp/doctor || { cat /tmp/doctor; exit 1; }
grep RDMA /tmp/doctor
grep 'port verbs:rx0' /tmp/doctor

# Measures latency and bandwidth with mltcp perf.
mltcp perf --listen --once --port verbs:rx1 --ip 10.0.0.2 127.0.0.1:6000 &
mltcp perf 127.0.0.1:6000 --port verbs:rx0 --ip 10.0.0.1 --tests latency,out --min 64B --max 1MB --factor 128 --for 100ms
wait $!
echo 'ok: perf'

# Sends random traffic that verifies itself, in rounds with faults, restarts and new keys.
mltcp soak --port verbs:rx0 --ip 10.0.0.1/24 --port verbs:rx1 --ip 10.0.0.2/24 --duration "$SOAK" >/tmp/soak ||
  { cat /tmp/soak; exit 1; }
cat /tmp/soak
echo 'ok: soak'

# Runs an experiment on two hosts.
cat >/tmp/pair.toml <<'END'
iterations = 3
cc = "dctcp"
[bottleneck]
rate   = "50 Mbps"
buffer = "250 kB"
ecn    = { kmin = "60 kB", kmax = "60 kB", pmax = 1.0 }
[[job]]
name        = "a"
compute     = "20 ms"
communicate = "200 kB"
END
mltcp gen /tmp/pair.toml --serve unix:/tmp/pair --policy fair --json /out/pair.json >/tmp/gen 2>&1 &
coordinator=$!
mltcp gen --join unix:/tmp/pair --port verbs:rx0 --ip 10.0.0.1/24 --host 0 --idle sleep >/tmp/gen.0 2>&1 &
mltcp gen --join unix:/tmp/pair --port verbs:rx1 --ip 10.0.0.2/24 --host 1 --idle sleep >/tmp/gen.1 2>&1 &
wait $coordinator || { cat /tmp/gen /tmp/gen.0 /tmp/gen.1; exit 1; }
grep verified /tmp/gen
echo 'ok: gen'

# Runs all-reduces of two Gloo ranks.
if command -v guest_gloo_rank >/dev/null; then
  mkdir /tmp/gloo
  MLTCP_DEVICE=verbs:rx0 MLTCP_ADDRESS=10.0.0.1 guest_gloo_rank /tmp/gloo 0 2 &
  rank=$!
  MLTCP_DEVICE=verbs:rx1 MLTCP_ADDRESS=10.0.0.2 guest_gloo_rank /tmp/gloo 1 2
  wait $rank
  echo 'ok: gloo'
fi

# start_load PORT: starts a server and a client under load, and waits until packets are in flight. $server and $client
# are their process IDs.
start_load() {
  mltcp perf --listen --once --port verbs:rx1 --ip 10.0.0.2 127.0.0.1:$1 >/tmp/server 2>&1 &
  server=$!
  : >/tmp/client
  mltcp perf 127.0.0.1:$1 --port verbs:rx0 --ip 10.0.0.1 --tests out --min 1MB --max 1MB --for 60s --limit 90s \
    --wait 60s >/tmp/client 2>&1 &
  client=$!
  tries=0
  until grep -q '^there: ' /tmp/client; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || { echo "FAILED: no load: $(cat /tmp/client /tmp/server)"; exit 1; }
    sleep 0.1
  done
  sleep 0.3
}

# When a server is killed, the client notices and reports it.
start_load 6001
kill -9 $server
if wait $client; then
  echo 'FAILED: a killed peer was not missed'
  exit 1
fi
tail -n 1 /tmp/client
echo 'ok: kill'

# When the network interface of a device is removed, the connections of the device end by their time limits.
start_load 6002
ip link del v0
if wait $client; then
  echo 'FAILED: a device that is gone was not missed'
  exit 1
fi
wait $server || true
tail -n 1 /tmp/client
tail -n 1 /tmp/server
echo 'ok: device gone'
must_say 'no device left' 'this machine has no RDMA device' \
  mltcp perf --listen --once --port verbs:rx0 --ip 10.0.0.1 127.0.0.1:6000
echo 'all is well'
