// CUDA errors as exceptions. A sticky error ends the context: the engine restarts, the server does not notice.
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>

namespace pgwarp::cuda
{

class CudaError : public std::runtime_error
{
public:
    CudaError(cudaError_t code, const char* doing);
    cudaError_t code() const { return code_; }
    // Whether the context is lost: nothing on this device works in this process any more.
    bool sticky() const;

private:
    cudaError_t code_;
};

// Throws DeviceOutOfMemory (a std::bad_alloc) when memory is short, CudaError otherwise. doing: the step that failed,
// for the message: "copying queries".
void check(cudaError_t code, const char* doing);

// From now on a sticky error ends the process, with a line on stderr: the launcher starts another.
void exit_on_sticky_errors();

// Called after every launch. Checks the launch itself and does not wait for the kernel. Throws CudaError.
void check_launch(const char* kernel);

}  // namespace pgwarp::cuda
