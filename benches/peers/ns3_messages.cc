// Messages on a fat tree, on ns-3 with its IP stack: DCTCP, queues that mark above a threshold, per-flow ECMP.
//
//   weir-peer-ns3-messages --k=4 --gbps=10 --delayNs=1000 --mark=65 --limit=500 --segment=1450 --salt=1 < flows
//
// Queues count bytes; `--unit=packets` lets acknowledgements count as much as full segments. Marks reduce the window at
// once (RFC 8257), to no less than two segments; `--recovery=prr` lets it come down packet by packet and without a least,
// as ns-3 does by default.
//
// reads lines `start_ps from to segments` and prints one JSON line: when each message was delivered (ps, 0 if it was not),
// packet-hops, and the CPU time of the run. Host i hangs on edge switch i div (k/2). Switches
// choose among the ways up by the hash that Weirlab has: of the number of a message, its direction, the node and the salt.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <cinttypes>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

using namespace ns3;

namespace
{

uint64_t g_hops = 0;
uint64_t g_salt = 0;

/// Of receivers; senders have those from 49152 on.
constexpr uint32_t kFirstPort = 1024;
constexpr uint32_t kMostMessages = 48000;

void
CountHop(Ptr<const Packet>)
{
    ++g_hops;
}

uint64_t
Mix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/// Forwards down by the destination, and up over one of several interfaces by a hash of the message.
class TreeRouting : public Ipv4RoutingProtocol
{
  public:
    std::map<uint32_t, uint32_t> down; // destination to interface
    std::vector<uint32_t> up;

    Ptr<Ipv4Route> Way(const Ipv4Header& header, Ptr<const Packet> packet)
    {
        uint32_t destination = header.GetDestination().Get();
        uint32_t interface = 0;
        auto found = down.find(destination);
        if (found != down.end())
        {
            interface = found->second;
        }
        else
        {
            uint8_t ports[4] = {0, 0, 0, 0};
            if (packet && packet->GetSize() >= 4)
            {
                packet->CopyData(ports, 4);
            }
            const uint32_t source = ports[0] << 8 | ports[1], target = ports[2] << 8 | ports[3];
            const bool isBack = source < target;
            const uint64_t message = std::min(source, target) - kFirstPort;
            const uint64_t end = Mix(g_salt ^ message << 1 ^ uint64_t(isBack)) & 0xffffffff;
            const uint64_t word = Mix(end << 32 | m_ipv4->GetObject<Node>()->GetId());
            interface = up[static_cast<uint64_t>(static_cast<unsigned __int128>(word) * up.size() >> 64)];
        }
        Ptr<Ipv4Route> route = Create<Ipv4Route>();
        route->SetDestination(header.GetDestination());
        route->SetSource(m_ipv4->GetAddress(1, 0).GetLocal());
        route->SetGateway(Ipv4Address::GetZero());
        route->SetOutputDevice(m_ipv4->GetNetDevice(interface));
        return route;
    }

    Ptr<Ipv4Route> RouteOutput(Ptr<Packet> packet, const Ipv4Header& header, Ptr<NetDevice>, Socket::SocketErrno& error) override
    {
        error = Socket::ERROR_NOTERROR;
        return Way(header, packet);
    }

    using ByValue = bool (Ipv4RoutingProtocol::*)(Ptr<const Packet>, const Ipv4Header&, Ptr<const NetDevice>, UnicastForwardCallback,
                                                  MulticastForwardCallback, LocalDeliverCallback, ErrorCallback);
    /// As this version of ns-3 passes it: by value in Debian 12, by reference in Ubuntu 24.04.
    template <typename T>
    using Passed = std::conditional_t<std::is_same_v<decltype(&Ipv4RoutingProtocol::RouteInput), ByValue>, T, const T&>;

    bool RouteInput(Ptr<const Packet> packet, const Ipv4Header& header, Ptr<const NetDevice> device,
                    Passed<UnicastForwardCallback> forward, Passed<MulticastForwardCallback>, Passed<LocalDeliverCallback> deliver,
                    Passed<ErrorCallback>) override
    {
        uint32_t interface = m_ipv4->GetInterfaceForDevice(device);
        if (m_ipv4->IsDestinationAddress(header.GetDestination(), interface))
        {
            deliver(packet, header, interface);
        }
        else
        {
            forward(Way(header, packet), packet, header);
        }
        return true;
    }

    void NotifyInterfaceUp(uint32_t) override {}
    void NotifyInterfaceDown(uint32_t) override {}
    void NotifyAddAddress(uint32_t, Ipv4InterfaceAddress) override {}
    void NotifyRemoveAddress(uint32_t, Ipv4InterfaceAddress) override {}
    void SetIpv4(Ptr<Ipv4> ipv4) override { m_ipv4 = ipv4; }
    void PrintRoutingTable(Ptr<OutputStreamWrapper>, Time::Unit) const override {}

