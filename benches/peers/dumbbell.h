// What the workloads on ns-3's IP stack share: links, settings of TCP, addresses of a dumbbell.

#ifndef WEIR_PEERS_DUMBBELL_H
#define WEIR_PEERS_DUMBBELL_H

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <vector>

/// A link of two devices with drop-tail queues.
inline ns3::NetDeviceContainer
Link(ns3::Ptr<ns3::Node> a, ns3::Ptr<ns3::Node> b, const char* rate, const char* delay, const char* queue)
{
    ns3::PointToPointHelper helper;
    helper.SetDeviceAttribute("DataRate", ns3::StringValue(rate));
    helper.SetChannelAttribute("Delay", ns3::StringValue(delay));
    helper.SetQueue("ns3::DropTailQueue", "MaxSize", ns3::StringValue(queue));
    return helper.Install(a, b);
}

/// Reno with an acknowledgement for every two segments, initial window 10 and a least timeout of 200 ms.
inline void
SetTcp(ns3::TypeId recovery, uint32_t segmentBytes, uint32_t bufferBytes)
{
    using namespace ns3;
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpLinuxReno::GetTypeId()));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(recovery));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(segmentBytes));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(bufferBytes));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(bufferBytes));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
}

/// Addresses for all links, `bottleneck` last, and routes; without queues above the devices of `links` and of `bare`.
inline std::vector<ns3::Ipv4InterfaceContainer>
AssignAddresses(const std::vector<ns3::NetDeviceContainer>& links, const ns3::NetDeviceContainer& bottleneck,
        const ns3::NetDeviceContainer& bare)
{
    using namespace ns3;
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    std::vector<Ipv4InterfaceContainer> interfaces;
    for (const auto& devices : links)
    {
        interfaces.push_back(addresses.Assign(devices));
        addresses.NewNetwork();
    }
    addresses.Assign(bottleneck);
    TrafficControlHelper control;
    for (const auto& devices : links)
    {
        control.Uninstall(devices);
    }
    control.Uninstall(bare);
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    return interfaces;
}

#endif
