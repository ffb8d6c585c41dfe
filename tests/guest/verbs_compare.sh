# Runs in a guest, for verbs_compare.py. Runs ROUNDS rounds over the same two devices of rdma_rxe. In each round, these
# programs run one after another: perftest's ib_send_bw over UD and rdma-core's ibv_ud_pingpong, which have neither
# acknowledgements nor recovery; mltcp perf; port_bench, if it is installed; UCX with the transports in $UCX. TESTS
# selects latency or bandwidth. If SLEEP is 1, all programs sleep while idle. If SLEEP is not 1, they spin. Prints a
# line per value: name, bytes, value.
. /root/verbs_network.sh
if [ "${SLEEP:-0}" = 1 ]; then events=-e idle=sleep wait=sleep; else events='' idle=spin wait=poll; fi
say() { echo "measured $*"; }

# server COMMAND...: starts a server. $server is its process ID.
server() {
  "$@" >/tmp/server 2>&1 &
  server=$!
  sleep 0.5
}
# ended NAME: ends a server that still waits for packets, and reports the loss. Its program never sends lost packets
# again.
ended() {
  for _ in $(seq 50); do
    kill -0 $server 2>/dev/null || break
    sleep 0.1
  done
  if kill $server 2>/dev/null; then say "$1-lost" 0 1; fi
  wait $server || true
}

send_bw() {
  server ib_send_bw -c UD $events -d rx1 -x 1 -s $1 -n $2
  ib_send_bw -c UD $events -d rx0 -x 1 -s $1 -n $2 10.0.0.2 >/tmp/client 2>&1 || true
  ended ib_send_bw
  # Uses the receiver's values if the receiver got all data, and the sender's values if not. Units: MiB/s, million/s.
  if ! grep -qE "^ *$1 " /tmp/server; then cp /tmp/client /tmp/server; say ib_send_bw-sender $1 1; fi
  awk -v size=$1 '$1 == size { print "measured ib_send_bw-bytes", size, $4 * 1048576; print "measured ib_send_bw-messages", size, $5 * 1e6 }' \
    /tmp/server
}
pingpong() {
  server ibv_ud_pingpong $events -d rx1 -g 1 -s $1 -n $2
  ibv_ud_pingpong $events -d rx0 -g 1 -s $1 -n $2 10.0.0.2 | awk -v size=$1 '/usec/ { print "measured ibv_ud_pingpong-us", size, $(NF - 1) }'
  ended ibv_ud_pingpong
}
perf() {
  server mltcp perf --listen --once --port verbs:rx1 --ip 10.0.0.2 --idle $idle 127.0.0.1:6000
  mltcp perf 127.0.0.1:6000 --port verbs:rx0 --ip 10.0.0.1 --idle $idle --tests $3 --min $1B --max $1B --for $2 \
    --json /out/perf.$round.$3.$1.json >/tmp/client 2>&1 || cat /tmp/client
  wait $server || true
}
# Measures the transport in one thread, as in ibv_ud_pingpong. port_bench uses no endpoint, so that no second thread
# must be woken.
ping() {
  command -v port_bench >/dev/null || return 0
  server port_bench serve --echo --device verbs:rx1 --address 10.0.0.2 --idle $idle --size $1
  port_bench ping --device verbs:rx0 --address 10.0.0.1 --peer 10.0.0.2 --idle $idle --size $1 --seconds $2 --warm-up 0.1 |
    sed -n "s/.*\"messages_per_second\":\([0-9.]*\).*/measured ping-per-second $1 \1/p"
  wait $server || true
}
ucx() { # ucx TEST BYTES COUNT TRANSPORT
  command -v ucx_perftest >/dev/null || return 0
  export UCX_TLS=$4 UCX_IB_GID_INDEX=1 UCX_WARN_UNUSED_ENV_VARS=n
  # -w sets the warm-up. -f prints only the last line, which contains: "Final:", a count, three durations in us, two
  # rates in MB/s, two rates in messages per second.
  UCX_NET_DEVICES=rx1:1 server ucx_perftest -t $1 -s $2 -n $3 -w 100 -E $wait
  UCX_NET_DEVICES=rx0:1 timeout 60 ucx_perftest 127.0.0.1 -t $1 -s $2 -n $3 -w 100 -E $wait -f >/tmp/client 2>&1 || cat /tmp/client
  # Accepts only lines that contain nothing but numbers, because the lines of a backtrace also begin with a number.
  awk -v what="ucx-$4-$1" -v size=$2 '/^ *[0-9]+( +[0-9.]+)+ *$/ { print "measured", what, size, $0 }' /tmp/client
  grep -m 3 -E 'ERROR|FATAL|Caught|Assertion|==== backtrace' /tmp/client | sed "s/^/UCX, $4: /" || true
  ended ucx
}

for round in $(seq ${ROUNDS:-3}); do
  if [ ${TESTS:-all} != latency ]; then
    send_bw 64 ${MESSAGES:-3000}
    perf 64 500ms out
    send_bw 4096 ${MESSAGES:-3000}
    perf 1048576 500ms out
  fi
  if [ ${TESTS:-all} != bandwidth ]; then
    pingpong 64 ${MESSAGES:-3000}
    ping 64 0.5
    perf 64 500ms latency
  fi
  for transport in ${UCX:-}; do
    [ ${TESTS:-all} = bandwidth ] || ucx tag_lat 64 1000 $transport
    [ ${TESTS:-all} != latency ] || continue
    ucx tag_bw 64 3000 $transport
    ucx tag_bw 1048576 20 $transport
  done
done