  private:
    Ptr<Ipv4> m_ipv4;
};

/// DCTCP with a least window of two segments (RFC 5681, equation 4). That of ns-3 has none, and a window below one segment
/// stops a connection with nothing in flight for ever unless PRR lets a segment go.
class LeastDctcp : public TcpDctcp
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId id = TypeId("weir::LeastDctcp").SetParent<TcpDctcp>().AddConstructor<LeastDctcp>();
        return id;
    }

    Ptr<TcpCongestionOps> Fork() override { return CopyObject<LeastDctcp>(this); }

    uint32_t GetSsThresh(Ptr<const TcpSocketState> state, uint32_t flight) override
    {
        return std::max(2 * state->m_segmentSize, TcpDctcp::GetSsThresh(state, flight));
    }
};

struct Message
{
    uint64_t start, bytes, got = 0, delivered = 0;
    uint32_t from, to;
};

std::vector<Message> g_messages;

void
Receive(uint32_t message, Ptr<Socket> socket)
{
    Message& m = g_messages[message];
    while (Ptr<Packet> packet = socket->Recv())
    {
        m.got += packet->GetSize();
    }
    if (m.got == m.bytes && m.delivered == 0)
    {
        m.delivered = Simulator::Now().GetPicoSeconds();
    }
}

void
Accept(uint32_t message, Ptr<Socket> socket, const Address&)
{
    socket->SetRecvCallback(MakeBoundCallback(&Receive, message));
}

void
Write(uint32_t message, Ptr<Socket> socket)
{
    socket->Send(Create<Packet>(g_messages[message].bytes));
    socket->Close();
}

std::vector<Ptr<Node>> g_hosts;
std::vector<Ipv4Address> g_addresses;

void
Begin(uint32_t message)
{
    const Message& m = g_messages[message];
    Ptr<Socket> sender = Socket::CreateSocket(g_hosts[m.from], TcpSocketFactory::GetTypeId());
    sender->SetConnectCallback(MakeBoundCallback(&Write, message), MakeNullCallback<void, Ptr<Socket>>());
    sender->Connect(InetSocketAddress(g_addresses[m.to], kFirstPort + message));
}

} // namespace

