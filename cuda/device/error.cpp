#include "device/error.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "methods/method.h"

namespace pgwarp::cuda
{

CudaError::CudaError(cudaError_t code, const char* doing)
    : std::runtime_error(std::string(doing) + ": " + cudaGetErrorString(code)), code_(code)
{
}

namespace
{

// Asks the context two questions that do not wait. A lost context answers both with its sticky error.
bool context_works()
{
    std::size_t free = 0;
    std::size_t total = 0;
    const cudaError_t memory = cudaMemGetInfo(&free, &total);
    const cudaError_t work = cudaStreamQuery(nullptr);
    (void)cudaGetLastError();
    return memory == cudaSuccess && (work == cudaSuccess || work == cudaErrorNotReady);
}

}  // namespace

// The listed codes are always sticky. For all others the context itself is asked.
bool CudaError::sticky() const
{
    switch (code_) {
        case cudaErrorIllegalAddress:
        case cudaErrorIllegalInstruction:
        case cudaErrorMisalignedAddress:
        case cudaErrorInvalidAddressSpace:
        case cudaErrorInvalidPc:
        case cudaErrorHardwareStackError:
        case cudaErrorAssert:
        case cudaErrorLaunchFailure:
        case cudaErrorLaunchTimeout:
        case cudaErrorECCUncorrectable:
        case cudaErrorNvlinkUncorrectable:
        case cudaErrorContextIsDestroyed:
        case cudaErrorUnknown:
            return true;
        default:
            return !context_works();
    }
}

namespace
{
std::atomic<bool> exit_on_sticky{false};
}

void exit_on_sticky_errors()
{
    exit_on_sticky = true;
}

void check(cudaError_t code, const char* doing)
{
    if (code == cudaSuccess) return;
    // The next check must not see an error that is not sticky.
    (void)cudaGetLastError();
    if (code == cudaErrorMemoryAllocation) throw DeviceOutOfMemory();
    const CudaError error(code, doing);
    if (exit_on_sticky && error.sticky()) {
        std::fprintf(stderr, "ERROR: the CUDA device failed while %s\n", error.what());
        std::_Exit(EXIT_FAILURE);
    }
    throw error;
}

void check_launch(const char* kernel)
{
    check(cudaGetLastError(), kernel);
}

}  // namespace pgwarp::cuda
