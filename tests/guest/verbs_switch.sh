# Creates $HOSTS RDMA devices of the kernel (Soft-RoCE) behind a switch in one guest: rx0, rx1, ..., with the addresses
# 10.0.0.1, 10.0.0.2, ... Each device is on the end v<i> of a pair of interfaces. The end p<i> of the pair is a port of
# a bridge in the network namespace "switch", where ports can have queueing disciplines. As in verbs_network.sh, all
# devices are in the initial network namespace, and routing rules make the packets between them leave this namespace.
set -eu
MTU=${MTU:-1500}
hosts=$(seq 0 $((${HOSTS:-3} - 1)))

ip netns add switch
switch() { ip netns exec switch "$@"; }
switch ip link add bridge mtu "$MTU" type bridge mcast_snooping 0
switch ip link set bridge up
echo 1 >/proc/sys/net/ipv4/conf/all/accept_local
echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter
# An interface answers ARP requests only for its own addresses.
echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore
for i in $hosts; do
  ip link add v$i mtu "$MTU" type veth peer name p$i mtu "$MTU" netns switch
  echo 1 >/proc/sys/net/ipv4/conf/v$i/accept_local
  echo 0 >/proc/sys/net/ipv4/conf/v$i/rp_filter
  echo 1 >/proc/sys/net/ipv6/conf/v$i/disable_ipv6
  ip addr add 10.0.0.$((i + 1))/24 dev v$i
  ip link set v$i up
  switch ip link set p$i master bridge up
done
# The kernel must apply these rules before the table of local addresses, which would keep all packets inside the host.
for i in $hosts; do
  for j in $hosts; do
    [ $i != $j ] || continue
    ip route add 10.0.0.$((j + 1)) dev v$i src 10.0.0.$((i + 1)) table $((101 + i))
    ip rule add pref 1 iif lo from 10.0.0.$((i + 1)) to 10.0.0.$((j + 1)) lookup $((101 + i))
  done
done
ip rule add pref 32000 lookup local
ip rule del pref 0
for i in $hosts; do rdma link add rx$i type rxe netdev v$i; done

# bottleneck PORT RATE [DISCIPLINE...]: limits the rate at which the switch sends on PORT, and sets the discipline of
# its queue.
bottleneck() {
  port=$1 rate=$2
  shift 2
  switch tc qdisc replace dev "$port" root handle 1: tbf rate "$rate" burst 5000 limit 200000
  switch tc qdisc replace dev "$port" parent 1:1 handle 10: "$@"
}
