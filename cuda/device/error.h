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
    // The context is lost: nothing on this device works in this process any more.
    bool sticky() const;

private:
    cudaError_t code_;
};

// Throws std::bad_alloc when memory is short, CudaError otherwise. `doing` tells what was tried: "copying queries".
void check(cudaError_t code, const char* doing);

// From now on a sticky error ends the process, with a line on stderr: the launcher starts another.
void exit_on_sticky_errors();

// After every launch: the launch itself, not the kernel's end.
void check_launch(const char* kernel);

}  // namespace pgwarp::cuda
