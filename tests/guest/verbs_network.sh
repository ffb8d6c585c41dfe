# Creates two RDMA devices of the kernel (Soft-RoCE), rx0 and rx1, in one guest, on the ends v0 and v1 of a pair of
# interfaces. Packets between the devices pass through the pair and its queueing disciplines, although both addresses
# are local. Devices in namespaces would be simpler, but rdma_rxe of Linux 6.1 receives packets only in the initial
# network namespace.
set -eu
MTU=${MTU:-4200}

cat >/usr/local/bin/tests_restore_network <<'END'
#!/bin/sh
# Restores settings that are lost when an interface goes down: routes and IPv6 addresses.
ip -6 addr add fd00::1/64 dev v0 nodad 2>/dev/null
ip -6 addr add fd00::2/64 dev v1 nodad 2>/dev/null
ip route replace 10.0.0.2 dev v0 src 10.0.0.1 table 101
ip route replace 10.0.0.1 dev v1 src 10.0.0.2 table 102
ip -6 route replace fd00::2 dev v0 src fd00::1 table 101
ip -6 route replace fd00::1 dev v1 src fd00::2 table 102
END
chmod +x /usr/local/bin/tests_restore_network

ip link add v0 mtu "$MTU" type veth peer name v1 mtu "$MTU"
ip addr add 10.0.0.1/24 dev v0
ip addr add 10.0.0.2/24 dev v1
for interface in all v0 v1; do
  echo 1 >/proc/sys/net/ipv4/conf/$interface/accept_local
  echo 0 >/proc/sys/net/ipv4/conf/$interface/rp_filter
done
ip link set v0 up
ip link set v1 up
tests_restore_network
# The kernel must apply these rules before the table of local addresses, which would keep all packets inside the host.
for version in -4 -6; do
  [ $version = -4 ] && a=10.0.0.1 b=10.0.0.2 || a=fd00::1 b=fd00::2
  ip $version rule add pref 1 iif lo from $a to $b lookup 101
  ip $version rule add pref 1 iif lo from $b to $a lookup 102
  ip $version rule add pref 32000 lookup local
  ip $version rule del pref 0
done
rdma link add rx0 type rxe netdev v0
rdma link add rx1 type rxe netdev v1
