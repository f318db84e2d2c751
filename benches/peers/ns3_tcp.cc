// Workload W2 on ns-3 with its IP stack: bulk TCP connections over one bottleneck, and UDP beside them for 3 of 10 s.
//
//   weir-bench-ns3-tcp [--flows N] [--seconds S]
//
// prints one JSON line: bytes delivered by each connection, packet-hops, and the CPU time of the process. Settings are
// those of the workload: Reno with selective acknowledgements, proportional rate reduction, an acknowledgement for every
// two segments, initial window 10, time stamps, segments of 1448 B, a drop-tail queue of 2.5 MB at the bottleneck.

#include "dumbbell.h"

#include <cinttypes>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

uint64_t g_hops = 0;

void
CountHop(Ptr<const Packet>)
{
    ++g_hops;
}

/// A link whose packets are counted where they arrive.
NetDeviceContainer
Counted(NetDeviceContainer devices)
{
    for (uint32_t i = 0; i < 2; ++i)
    {
        devices.Get(i)->TraceConnectWithoutContext("MacRx", MakeCallback(&CountHop));
    }
    return devices;
}

} // namespace

int
main(int argc, char** argv)
{
    uint32_t flows = 8;
    double seconds = 10;
    CommandLine line;
    line.AddValue("flows", "connections", flows);
    line.AddValue("seconds", "simulated time", seconds);
    line.Parse(argc, argv);
    Time::SetResolution(Time::PS);

    SetTcp(TcpPrrRecovery::GetTypeId(), 1448, 1 << 26);

    NodeContainer left, right, routers;
    left.Create(flows + 1);
    right.Create(flows + 1);
    routers.Create(2);
    std::vector<NetDeviceContainer> links;
    for (uint32_t i = 0; i <= flows; ++i)
    {
        links.push_back(Counted(Link(left.Get(i), routers.Get(0), "10Gbps", "1ms", "1000000p")));
        links.push_back(Counted(Link(right.Get(i), routers.Get(1), "10Gbps", "1ms", "1000000p")));
    }
    NetDeviceContainer bottleneck = Counted(Link(routers.Get(0), routers.Get(1), "1Gbps", "8ms", "2500000B"));

    InternetStackHelper stack;
    stack.InstallAll();
    // Queues are those of the devices alone.
    const auto interfaces = AssignAddresses(links, bottleneck, bottleneck);

    std::vector<Ptr<PacketSink>> sinks;
    for (uint32_t i = 0; i <= flows; ++i)
    {
        const char* factory = i < flows ? "ns3::TcpSocketFactory" : "ns3::UdpSocketFactory";
        InetSocketAddress to(interfaces[2 * i + 1].GetAddress(0), 9);
        PacketSinkHelper sink(factory, InetSocketAddress(Ipv4Address::GetAny(), 9));
        sinks.push_back(DynamicCast<PacketSink>(sink.Install(right.Get(i)).Get(0)));
        if (i < flows)
        {
            BulkSendHelper bulk(factory, to);
            bulk.SetAttribute("SendSize", UintegerValue(1448));
            bulk.Install(left.Get(i)).Start(MilliSeconds(i));
        }
        else
        {
            OnOffHelper cross(factory, to);
            cross.SetConstantRate(DataRate("300Mbps"), 1470);
            ApplicationContainer source = cross.Install(left.Get(i));
            source.Start(Seconds(2));
            source.Stop(Seconds(5));
        }
    }
    Simulator::Stop(Seconds(seconds));
    std::clock_t before = std::clock();
    Simulator::Run();
    double cpu = double(std::clock() - before) / CLOCKS_PER_SEC;
    std::printf("{\"workload\": \"w2\", \"packet_hops\": %" PRIu64 ", \"cpu_s\": %.3f, \"delivered_bytes\": [", g_hops, cpu);
    for (uint32_t i = 0; i < flows; ++i)
    {
        std::printf("%s%" PRIu64, i == 0 ? "" : ", ", sinks[i]->GetTotalRx());
    }
    std::printf("]}\n");
    Simulator::Destroy();
    return 0;
}
