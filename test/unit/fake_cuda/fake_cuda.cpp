#include "fake_cuda.h"

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

using pgwarp::test::fake_cuda;

struct FakeStream {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> work;
    std::uint64_t given = 0;
    std::uint64_t done = 0;
    bool ends = false;
    std::thread thread{[this] { run(); }};

    void run()
    {
        std::unique_lock lock(mutex);
        for (;;) {
            changed.wait(lock, [this] { return ends || !work.empty(); });
            if (work.empty()) return;
            const std::function<void()> next = std::move(work.front());
            work.pop_front();
            lock.unlock();
            next();
            lock.lock();
            ++done;
            changed.notify_all();
        }
    }
    std::uint64_t add(std::function<void()> next)
    {
        const std::lock_guard lock(mutex);
        work.push_back(std::move(next));
        changed.notify_all();
        return ++given;
    }
    void wait(std::uint64_t until)
    {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return done >= until; });
    }
    void wait()
    {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return done == given; });
    }
};

struct FakeEvent {
    FakeStream* stream = nullptr;
    std::uint64_t at = 0;
};

struct FakePool {
};

namespace
{

thread_local int current_device = 0;

// Bytes of an allocation stand before it, which stays aligned for a carver.
constexpr std::size_t header = 256;

}  // namespace

namespace pgwarp::test
{

FakeCuda& fake_cuda()
{
    static FakeCuda counts;
    return counts;
}

void launch(cudaStream_t stream, std::function<void()> kernel)
{
    ++fake_cuda().launches;
    stream->add(std::move(kernel));
}

}  // namespace pgwarp::test

const char* cudaGetErrorString(cudaError_t)
{
    return "an error of the stand-in";
}
cudaError_t cudaGetLastError()
{
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int device)
{
    current_device = device;
    return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device)
{
    *device = current_device;
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int)
{
    *properties = {1, 9, 227 << 10, "stand-in"};
    return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest)
{
    *least = 0;
    *greatest = -1;
    return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total)
{
    *total = fake_cuda().free_bytes;
    *free = *total;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int)
{
    *stream = new FakeStream;
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    {
        const std::lock_guard lock(stream->mutex);
        stream->ends = true;
        stream->changed.notify_all();
    }
    stream->thread.join();
    delete stream;
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    stream->wait();
    return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t)
{
    return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned)
{
    *event = new FakeEvent;
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    event->stream = stream;
    event->at = stream->add([] {});
    return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    stream->add([before = event->stream, at = event->at] { before->wait(at); });
    return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    event->stream->wait(event->at);
    return cudaSuccess;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps*)
{
    *pool = new FakePool;
    return cudaSuccess;
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
    delete pool;
    return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*)
{
    return cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void* value)
{
    *static_cast<std::uint64_t*>(value) = 0;
    return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, std::size_t)
{
    return cudaSuccess;
}
cudaError_t cudaMallocFromPoolAsync(void** memory, std::size_t bytes, cudaMemPool_t, cudaStream_t)
{
    if (fake_cuda().device_bytes + bytes > fake_cuda().free_bytes) return cudaErrorMemoryAllocation;
    const std::size_t rounded = (bytes + 2 * header - 1) / header * header;
    auto* block = static_cast<std::byte*>(std::aligned_alloc(header, rounded));
    std::memcpy(block, &bytes, sizeof(bytes));
    *memory = block + header;
    ++fake_cuda().device_allocations;
    fake_cuda().device_bytes += bytes;
    return cudaSuccess;
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream)
{
    auto* block = static_cast<std::byte*>(memory) - header;
    std::size_t bytes = 0;
    std::memcpy(&bytes, block, sizeof(bytes));
    fake_cuda().device_bytes -= bytes;
    stream->add([block] { std::free(block); });
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned)
{
    *memory = std::aligned_alloc(header, (bytes + header - 1) / header * header);
    ++fake_cuda().pinned_allocations;
    return cudaSuccess;
}
// Unlike CUDA's it waits for no stream: memory that is still in use is found by sanitizers.
cudaError_t cudaFreeHost(void* memory)
{
    std::free(memory);
    return cudaSuccess;
}
cudaError_t cudaHostRegister(void*, std::size_t, unsigned)
{
    return cudaSuccess;
}
cudaError_t cudaHostUnregister(void*)
{
    return cudaSuccess;
}
cudaError_t cudaHostGetDevicePointer(void** at, void* memory, unsigned)
{
    *at = memory;
    return cudaSuccess;
}
// In the stream's turn, also from memory that is not page-locked: `from` must stay until then.
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream)
{
    ++fake_cuda().copies;
    stream->add([=] { std::memcpy(to, from, bytes); });
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream)
{
    stream->add([=] { std::memset(to, value, bytes); });
    return cudaSuccess;
}
