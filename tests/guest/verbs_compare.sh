# Side by side over the same two devices of rdma_rxe, in turns, ROUNDS times: perftest's ib_send_bw over UD and rdma-core's
# ibv_ud_pingpong, which have neither acknowledgements nor recovery, and mltcp perf. For tests/guest/lab, see
# docs/verbs.md.
. /root/verbs_network.sh
SIZES=${SIZES:-"64 1024 4000"}
for round in $(seq ${ROUNDS:-3}); do
  for size in $SIZES; do
    ib_send_bw -c UD -d rx1 -x 1 -s $size -n 3000 >/tmp/server 2>&1 &
    sleep 0.5
    ib_send_bw -c UD -d rx0 -x 1 -s $size -n 3000 10.0.0.2 2>/dev/null | awk -v size=$size \
      '$1 == size { printf "ib_send_bw -c UD, %d bytes: %.2f MB/s, %.0f messages/s\n", size, $4 * 1.048576, $5 * 1e6 }'
    wait $!
  done
  ibv_ud_pingpong -d rx1 -g 1 -s 64 -n 1000 >/tmp/server 2>&1 &
  sleep 0.5
  ibv_ud_pingpong -d rx0 -g 1 -s 64 -n 1000 10.0.0.2 | awk '/usec/ { print "ibv_ud_pingpong, 64 bytes: " $7 " us round trip" }'
  wait $!
  mltcp perf --listen --once --port verbs:rx1 --ip 10.0.0.2 --idle spin 127.0.0.1:6000 >/tmp/server 2>&1 &
  mltcp perf 127.0.0.1:6000 --port verbs:rx0 --ip 10.0.0.1 --idle spin --tests latency,out --least 64B --most 1MB \
    --factor 16 --for 500ms
  wait $!
done
