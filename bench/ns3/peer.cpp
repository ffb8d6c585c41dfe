// Runs ns-3 (3.37) in the comparison with MLTCP: the same dumbbell, jobs and options as ours.cpp, over ns-3's TCP. The
// script bench/ns3/compare compiles this program with Debian's packages. The program is not a part of MLTCP.
//
// Settings that make both sides equivalent (docs/explanation/ns3.md gives the reasons): packets of 1514 bytes on the
// wire, an initial window of 10, SACK, an acknowledgement for every second packet and after 100 us at the latest. The
// buffer of our bottleneck includes the packet that is being sent, but the queues of ns-3 do not. So the thresholds in
// this program are one packet lower than ours.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace {

constexpr std::uint32_t kPayloadBytes = 1472;  // plus headers of 20 (TCP), 20 (IP) and 2 (PPP) bytes: 1514 on the wire
constexpr std::uint32_t kWireBytes = 1514;
constexpr std::uint32_t kSendBuffer = 8 << 20;
constexpr std::uint32_t kPiece = 64 * kPayloadBytes;
constexpr std::int64_t kBinNs = 1'000'000;
const Time epoch = MilliSeconds(1000);  // time at which all connections are open

std::uint64_t packet_hops = 0;

/// A congestion control of ns-3 that restarts after an idle time, like MLTCP's algorithms. It restarts from the initial
/// window, with slow start up to 3/4 of the old window (RFC 5681 section 4.1, RFC 2861 section 3). ns-3 itself does not
/// reduce the window.
template <class Base>
class Restarting : public Base {
 public:
  static TypeId GetTypeId() {
    static const TypeId id = TypeId("ns3::Restarting" + Base::GetTypeId().GetName().substr(5))
                                 .template SetParent<Base>()
                                 .template AddConstructor<Restarting<Base>>();
    return id;
  }
  void PktsAcked(Ptr<TcpSocketState> state, std::uint32_t segments, const Time& rtt) override {
    last_ack_ = Simulator::Now();
    Base::PktsAcked(state, segments, rtt);
  }
  void CwndEvent(Ptr<TcpSocketState> state, const TcpSocketState::TcpCAEvent_t event) override {
    if (event == TcpSocketState::CA_EVENT_TX_START && last_ack_ > Time(0) && Simulator::Now() - last_ack_ > idle) {
      state->m_ssThresh = std::max(state->m_ssThresh.Get(), state->m_cWnd.Get() / 4 * 3);
      state->m_cWnd = std::min(state->m_cWnd.Get(), 10 * state->m_segmentSize);
    }
    Base::CwndEvent(state, event);
  }
  Ptr<TcpCongestionOps> Fork() override { return CopyObject<Restarting<Base>>(this); }

 private:
  const Time idle = MilliSeconds(1);
  Time last_ack_;
};

template <class Base>
TypeId Choose(bool restarting) {
  return restarting ? Restarting<Base>::GetTypeId() : Base::GetTypeId();
}

/// A training job: repeatedly computes, sends a burst, and waits until all of it is acknowledged. If the burst has 0
/// bytes, the job is a bulk flow, which sends forever.
class Job : public Application {
 public:
  Address peer;
  Time start;
  Time compute;
  std::uint64_t burst = 0;  // bytes; 0: sends forever
  std::vector<std::int64_t> iteration_ns;
  std::uint64_t retransmitted = 0;

  void StartApplication() override {
    socket_ = Socket::CreateSocket(GetNode(), TcpSocketFactory::GetTypeId());
    socket_->Bind();
    socket_->Connect(peer);
    socket_->SetSendCallback(MakeCallback(&Job::OnSpace, this));
    socket_->TraceConnectWithoutContext("Tx", MakeCallback(&Job::OnTx, this));
    Simulator::Schedule(epoch + start - Simulator::Now(), &Job::BeginIteration, this);
  }
  void StopApplication() override {}

 private:
  void BeginIteration() {
    began_ = Simulator::Now();
    Simulator::Schedule(compute, &Job::BeginBurst, this);
  }
  void BeginBurst() {
    sending_ = true;
    left_ = burst == 0 ? ~std::uint64_t{0} : burst;
    Fill();
  }
  void Fill() {
    while (left_ > 0) {
      const auto size = static_cast<std::uint32_t>(std::min<std::uint64_t>(left_, kPiece));
      if (socket_->GetTxAvailable() < size) return;
      socket_->Send(Create<Packet>(size));
      if (burst != 0) left_ -= size;
    }
  }
  void OnSpace(Ptr<Socket>, std::uint32_t available) {
    if (!sending_) return;
    Fill();
    if (left_ > 0 || available < kSendBuffer) return;
    sending_ = false;
    iteration_ns.push_back((Simulator::Now() - began_).GetNanoSeconds());
    BeginIteration();
  }
  void OnTx(Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase>) {
    if (packet->GetSize() == 0) return;
    if (header.GetSequenceNumber() < highest_) ++retransmitted;
    highest_ = std::max(highest_, header.GetSequenceNumber() + packet->GetSize());
  }

