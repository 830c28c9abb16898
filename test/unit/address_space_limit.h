// A limit on the memory of the test's process. Sanitizers need much address space of their own, so they have none.
#pragma once

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#define PGWARP_LIMITS_ADDRESS_SPACE

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace pgwarp
{

// Limits the process to as many bytes of address space beyond those that it has.
class AddressSpaceLimit
{
public:
    explicit AddressSpaceLimit(std::uint64_t bytes)
    {
        std::uint64_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        ::getrlimit(RLIMIT_AS, &before_);
        rlimit limit = before_;
        limit.rlim_cur = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + bytes;
        ::setrlimit(RLIMIT_AS, &limit);
    }
    ~AddressSpaceLimit() { ::setrlimit(RLIMIT_AS, &before_); }

private:
    rlimit before_{};
};

}  // namespace pgwarp

#endif
