// What a benchmark process is asked for, and what it has cost.

#ifndef WEIR_BENCH_PROCESS_H
#define WEIR_BENCH_PROCESS_H

#include <sys/resource.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

constexpr uint32_t kLargestK = 40; // host numbers have 16 bits
constexpr const char* kSchedulers[] = {"Map", "List", "Heap", "Calendar", "PriorityQueue"};

struct Options
{
    std::string workload;
    uint32_t k = 8;
    uint32_t repeats = 1;
    int64_t durationPs = 0; // 0: as published
    std::string scheduler = "PriorityQueue"; // the fastest of ns-3.37 on all workloads
};

[[noreturn]] inline void Refuse(const std::string& why)
{
    std::fprintf(stderr, "weir-bench-ns3: %s\n", why.c_str());
    std::exit(2);
}

/// `text` as a number, or the end of the process.
inline int64_t ParseNumber(const std::string& name, const std::string& text)
{
    char* end = nullptr;
    const long long number = std::strtoll(text.c_str(), &end, 10);
    if (text.empty() || *end != '\0' || number <= 0)
    {
        Refuse(name + " takes a number above 0, not '" + text + "'");
    }
    return number;
}

inline Options Parse(const std::vector<std::string>& arguments)
{
    if (arguments.empty())
    {
        Refuse("which workload? w1, w3 or w4");
    }
    Options options;
    options.workload = arguments[0];
    if (options.workload != "w1" && options.workload != "w3" && options.workload != "w4")
    {
        Refuse("'" + options.workload + "' is none of the workloads w1, w3, w4");
    }
    for (size_t i = 1; i < arguments.size(); i += 2)
    {
        const std::string& name = arguments[i];
        const std::string value = i + 1 < arguments.size() ? arguments[i + 1] : "";
        if (name == "--k")
        {
            options.k = static_cast<uint32_t>(ParseNumber(name, value));
        }
        else if (name == "--repeat")
        {
            options.repeats = static_cast<uint32_t>(ParseNumber(name, value));
        }
        else if (name == "--duration-ps")
        {
            options.durationPs = ParseNumber(name, value);
        }
        else if (name == "--scheduler")
        {
            options.scheduler = value;
        }
        else
        {
            Refuse("unknown option '" + name + "'");
        }
    }
    if (options.k % 2 != 0 || options.k > kLargestK)
    {
        Refuse("k is even and at most " + std::to_string(kLargestK));
    }
    if (std::find(std::begin(kSchedulers), std::end(kSchedulers), options.scheduler) == std::end(kSchedulers))
    {
        Refuse("'" + options.scheduler + "' is none of ns-3's schedulers Map, List, Heap, Calendar, PriorityQueue");
    }
    return options;
}

inline double CpuSeconds()
{
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Peak resident memory of this program; that of getrusage would contain the program that started it.
inline uint64_t PeakRssBytes()
{
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
    {
        if (line.rfind("VmHWM:", 0) == 0)
        {
            return std::strtoull(line.c_str() + 6, nullptr, 10) * 1024;
        }
    }
    return 0;
}

#endif