  Ptr<Socket> socket_;
  Time began_;
  bool sending_ = false;
  std::uint64_t left_ = 0;
  SequenceNumber32 highest_{0};
};

/// Receives all data that arrives on a port.
class Sink : public Application {
 public:
  std::uint16_t port = 0;
  std::uint64_t bytes = 0;

  void StartApplication() override {
    socket_ = Socket::CreateSocket(GetNode(), TcpSocketFactory::GetTypeId());
    socket_->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
    socket_->Listen();
    socket_->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                               MakeCallback(&Sink::OnAccept, this));
  }
  void StopApplication() override {}

 private:
  void OnAccept(Ptr<Socket> socket, const Address&) { socket->SetRecvCallback(MakeCallback(&Sink::OnReceive, this)); }
  void OnReceive(Ptr<Socket> socket) {
    while (Ptr<Packet> packet = socket->Recv()) bytes += packet->GetSize();
  }
  Ptr<Socket> socket_;
};

/// Records the queue of the bottleneck and the counters.
struct Monitor {
  Ptr<Queue<Packet>> device_queue;
  Ptr<QueueDisc> disc;
  std::uint32_t in_transmission = 0;
  std::uint64_t dropped = 0;
  std::vector<std::uint32_t> queue;
  std::vector<std::pair<std::int64_t, std::uint64_t>> drops;
  std::uint64_t dropped_before = 0;
  std::vector<std::vector<std::uint64_t>> bins;  // bytes of each flow in each interval of kBinNs

  void OnBegin(Ptr<const Packet> packet) { in_transmission = packet->GetSize(); }
  void OnEnd(Ptr<const Packet>) { in_transmission = 0; }
  void OnDrop(Ptr<const Packet>) { ++dropped; }
  void OnDiscDrop(Ptr<const QueueDiscItem>) { ++dropped; }
  void OnHop(Ptr<const Packet>) { ++packet_hops; }
  void Arrived(std::size_t flow, std::uint32_t bytes) {
    const std::int64_t since = (Simulator::Now() - epoch).GetNanoSeconds();
    if (since < 0) return;
    const auto index = static_cast<std::size_t>(since / kBinNs);
    if (bins[flow].size() <= index) bins[flow].resize(index + 1);
    bins[flow][index] += bytes;
  }
  void Sample(Time interval) {
    std::uint32_t bytes = in_transmission + device_queue->GetNBytes();
    if (disc) bytes += disc->GetNBytes();
    queue.push_back(bytes);
    if (dropped > dropped_before)
      drops.emplace_back((Simulator::Now() - epoch).GetNanoSeconds(), dropped - dropped_before);
    dropped_before = dropped;
    Simulator::Schedule(interval, &Monitor::Sample, this, interval);
  }
};

Monitor monitor;

/// Counts the bytes that arrive over the last link to a receiver.
struct FlowTrace {
  std::size_t flow;
  void OnArrival(Ptr<const Packet> packet) { monitor.Arrived(flow, packet->GetSize()); }
};

std::string Bps(double mbps) { return std::to_string(static_cast<std::uint64_t>(mbps * 1e6)) + "bps"; }

}  // namespace