int
main(int argc, char** argv)
{
    uint32_t k = 4, mark = 65, limit = 500, segment = 1450, window = 10;
    double gbps = 10, milliseconds = 100, minRtoMs = 5;
    uint64_t delayNs = 1000;
    std::string unit = "bytes", recovery = "classic";
    CommandLine line;
    line.AddValue("k", "ports of each switch", k);
    line.AddValue("gbps", "line rate", gbps);
    line.AddValue("delayNs", "of each link", delayNs);
    line.AddValue("mark", "full packets that may wait without marks", mark);
    line.AddValue("limit", "full packets that may wait", limit);
    line.AddValue("segment", "payload", segment);
    line.AddValue("window", "first window, segments", window);
    line.AddValue("ms", "simulated time", milliseconds);
    line.AddValue("minRtoMs", "least timeout", minRtoMs);
    line.AddValue("unit", "of queues: bytes or packets", unit);
    line.AddValue("recovery", "after marks: classic or prr", recovery);
    line.AddValue("salt", "of the hash", g_salt);
    line.Parse(argc, argv);
    Time::SetResolution(Time::PS);
    const uint32_t full = unit == "bytes" ? segment + 40 : 1;
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(recovery == "prr" ? TcpDctcp::GetTypeId() : LeastDctcp::GetTypeId()));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(recovery == "prr" ? TcpPrrRecovery::GetTypeId() : TcpClassicRecovery::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(segment));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(window));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1u << 28));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1u << 26));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MicroSeconds(uint64_t(minRtoMs * 1000))));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MicroSeconds(1)));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::UseEcn", StringValue("On"));
    Config::SetDefault("ns3::RedQueueDisc::UseEcn", BooleanValue(true));
    Config::SetDefault("ns3::RedQueueDisc::UseHardDrop", BooleanValue(false));
    Config::SetDefault("ns3::RedQueueDisc::MeanPktSize", UintegerValue(segment + 42));
    // A step: gentle RED would mark few packets up to twice the threshold.
    Config::SetDefault("ns3::RedQueueDisc::Gentle", BooleanValue(false));
    Config::SetDefault("ns3::RedQueueDisc::QW", DoubleValue(1));
    Config::SetDefault("ns3::RedQueueDisc::MinTh", DoubleValue(mark * full));
    Config::SetDefault("ns3::RedQueueDisc::MaxTh", DoubleValue(mark * full));
    Config::SetDefault("ns3::RedQueueDisc::MaxSize", QueueSizeValue(QueueSize(std::to_string(limit * full) + (full > 1 ? "B" : "p"))));

    const uint32_t half = k / 2, hosts = k * half * half, edges = k * half, cores = half * half;
    NodeContainer all;
    all.Create(hosts + 2 * edges + cores);
    auto edge = [&](uint32_t i) { return all.Get(hosts + i); };
    auto agg = [&](uint32_t i) { return all.Get(hosts + edges + i); };
    auto core = [&](uint32_t i) { return all.Get(hosts + 2 * edges + i); };
    InternetStackHelper stack;
    stack.InstallAll();
    std::map<Ptr<Node>, Ptr<TreeRouting>> routing;
    for (uint32_t i = 0; i < all.GetN(); ++i)
    {
        Ptr<TreeRouting> tree = CreateObject<TreeRouting>();
        all.Get(i)->GetObject<Ipv4>()->SetRoutingProtocol(tree);
        routing[all.Get(i)] = tree;
    }
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(gbps * 1e9))));
    link.SetChannelAttribute("Delay", TimeValue(NanoSeconds(delayNs)));
    TrafficControlHelper control;
    control.SetRootQueueDisc("ns3::RedQueueDisc", "LinkBandwidth", DataRateValue(DataRate(uint64_t(gbps * 1e9))), "LinkDelay",
                             TimeValue(NanoSeconds(delayNs)));
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    // The interfaces of both ends.
    auto join = [&](Ptr<Node> low, Ptr<Node> high, bool isHost) {
        link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));
        NetDeviceContainer devices = link.Install(low, high);
        if (isHost)
        {
            Ptr<DropTailQueue<Packet>> queue = CreateObject<DropTailQueue<Packet>>();
            queue->SetMaxSize(QueueSize("10000000p"));
            DynamicCast<PointToPointNetDevice>(devices.Get(0))->SetQueue(queue);
        }
        for (uint32_t i = 0; i < 2; ++i)
        {
            devices.Get(i)->TraceConnectWithoutContext("MacRx", MakeCallback(&CountHop));
            if (i == 1 || !isHost)
            {
                control.Install(devices.Get(i));
            }
        }
        Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
        addresses.NewNetwork();
        if (isHost)
        {
            control.Uninstall(devices.Get(0));
            g_addresses.push_back(interfaces.GetAddress(0));
        }
        return std::make_pair(low->GetObject<Ipv4>()->GetInterfaceForDevice(devices.Get(0)),
                              high->GetObject<Ipv4>()->GetInterfaceForDevice(devices.Get(1)));
    };
    for (uint32_t i = 0; i < hosts; ++i)
    {
        g_hosts.push_back(all.Get(i));
        auto [up, down] = join(all.Get(i), edge(i / half), true);
        routing[all.Get(i)]->up.push_back(up);
        routing[edge(i / half)]->down[g_addresses[i].Get()] = down;
    }
    for (uint32_t e = 0; e < edges; ++e)
    {
        for (uint32_t a = 0; a < half; ++a)
        {
            Ptr<Node> above = agg(e / half * half + a);
            auto [up, down] = join(edge(e), above, false);
            routing[edge(e)]->up.push_back(up);
            for (uint32_t i = e * half; i < (e + 1) * half; ++i)
            {
                routing[above]->down[g_addresses[i].Get()] = down;
            }
        }
    }
    for (uint32_t a = 0; a < edges; ++a)
    {
        for (uint32_t c = 0; c < half; ++c)
        {
            Ptr<Node> above = core(a % half * half + c);
            auto [up, down] = join(agg(a), above, false);
            routing[agg(a)]->up.push_back(up);
            const uint32_t pod = a / half;
            for (uint32_t i = pod * half * half; i < (pod + 1) * half * half; ++i)
            {
                routing[above]->down[g_addresses[i].Get()] = down;
            }
        }
    }
    Message next;
    uint64_t segments;
    while (std::cin >> next.start >> next.from >> next.to >> segments)
    {
        next.bytes = segments * segment;
        uint32_t number = g_messages.size();
        if (number == kMostMessages)
        {
            std::fprintf(stderr, "at most %u messages\n", kMostMessages);
            return 2;
        }
        g_messages.push_back(next);
        Ptr<Socket> receiver = Socket::CreateSocket(g_hosts[next.to], TcpSocketFactory::GetTypeId());
        receiver->Bind(InetSocketAddress(Ipv4Address::GetAny(), kFirstPort + number));
        receiver->Listen();
        receiver->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(), MakeBoundCallback(&Accept, number));
        Simulator::Schedule(PicoSeconds(next.start), &Begin, number);
    }
    Simulator::Stop(MicroSeconds(uint64_t(milliseconds * 1000)));
    std::clock_t before = std::clock();
    Simulator::Run();
    double cpu = double(std::clock() - before) / CLOCKS_PER_SEC;
    std::printf("{\"packet_hops\": %" PRIu64 ", \"cpu_s\": %.3f, \"delivered_ps\": [", g_hops, cpu);
    for (uint32_t i = 0; i < g_messages.size(); ++i)
    {
        std::printf("%s%" PRIu64, i == 0 ? "" : ", ", g_messages[i].delivered);
    }
    std::printf("]}\n");
    Simulator::Destroy();
    return 0;
}
