#include "device/workspace.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>

#include "device/error.h"
#include "device/wait.h"

namespace pgwarp::cuda
{

namespace
{

constexpr std::size_t kept_on_device = std::size_t{64} << 20;
constexpr std::size_t kept_pinned = std::size_t{256} << 20;  // locking pages costs more than most searches
constexpr std::size_t kept_pinned_together = std::size_t{1} << 30;
constexpr std::size_t least_pinned = std::size_t{64} << 10;

// Page-locked bytes of idle workspaces, of all indexes.
std::atomic<std::size_t> idle_pinned{0};

}  // namespace

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

Workspace::~Workspace()
{
    end_idling();
}

void Workspace::begin_idling()
{
    if (memory_.size() > kept_on_device) memory_ = {};
    idle_bytes_ = host_.size();
    const std::size_t together = idle_pinned.fetch_add(idle_bytes_) + idle_bytes_;
    if (idle_bytes_ <= kept_pinned && together <= kept_pinned_together) return;
    end_idling();
    host_ = {};
}

void Workspace::end_idling()
{
    idle_pinned.fetch_sub(std::exchange(idle_bytes_, 0));
}

Workspaces::Lease::Lease(Workspaces& owner) : owner_(&owner), exceptions_(std::uncaught_exceptions())
{
    check(cudaSetDevice(owner.context_->device()), "choosing the device");
    workspace_ = owner.idle_.take();
    if (workspace_ != nullptr) {
        workspace_->end_idling();
    } else {
        workspace_ = std::make_unique<Workspace>(*owner.context_, owner.name_);
    }
}

Workspaces::Lease::~Lease()
{
    if (std::uncaught_exceptions() > exceptions_) {
        drain(workspace_->stream());
    } else {
        workspace_->begin_idling();
        owner_->idle_.put_back(std::move(workspace_));
    }
}

}  // namespace pgwarp::cuda
