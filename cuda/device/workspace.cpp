#include "device/workspace.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "device/error.h"
#include "device/wait.h"

namespace pgwarp::cuda
{

namespace
{

constexpr std::size_t kept_on_device = std::size_t{64} << 20;
constexpr std::size_t kept_pinned = std::size_t{256} << 20;  // locking pages costs more than most searches
constexpr std::size_t least_pinned = std::size_t{64} << 10;

}  // namespace

Event::~Event()
{
    if (event_ != nullptr) (void)cudaEventDestroy(event_);
}

void Event::record(cudaStream_t stream)
{
    if (event_ == nullptr) check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "making an event");
    check(cudaEventRecord(event_, stream), "recording an event");
}

void Event::wait(const char* waiting) const
{
    wait_for(event_, waiting);
}

Workspace::Workspace(Context& context, const char* name)
    : pool_(&context.pool()), name_(name), stream_(context.lease(Priority::search))
{
}

std::byte* Workspace::device(std::size_t bytes)
{
    if (memory_.size() < bytes) {
        memory_ = {};
        memory_ = DeviceArray<std::byte>(*pool_, bytes, name_, stream_);
    }
    return memory_.data();
}

std::byte* Workspace::pinned(std::size_t bytes)
{
    if (host_.size() < bytes) {
        host_ = {};
        host_ = PinnedArray<std::byte>(std::max(bytes, least_pinned));
    }
    return host_.data();
}

void Workspace::shrink()
{
    if (memory_.size() > kept_on_device) memory_ = {};
    if (host_.size() > kept_pinned) host_ = {};
}

Workspaces::Lease::Lease(Workspaces& owner)
    : owner_(&owner), exceptions_(std::uncaught_exceptions()), workspace_(owner.take())
{
}

Workspaces::Lease::~Lease()
{
    if (std::uncaught_exceptions() > exceptions_) {
        drain(workspace_->stream());
    } else {
        owner_->put_back(std::move(workspace_));
    }
}

std::unique_ptr<Workspace> Workspaces::take()
{
    check(cudaSetDevice(context_->device()), "choosing the device");
    {
        const std::lock_guard lock(mutex_);
        if (!idle_.empty()) {
            auto workspace = std::move(idle_.back());
            idle_.pop_back();
            return workspace;
        }
    }
    return std::make_unique<Workspace>(*context_, name_);
}

// Where the list of idle ones cannot grow, the workspace is freed.
void Workspaces::put_back(std::unique_ptr<Workspace> workspace) noexcept
{
    workspace->shrink();
    try {
        const std::lock_guard lock(mutex_);
        idle_.push_back(std::move(workspace));
    } catch (const std::bad_alloc&) {
    }
}

void Workspaces::drop_idle()
{
    std::vector<std::unique_ptr<Workspace>> dropped;  // freed without the lock
    const std::lock_guard lock(mutex_);
    dropped.swap(idle_);
}

}  // namespace pgwarp::cuda
