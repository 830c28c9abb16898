#include "device/error.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

namespace pgwarp::cuda
{

CudaError::CudaError(cudaError_t code, const char* doing)
    : std::runtime_error(std::string(doing) + ": " + cudaGetErrorString(code)), code_(code)
{
}

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
            return false;
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
    (void)cudaGetLastError();  // what is not sticky must not be seen by the next check
    if (code == cudaErrorMemoryAllocation) throw std::bad_alloc();
    const CudaError error(code, doing);
    if (error.sticky() && exit_on_sticky) {
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
