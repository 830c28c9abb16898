// The stream, device memory, page-locked memory and events of a search, kept for the next search of the index. Memory
// grows to the size of the largest search, so that after a few searches none allocates.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <memory>

#include "device/context.h"
#include "device/event.h"
#include "device/idle_pool.h"

namespace pgwarp::cuda
{

// The workspace of one search. Not thread-safe.
class Workspace
{
public:
    static constexpr std::size_t event_count = 8;

    // name: the purpose of the device memory, a static string.
    Workspace(Context& context, const char* name);

    // At least `bytes` bytes. Growing loses the contents. Throws std::bad_alloc.
    std::byte* device(std::size_t bytes);
    std::byte* pinned(std::size_t bytes);
    std::size_t device_bytes() const { return memory_.bytes(); }
    const Context::Lease& stream() const { return stream_; }
    Event& event(std::size_t i) { return events_.at(i); }
    // Frees memory that is too large to be kept between searches.
    void shrink();

private:
    MemoryPool* pool_;
    const char* name_;
    Context::Lease stream_;
    DeviceArray<std::byte> memory_;
    PinnedArray<std::byte> host_;
    std::array<Event, event_count> events_;
};

// The workspaces of one index. Thread-safe.
class Workspaces
{
public:
    // context must outlive the object.
    Workspaces(Context& context, const char* name) : context_(&context), name_(name) {}
    Workspaces(const Workspaces&) = delete;
    Workspaces& operator=(const Workspaces&) = delete;

    // Exclusive use of a workspace, an idle one if possible. Binds the thread to the device. A search that ends in an
    // exception may leave work in the stream: then the workspace is drained and freed.
    class Lease
    {
    public:
        explicit Lease(Workspaces& owner);
        ~Lease();
        Lease(const Lease&) = delete;
        Lease& operator=(const Lease&) = delete;
        Workspace& operator*() const { return *workspace_; }
        Workspace* operator->() const { return workspace_.get(); }

    private:
        Workspaces* owner_;
        int exceptions_;  // exceptions under way when the lease began
        std::unique_ptr<Workspace> workspace_;
    };

    void drop_idle() { idle_.drop(); }

private:
    Context* context_;
    const char* name_;
    IdlePool<Workspace> idle_;
};

}  // namespace pgwarp::cuda