int main(int argc, char** argv) {
  std::string cc = "reno", starts = "0", queue_kind;
  double rate_mbps = 1000, delay_us = 10, access_delay_us = 5, compute_ms = 0, duration_ms = 1000, sample_us = 20;
  double cubic_c = 0.4;
  std::uint32_t buffer = 75'000, ecn = 0, packets = 0, iterations = 0, ack_every = 2;
  bool pacing = false, idle_restart = false, prr = true;
  CommandLine command;
  command.AddValue("cc", "reno, linux-reno, cubic or dctcp", cc);
  command.AddValue("rate-mbps", "of the bottleneck", rate_mbps);
  command.AddValue("delay-us", "of the bottleneck", delay_us);
  command.AddValue("access-delay-us", "of each access link", access_delay_us);
  command.AddValue("buffer", "bytes, the packet being sent included", buffer);
  command.AddValue("ecn", "packets that find more bytes than this are marked; 0: no ECN", ecn);
  command.AddValue("starts-ms", "start of each flow or job", starts);
  command.AddValue("compute-ms", "before each burst of a job", compute_ms);
  command.AddValue("packets", "full packets of payload in each burst of a job; 0: bulk flows", packets);
  command.AddValue("iterations", "of each job", iterations);
  command.AddValue("duration-ms", "of bulk flows", duration_ms);
  command.AddValue("sample-us", "interval of the queue's samples; 0: none", sample_us);
  command.AddValue("pacing", "pace every packet, at 1.25 windows per round trip (2 in slow start)", pacing);
  command.AddValue("idle-restart", "slow start after an idle time", idle_restart);
  command.AddValue("prr", "proportional rate reduction; otherwise windows are reduced at once", prr);
  command.AddValue("ack-every", "packets per acknowledgement", ack_every);
  command.AddValue("cubic-c", "CUBIC's C, in packets / s^3", cubic_c);
  command.Parse(argc, argv);

  const std::map<std::string, TypeId> types{{"reno", Choose<TcpNewReno>(idle_restart)},
                                            {"linux-reno", Choose<TcpLinuxReno>(idle_restart)},
                                            {"cubic", Choose<TcpCubic>(idle_restart)},
                                            {"dctcp", Choose<TcpDctcp>(idle_restart)}};
  if (types.count(cc) == 0) {
    std::cerr << "peer: --cc is " << cc << "; give reno, linux-reno, cubic or dctcp\n";
    return 1;
  }
  Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(types.at(cc)));
  if (!prr) Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TcpClassicRecovery::GetTypeId()));
  Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(kPayloadBytes));
  Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
  Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(ack_every));
  Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MicroSeconds(100)));
  Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(kSendBuffer));
  Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(kSendBuffer));
  Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
  // ns-3's clock for timestamps has a resolution of 1 ms, more than a round-trip time here.
  Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
  Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(1)));
  Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MicroSeconds(200)));
  Config::SetDefault("ns3::TcpSocketState::EnablePacing", BooleanValue(pacing));
  Config::SetDefault("ns3::TcpSocketState::PacingCaRatio", UintegerValue(125));
  Config::SetDefault("ns3::TcpSocketState::MaxPacingRate", StringValue(Bps(rate_mbps * 10)));
  Config::SetDefault("ns3::TcpCubic::C", DoubleValue(cubic_c));

  std::vector<double> start_ms;
  std::stringstream list(starts);
  for (std::string item; std::getline(list, item, ',');) start_ms.push_back(std::stod(item));

  Ptr<Node> left = CreateObject<Node>();
  Ptr<Node> right = CreateObject<Node>();
  NodeContainer senders, receivers;
  senders.Create(static_cast<std::uint32_t>(start_ms.size()));
  receivers.Create(static_cast<std::uint32_t>(start_ms.size()));
  InternetStackHelper stack;
  stack.Install(NodeContainer(left, right));
  stack.Install(senders);
  stack.Install(receivers);

  PointToPointHelper access;
  access.SetDeviceAttribute("DataRate", StringValue(Bps(rate_mbps * 10)));
  access.SetDeviceAttribute("Mtu", UintegerValue(kWireBytes));  // an MTU of 1500 would fragment every packet
  access.SetChannelAttribute("Delay", TimeValue(NanoSeconds(std::llround(access_delay_us * 1e3))));
  access.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000000p"));
  access.DisableFlowControl();
  PointToPointHelper shared;
  shared.SetDeviceAttribute("DataRate", StringValue(Bps(rate_mbps)));
  shared.SetDeviceAttribute("Mtu", UintegerValue(kWireBytes));
  shared.SetChannelAttribute("Delay", TimeValue(NanoSeconds(std::llround(delay_us * 1e3))));
  // With marking, the queue is a queue disc above a device queue of one packet. Without marking, the device queue is
  // the only one.
  if (ecn == 0) {
    shared.SetQueue("ns3::DropTailQueue", "MaxSize",
                    QueueSizeValue(QueueSize(QueueSizeUnit::BYTES, buffer - kWireBytes)));
    shared.DisableFlowControl();
  } else {
    shared.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));
  }
  NetDeviceContainer trunk = shared.Install(left, right);
  if (ecn > 0) {
    const std::uint32_t below = 2 * kWireBytes;  // one packet that is being sent, and one in the device queue
    TrafficControlHelper red;
    red.SetRootQueueDisc("ns3::RedQueueDisc", "UseEcn", BooleanValue(true), "UseHardDrop", BooleanValue(false),
                         "Gentle", BooleanValue(false), "QW", DoubleValue(1), "MeanPktSize", UintegerValue(1500),
                         "MinTh", DoubleValue(ecn - below), "MaxTh", DoubleValue(ecn - below), "LinkBandwidth",
                         StringValue(Bps(rate_mbps)), "MaxSize",
                         QueueSizeValue(QueueSize(QueueSizeUnit::BYTES, buffer - below)));
    monitor.disc = red.Install(trunk.Get(0)).Get(0);
    monitor.disc->TraceConnectWithoutContext("Drop", MakeCallback(&Monitor::OnDiscDrop, &monitor));
  }
  const Ptr<PointToPointNetDevice> bottleneck = DynamicCast<PointToPointNetDevice>(trunk.Get(0));
  monitor.device_queue = bottleneck->GetQueue();
  bottleneck->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&Monitor::OnBegin, &monitor));
  bottleneck->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&Monitor::OnEnd, &monitor));
  if (ecn == 0) monitor.device_queue->TraceConnectWithoutContext("Drop", MakeCallback(&Monitor::OnDrop, &monitor));
  monitor.bins.resize(start_ms.size());

  Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
  addresses.Assign(trunk);
  std::vector<Ptr<Job>> jobs;
  std::vector<Ptr<Sink>> sinks;
  std::vector<FlowTrace> traces(start_ms.size());
  NetDeviceContainer devices(trunk);
  for (std::uint32_t i = 0; i < start_ms.size(); ++i) {
    addresses.NewNetwork();
    const NetDeviceContainer from = access.Install(senders.Get(i), left);
    addresses.Assign(from);
    addresses.NewNetwork();
    const NetDeviceContainer to = access.Install(right, receivers.Get(i));
    const Ipv4InterfaceContainer interfaces = addresses.Assign(to);
    devices.Add(from);
    devices.Add(to);
    traces[i].flow = i;
    to.Get(1)->TraceConnectWithoutContext("PhyRxEnd", MakeCallback(&FlowTrace::OnArrival, &traces[i]));

    const Ptr<Sink> sink = CreateObject<Sink>();
    sink->port = 4793;
    receivers.Get(i)->AddApplication(sink);
    sinks.push_back(sink);
    const Ptr<Job> job = CreateObject<Job>();
    job->peer = InetSocketAddress(interfaces.GetAddress(1), sink->port);
    job->start = NanoSeconds(std::llround(start_ms[i] * 1e6));
    job->compute = NanoSeconds(std::llround(compute_ms * 1e6));
    job->burst = std::uint64_t{packets} * kPayloadBytes;
    job->SetStartTime(MilliSeconds(1));
    senders.Get(i)->AddApplication(job);
    jobs.push_back(job);
  }
  for (std::uint32_t i = 0; i < devices.GetN(); ++i)
    devices.Get(i)->TraceConnectWithoutContext("PhyRxEnd", MakeCallback(&Monitor::OnHop, &monitor));
  Ipv4GlobalRoutingHelper::PopulateRoutingTables();

  Simulator::Stop(epoch);
  Simulator::Run();
  packet_hops = 0;
  if (sample_us > 0) {
    const Time interval = NanoSeconds(std::llround(sample_us * 1e3));
    Simulator::ScheduleNow(&Monitor::Sample, &monitor, interval);
  }
  const std::clock_t began = std::clock();
  if (packets == 0) {
    Simulator::Stop(NanoSeconds(std::llround(duration_ms * 1e6)));
    Simulator::Run();
  } else {
    const auto done = [&](const Ptr<Job>& job) { return job->iteration_ns.size() >= iterations; };
    while (!std::all_of(jobs.begin(), jobs.end(), done)) {
      Simulator::Stop(MilliSeconds(50));
      Simulator::Run();
    }
  }
  const double cpu = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;

  const std::uint64_t marked = monitor.disc ? monitor.disc->GetStats().nTotalMarkedPackets : std::uint64_t{0};
  nlohmann::json result{{"simulator", "ns-3 3.37"},
                        {"packet_payload_bytes", kPayloadBytes},
                        {"duration_ns", (Simulator::Now() - epoch).GetNanoSeconds()},
                        {"bin_ns", kBinNs},
                        {"sample_ns", std::llround(sample_us * 1e3)},
                        {"queue_bytes", monitor.queue},
                        {"drops", monitor.drops},
                        {"dropped_packets", monitor.dropped},
                        {"marked_packets", marked},
                        {"packet_hops", packet_hops},
                        {"cpu_s", cpu}};
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    auto& times = jobs[i]->iteration_ns;
    if (packets > 0) times.resize(std::min<std::size_t>(times.size(), iterations));
    result["flows"].push_back({{"start_ns", jobs[i]->start.GetNanoSeconds()},
                               {"delivered_bytes", sinks[i]->bytes},
                               {"retransmitted_packets", jobs[i]->retransmitted},
                               {"iteration_ns", times},
                               {"bins", monitor.bins[i]}});
  }
  std::cout << result << '\n';
  Simulator::Destroy();
  return 0;
}
