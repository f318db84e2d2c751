// Frames of the benchmark workloads on ns-3: who sends them when, and how they are counted.

#ifndef WEIR_BENCH_TRAFFIC_H
#define WEIR_BENCH_TRAFFIC_H

#include "ns3/core-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <cmath>
#include <cstdint>
#include <vector>

using Device = ns3::PointToPointNetDevice;

constexpr int64_t kPsPerByte = 800;      // at 10 Gbit/s
constexpr uint32_t kPppHeaderBytes = 2;  // the device adds them; the sizes of frames are sizes on the wire
constexpr uint64_t kFirstSeed = 1000;
constexpr uint16_t kProtocol = 0x0800;   // the device takes IPv4 and IPv6 only

/// SplitMix64. Source: G. L. Steele Jr., D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators",
/// OOPSLA 2014.
class SplitMix64
{
  public:
    explicit SplitMix64(uint64_t state)
        : m_state(state)
    {
    }

    uint64_t Next()
    {
        m_state += 0x9e3779b97f4a7c15;
        uint64_t z = m_state;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }

    /// In (0, 1).
    double NextUnit()
    {
        return (static_cast<double>(Next() >> 11) + 0.5) / 9007199254740992.0;
    }

  private:
    uint64_t m_state;
};

struct Counts
{
    uint64_t generated = 0;
    uint64_t delivered = 0;
    uint64_t dropped = 0;
    uint64_t packetHops = 0;

    bool operator==(const Counts& other) const
    {
        return generated == other.generated && delivered == other.delivered && dropped == other.dropped &&
               packetHops == other.packetHops;
    }
};

/// Where a frame goes: a table by packet number, the cheapest place that ns-3 offers. Packet::GetUid() counts up from
/// the first packet of the process and survives Copy().
class Destinations
{
  public:
    /// Call for each packet right after its creation.
    void Append(const ns3::Ptr<ns3::Packet>& packet, uint16_t host)
    {
        if (m_hosts.empty())
        {
            m_first = packet->GetUid();
        }
        m_hosts.push_back(host);
    }

    uint16_t Of(const ns3::Ptr<const ns3::Packet>& packet) const
    {
        return m_hosts[packet->GetUid() - m_first];
    }

  private:
    uint64_t m_first = 0;
    std::vector<uint16_t> m_hosts;
};

/// What all parts of one run share.
struct Run
{
    Counts counts;
    Destinations destinations;
};

/// A sender; itself the event of its next departure, which alone keeps it alive.
class Source : public ns3::EventImpl
{
  public:
    Source(Run& run, Device* output, uint32_t host, uint32_t frameBytes)
        : m_random(kFirstSeed + host),
          m_run(run),
          m_output(output),
          m_frameBytes(frameBytes)
    {
    }

    void ScheduleNext()
    {
        ns3::Simulator::Schedule(ns3::Time(NextGapPs()), ns3::Ptr<ns3::EventImpl>(this));
    }

  protected:
    virtual int64_t NextGapPs() = 0;
    virtual uint16_t NextDestination() = 0;

    SplitMix64 m_random;

  private:
    void Notify() override
    {
        ++m_run.counts.generated;
        ns3::Ptr<ns3::Packet> frame = ns3::Create<ns3::Packet>(m_frameBytes - kPppHeaderBytes);
        m_run.destinations.Append(frame, NextDestination());
        if (!m_output->Send(frame, m_anywhere, kProtocol))
        {
            ++m_run.counts.dropped;
        }
        ScheduleNext();
    }

    Run& m_run;
    Device* m_output;
    uint32_t m_frameBytes;
    ns3::Address m_anywhere;
};

/// Exponential gaps, one destination.
class PoissonSource : public Source
{
  public:
    PoissonSource(Run& run, Device* output, uint32_t host, uint32_t frameBytes, double load, uint16_t destination)
        : Source(run, output, host, frameBytes),
          m_meanGapPs(static_cast<double>(frameBytes * kPsPerByte) / load),
          m_destination(destination)
    {
    }

  private:
    int64_t NextGapPs() override
    {
        return static_cast<int64_t>(-std::log(m_random.NextUnit()) * m_meanGapPs);
    }

    uint16_t NextDestination() override
    {
        return m_destination;
    }

    double m_meanGapPs;
    uint16_t m_destination;
};

/// In each slot a frame with probability `load`, to any host.
class BernoulliSource : public Source
{
  public:
    BernoulliSource(Run& run, Device* output, uint32_t host, uint32_t frameBytes, double load, uint64_t hosts)
        : Source(run, output, host, frameBytes),
          m_slotPs(frameBytes * kPsPerByte),
          m_logIdle(std::log(1.0 - load)),
          m_hosts(hosts)
    {
    }

  private:
    int64_t NextGapPs() override
    {
        return m_slotPs * (1 + static_cast<int64_t>(std::floor(std::log(m_random.NextUnit()) / m_logIdle)));
    }

    uint16_t NextDestination() override
    {
        return static_cast<uint16_t>(m_random.Next() % m_hosts);
    }

    int64_t m_slotPs;
    double m_logIdle;
    uint64_t m_hosts;
};

#endif
