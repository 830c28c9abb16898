#include "device/workspace.h"

#include <algorithm>
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
constexpr std::size_t least_pinned = std::size_t{64} << 10;

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

void Workspace::shrink()
{
    if (memory_.size() > kept_on_device) memory_ = {};
    if (host_.size() > kept_pinned) host_ = {};
}

Workspaces::Lease::Lease(Workspaces& owner) : owner_(&owner), exceptions_(std::uncaught_exceptions())
{
    check(cudaSetDevice(owner.context_->device()), "choosing the device");
    workspace_ = owner.idle_.take();
    if (workspace_ == nullptr) workspace_ = std::make_unique<Workspace>(*owner.context_, owner.name_);
}

Workspaces::Lease::~Lease()
{
    if (std::uncaught_exceptions() > exceptions_) {
        drain(workspace_->stream());
    } else {
        workspace_->shrink();
        owner_->idle_.put_back(std::move(workspace_));
    }
}

}  // namespace pgwarp::cuda
