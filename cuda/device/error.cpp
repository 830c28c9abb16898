#include "device/error.h"

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

void check(cudaError_t code, const char* doing)
{
    if (code == cudaSuccess) return;
    (void)cudaGetLastError();  // what is not sticky must not be seen by the next check
    if (code == cudaErrorMemoryAllocation) throw std::bad_alloc();
    throw CudaError(code, doing);
}

void check_launch(const char* kernel)
{
    check(cudaGetLastError(), kernel);
}

}  // namespace pgwarp::cuda
