// Managed queues of ns-3 under the two workloads of tests/agreement/test_aqm_peer.py: a sender of 12 Mbit/s that does not
// listen, or one Reno connection with a sparse sender beside it, over 10 Mbit/s with a round trip of 50 ms.
//
//   weir-peer-ns3-aqm --queue codel|pie|fq-codel --load udp|reno [--seconds S] [--from S] [--seed N]
//
// prints one JSON line: what waited from `--from` on, in the mean over time; of the whole run what was delivered, what was dropped,
// and the mean delay. Packets of the load are 1500 B on the line, those of the sparse sender 200 B, each 20 ms.

#include "dumbbell.h"

#include "ns3/flow-monitor-module.h"

#include <cinttypes>
#include <cstdio>
#include <map>
#include <string>

using namespace ns3;

namespace
{

constexpr uint32_t kSparseBytes = 300; // what is smaller is a packet of the sparse sender

uint64_t g_loadDrops = 0, g_sparseDrops = 0;
Time g_from;
double g_byteSeconds = 0;
Time g_since;
uint32_t g_bytes = 0;

void
Dropped(Ptr<const QueueDiscItem> item, const char*)
{
    (item->GetSize() < kSparseBytes ? g_sparseDrops : g_loadDrops) += 1;
}

void
Settle()
{
    if (Simulator::Now() > g_from)
    {
        g_byteSeconds += g_bytes * (Simulator::Now() - std::max(g_since, g_from)).GetSeconds();
    }
    g_since = Simulator::Now();
}

void
Level(uint32_t, uint32_t now)
{
    Settle();
    g_bytes = now;
}

std::string
QueueType(const std::string& name)
{
    const std::map<std::string, std::string> types = {
        {"codel", "ns3::CoDelQueueDisc"}, {"pie", "ns3::PieQueueDisc"}, {"fq-codel", "ns3::FqCoDelQueueDisc"}};
    const auto found = types.find(name);
    if (found == types.end())
    {
        std::fprintf(stderr, "weir-peer-ns3-aqm: --queue: codel, pie or fq-codel (got %s)\n", name.c_str());
        std::exit(2);
    }
    return found->second;
}

/// One direction of a connection: what arrived, and the mean time from the sender's IP to the receiver's.
void
PrintFlow(const char* name, const FlowMonitor::FlowStats& flow, uint64_t dropped)
{
    std::printf("\"%s\": {\"delivered_packets\": %" PRIu32 ", \"dropped\": %" PRIu64 ", \"mean_delay_s\": %.9f}, ", name,
                flow.rxPackets, dropped, flow.rxPackets == 0 ? 0.0 : flow.delaySum.GetSeconds() / flow.rxPackets);
}

} // namespace

int
main(int argc, char** argv)
{
    std::string queue = "codel", load = "udp";
    double seconds = 20, from = 5;
    uint32_t seed = 1;
    CommandLine line;
    line.AddValue("queue", "codel, pie or fq-codel", queue);
    line.AddValue("load", "udp or reno", load);
    line.AddValue("seconds", "simulated time", seconds);
    line.AddValue("from", "when waits begin to count", from);
    line.AddValue("seed", "run of the generator of chance", seed);
    line.Parse(argc, argv);
    const std::string type = QueueType(queue);
    if (load != "udp" && load != "reno")
    {
        std::fprintf(stderr, "weir-peer-ns3-aqm: --load: udp or reno (got %s)\n", load.c_str());
        return 2;
    }
    Time::SetResolution(Time::PS);
    RngSeedManager::SetRun(seed);
    g_from = Seconds(from);

    // Its proportional rate reduction leaves a connection at a fourth of the line after CoDel's first drops; the classic
    // recovery does not.
    // 1446 B, 12 B of time stamps, 40 B of headers and 2 B of the link: 1500 B.
    SetTcp(TcpClassicRecovery::GetTypeId(), 1446, 1 << 24);

    NodeContainer left, right, routers;
    left.Create(2);
    right.Create(2);
    routers.Create(2);
    std::vector<NetDeviceContainer> links;
    for (uint32_t i = 0; i < 2; ++i)
    {
        links.push_back(Link(left.Get(i), routers.Get(0), "1Gbps", "1ms", "100000p"));
        links.push_back(Link(right.Get(i), routers.Get(1), "1Gbps", "1ms", "100000p"));
    }
    // The device holds one packet besides that in transmission: it waits where no management looks.
    NetDeviceContainer bottleneck = Link(routers.Get(0), routers.Get(1), "10Mbps", "23ms", "1p");

    InternetStackHelper stack;
    stack.InstallAll();
    TrafficControlHelper managed;
    managed.SetRootQueueDisc(type, "MaxSize", StringValue(queue == "fq-codel" ? "10240p" : "1000p"));
    QueueDiscContainer discs = managed.Install(bottleneck.Get(0));
    const auto interfaces = AssignAddresses(links, bottleneck, NetDeviceContainer(bottleneck.Get(1)));

    Ptr<QueueDisc> disc = discs.Get(0);
    disc->TraceConnectWithoutContext("DropBeforeEnqueue", MakeCallback(&Dropped));
    disc->TraceConnectWithoutContext("DropAfterDequeue", MakeCallback(&Dropped));
    disc->TraceConnectWithoutContext("BytesInQueue", MakeCallback(&Level));

    const char* factories[] = {load == "udp" ? "ns3::UdpSocketFactory" : "ns3::TcpSocketFactory",
                               "ns3::UdpSocketFactory"};
    for (uint32_t i = 0; i < 2; ++i)
    {
        const InetSocketAddress to(interfaces[2 * i + 1].GetAddress(0), 9);
        PacketSinkHelper sink(factories[i], InetSocketAddress(Ipv4Address::GetAny(), 9));
        sink.Install(right.Get(i));
        if (i == 0 && load == "reno")
        {
            BulkSendHelper bulk(factories[i], to);
            bulk.SetAttribute("SendSize", UintegerValue(1446));
            bulk.Install(left.Get(i));
            continue;
        }
        if (i == 1 && load == "udp")
        {
            continue;
        }
        // 1470 B each ms, or 170 B each 20 ms; 30 B are headers and what the link adds.
        OnOffHelper constant(factories[i], to);
        constant.SetConstantRate(DataRate(i == 0 ? "11760000bps" : "68000bps"), i == 0 ? 1470 : 170);
        constant.Install(left.Get(i));
    }
    FlowMonitorHelper monitors;
    Ptr<FlowMonitor> monitor = monitors.InstallAll();
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    Settle();
    std::printf("{\"queue\": \"%s\", \"workload\": \"%s\", ", queue.c_str(), load.c_str());
    Ptr<Ipv4FlowClassifier> classifier = DynamicCast<Ipv4FlowClassifier>(monitors.GetClassifier());
    for (const auto& [id, flow] : monitor->GetFlowStats())
    {
        const Ipv4Address to = classifier->FindFlow(id).destinationAddress;
        if (to == interfaces[1].GetAddress(0))
        {
            PrintFlow("load", flow, g_loadDrops);
        }
        else if (to == interfaces[3].GetAddress(0))
        {
            PrintFlow("sparse", flow, g_sparseDrops);
        }
    }
    std::printf("\"mean_queue_bytes\": %.1f}\n", g_byteSeconds / (seconds - from));
    Simulator::Destroy();
    return 0;
}
