// The benchmark workloads on bare ns-3: point-to-point devices, drop-tail queues and a forwarding table, no IP stack.
//
// This is ns-3's best case, on purpose. No trace is connected, no header is written, a device hands a frame straight to
// the forwarder (past the protocol demultiplexer of Node), which passes it on without a copy of its own; a source
// uses one event object again and again. What remains is what every ns-3 program pays: two events, a copy of the
// packet and a PPP header per hop. ../README.md tells which alternatives were measured.
//
//   weir-bench-ns3 w1|w3|w4 [--k K] [--repeat R] [--duration-ps PS] [--scheduler NAME]
//
// prints one JSON line: the counts of one run (every repeat must give the same), and what the process has cost.

#include "process.h"
#include "traffic.h"

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace
{

constexpr uint64_t kLineRateBps = 10'000'000'000;
constexpr int64_t kLinkDelayPs = 500'000;
constexpr uint32_t kSwitchQueueBytes = 150'000;
constexpr uint32_t kUnboundedQueueBytes = UINT32_MAX;

/// A switch: a table from destination host to output device.
class Switch
{
  public:
    Switch(Run& run, size_t hosts)
        : m_run(run),
          m_outputs(hosts, nullptr)
    {
    }

    void Route(uint32_t host, Device* output)
    {
        m_outputs[host] = output;
    }

    bool Receive(ns3::Ptr<ns3::NetDevice>, ns3::Ptr<const ns3::Packet> frame, uint16_t, const ns3::Address&)
    {
        ++m_run.counts.packetHops;
        Device* output = m_outputs[m_run.destinations.Of(frame)];
        // The device gave the frame away: nobody else holds it, so no copy is needed.
        if (!output->Send(ns3::ConstCast<ns3::Packet>(frame), m_anywhere, kProtocol))
        {
            ++m_run.counts.dropped;
        }
        return true;
    }

  private:
    Run& m_run;
    std::vector<Device*> m_outputs;
    ns3::Address m_anywhere;
};

/// A receiver.
class Sink
{
  public:
    explicit Sink(Run& run)
        : m_run(run)
    {
    }

    bool Receive(ns3::Ptr<ns3::NetDevice>, ns3::Ptr<const ns3::Packet>, uint16_t, const ns3::Address&)
    {
        ++m_run.counts.packetHops;
        ++m_run.counts.delivered;
        return true;
    }

  private:
    Run& m_run;
};

/// Hosts, switches and links of one run.
class Network
{
  public:
    Network(Run& run, uint32_t hosts, uint32_t switches)
        : m_hostCount(hosts)
    {
        m_nodes.Create(hosts + switches);
        for (uint32_t s = 0; s < switches; ++s)
        {
            m_switches.push_back(std::make_unique<Switch>(run, hosts));
        }
        m_sink = std::make_unique<Sink>(run);
        m_queues.SetTypeId("ns3::DropTailQueue<Packet>");
    }

    /// The two ends of a new link. Hosts have the numbers from 0, switches those that follow.
    std::pair<Device*, Device*> Connect(uint32_t a, uint32_t b)
    {
        auto channel = ns3::CreateObject<ns3::PointToPointChannel>();
        channel->SetAttribute("Delay", ns3::TimeValue(ns3::Time(kLinkDelayPs)));
        auto first = AddDevice(a);
        auto second = AddDevice(b);
        first->Attach(channel);
        second->Attach(channel);
        return {ns3::PeekPointer(first), ns3::PeekPointer(second)};
    }

    Switch& SwitchAt(uint32_t number)
    {
        return *m_switches[number];
    }

  private:
    ns3::Ptr<Device> AddDevice(uint32_t node)
    {
        bool isHost = node < m_hostCount;
        m_queues.Set("MaxSize",
                     ns3::QueueSizeValue(ns3::QueueSize(ns3::QueueSizeUnit::BYTES,
                                                        isHost ? kUnboundedQueueBytes : kSwitchQueueBytes)));
        auto device = ns3::CreateObject<Device>();
        device->SetDataRate(ns3::DataRate(kLineRateBps));
        device->SetQueue(m_queues.Create<ns3::Queue<ns3::Packet>>());
        m_nodes.Get(node)->AddDevice(device);
        // After AddDevice, which would send frames through the protocol demultiplexer of the node.
        device->SetReceiveCallback(
            isHost ? ns3::MakeCallback(&Sink::Receive, m_sink.get())
                   : ns3::MakeCallback(&Switch::Receive, m_switches[node - m_hostCount].get()));
        return device;
    }

    uint32_t m_hostCount;
    ns3::NodeContainer m_nodes;
    ns3::ObjectFactory m_queues;
    std::vector<std::unique_ptr<Switch>> m_switches;
    std::unique_ptr<Sink> m_sink;
};

/// W1 and W4: `hosts` hosts around one switch.
std::vector<Device*> MakeStar(Network& network, uint32_t hosts)
{
    std::vector<Device*> uplinks;
    for (uint32_t host = 0; host < hosts; ++host)
    {
        auto [up, down] = network.Connect(host, hosts);
        network.SwitchAt(0).Route(host, down);
        uplinks.push_back(up);
    }
    return uplinks;
}

/// W3: the k-ary fat tree of three levels. The way of a frame depends on its destination alone.
std::vector<Device*> MakeFatTree(Network& network, uint32_t k)
{
    const uint32_t half = k / 2;
    const uint32_t edges = k * half; // as many as aggregation switches
    const uint32_t hosts = edges * half;
    const auto edge = [](uint32_t e) { return e; };
    const auto aggregation = [=](uint32_t pod, uint32_t a) { return edges + pod * half + a; };
    const auto core = [=](uint32_t a, uint32_t q) { return 2 * edges + a * half + q; };

    std::vector<Device*> uplinks;
    std::vector<Device*> toHost(hosts);
    std::vector<Device*> edgeUp(hosts);          // [edge][a]
    std::vector<Device*> aggregationDown(hosts); // [edge][a]
    std::vector<Device*> aggregationUp(hosts);   // [pod][a][q]
    std::vector<Device*> coreDown(hosts);        // [pod][a][q]
    for (uint32_t host = 0; host < hosts; ++host)
    {
        auto [up, down] = network.Connect(host, hosts + edge(host / half));
        uplinks.push_back(up);
        toHost[host] = down;
    }
    for (uint32_t e = 0; e < edges; ++e)
    {
        for (uint32_t a = 0; a < half; ++a)
        {
            auto [up, down] = network.Connect(hosts + edge(e), hosts + aggregation(e / half, a));
            edgeUp[e * half + a] = up;
            aggregationDown[e * half + a] = down;
        }
    }
    for (uint32_t pod = 0; pod < k; ++pod)
    {
        for (uint32_t a = 0; a < half; ++a)
        {
            for (uint32_t q = 0; q < half; ++q)
            {
                auto [up, down] = network.Connect(hosts + aggregation(pod, a), hosts + core(a, q));
                aggregationUp[(pod * half + a) * half + q] = up;
                coreDown[(pod * half + a) * half + q] = down;
            }
        }
    }
    for (uint32_t host = 0; host < hosts; ++host)
    {
        const uint64_t hash = SplitMix64(host).Next();
        const uint32_t up = hash % half;
        const uint32_t upAgain = (hash >> 16) % half;
        const uint32_t homeEdge = host / half;
        const uint32_t homePod = homeEdge / half;
        for (uint32_t e = 0; e < edges; ++e)
        {
            network.SwitchAt(edge(e)).Route(host, e == homeEdge ? toHost[host] : edgeUp[e * half + up]);
        }
        for (uint32_t pod = 0; pod < k; ++pod)
        {
            for (uint32_t a = 0; a < half; ++a)
            {
                network.SwitchAt(aggregation(pod, a))
                    .Route(host,
                           pod == homePod ? aggregationDown[homeEdge * half + a]
                                          : aggregationUp[(pod * half + a) * half + upAgain]);
            }
        }
        for (uint32_t a = 0; a < half; ++a)
        {
            for (uint32_t q = 0; q < half; ++q)
            {
                network.SwitchAt(core(a, q)).Route(host, coreDown[(homePod * half + a) * half + q]);
            }
        }
    }
    return uplinks;
}

Counts Execute(const Options& options)
{
    ns3::ObjectFactory scheduler;
    scheduler.SetTypeId("ns3::" + options.scheduler + "Scheduler");
    ns3::Simulator::SetScheduler(scheduler);

    Run run;
    const auto stopAfter = [&](int64_t publishedPs) {
        // The first event of its instant, so events at the end do not count.
        ns3::Simulator::Stop(ns3::Time(options.durationPs ? options.durationPs : publishedPs));
    };
    std::unique_ptr<Network> network;
    if (options.workload == "w1")
    {
        stopAfter(100'000'000'000);
        network = std::make_unique<Network>(run, 5, 1);
        auto uplinks = MakeStar(*network, 5);
        for (uint32_t host = 0; host < 4; ++host)
        {
            ns3::Create<PoissonSource>(run, uplinks[host], host, 1500, 0.49, 4)->ScheduleNext();
        }
    }
    else if (options.workload == "w3")
    {
        stopAfter(2'000'000'000);
        const uint32_t hosts = options.k * options.k * options.k / 4;
        network = std::make_unique<Network>(run, hosts, options.k * options.k * 5 / 4);
        auto uplinks = MakeFatTree(*network, options.k);
        for (uint32_t host = 0; host < hosts; ++host)
        {
            const uint16_t to = (host + hosts / 2) % hosts;
            ns3::Create<PoissonSource>(run, uplinks[host], host, 1500, 0.8, to)->ScheduleNext();
        }
    }
    else
    {
        stopAfter(2'000'000'000);
        network = std::make_unique<Network>(run, 32, 1);
        auto uplinks = MakeStar(*network, 32);
        for (uint32_t host = 0; host < 32; ++host)
        {
            ns3::Create<BernoulliSource>(run, uplinks[host], host, 64, 0.85, 32)->ScheduleNext();
        }
    }
    ns3::Simulator::Run();
    ns3::Simulator::Destroy();
    return run.counts;
}

} // namespace

int main(int argc, char** argv)
{
    const auto start = std::chrono::steady_clock::now();
    const Options options = Parse(std::vector<std::string>(argv + 1, argv + argc));
    ns3::Time::SetResolution(ns3::Time::PS);
    const Counts counts = Execute(options);
    for (uint32_t repeat = 1; repeat < options.repeats; ++repeat)
    {
        if (!(Execute(options) == counts))
        {
            std::fprintf(stderr, "weir-bench-ns3: repeat %u gave other counts than the first run\n", repeat);
            return 1;
        }
    }
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    std::printf("{\"workload\":\"%s\",\"k\":%" PRIu32 ",\"repeats\":%" PRIu32 ",\"generated\":%" PRIu64
                ",\"delivered\":%" PRIu64 ",\"dropped\":%" PRIu64 ",\"packet_hops\":%" PRIu64
                ",\"cpu_s\":%.6f,\"wall_s\":%.6f,\"peak_rss_bytes\":%" PRIu64 "}\n",
                options.workload.c_str(),
                options.k,
                options.repeats,
                counts.generated,
                counts.delivered,
                counts.dropped,
                counts.packetHops,
                CpuSeconds(),
                wall.count(),
                PeakRssBytes());
    return 0;
}
