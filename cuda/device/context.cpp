#include "device/context.h"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "device/error.h"
#include "device/wait.h"
#include "methods/device_wait.h"

namespace pgwarp::cuda
{

namespace
{

constexpr double default_share = 0.8;  // of the free memory

std::uint64_t budget_for(std::uint64_t asked)
{
    std::size_t free = 0;
    std::size_t total = 0;
    check(cudaMemGetInfo(&free, &total), "asking for free memory");
    return asked != 0 ? asked : static_cast<std::uint64_t>(static_cast<double>(free) * default_share);
}

thread_local int builds_of_thread = 0;
thread_local std::optional<DevicePatience> patience_of_builds;

}  // namespace

Stream::Stream(int, Priority priority)
{
    int least = 0;
    int greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for stream priorities");
    check(
        cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, priority == Priority::search ? greatest : least),
        "making a stream");
}

Stream::~Stream()
{
    (void)cudaStreamDestroy(stream_);
}

void Stream::synchronize() const
{
    wait_for(stream_, "waiting for the device");
}

Context::Context(int device, std::uint64_t budget) : device_(device)
{
    check(cudaSetDevice(device), "choosing the device");
    check(cudaGetDeviceProperties(&properties_, device), "asking for the device's properties");
    pool_ = std::make_unique<MemoryPool>(device, budget_for(budget));
}

Context::~Context() = default;

Context::Build::Build(Context& context) : context_(&context)
{
    ++context.builds_;
    if (++builds_of_thread == 1) patience_of_builds.emplace(build_patience);
}

Context::Build::~Build()
{
    --context_->builds_;
    if (--builds_of_thread == 0) patience_of_builds.reset();
}

Context::Lease Context::lease(Priority priority)
{
    check(cudaSetDevice(device_), "choosing the device");
    if (builds_of_thread > 0) priority = Priority::build;
    std::unique_ptr<Stream> stream = idle_[static_cast<int>(priority)].take();
    if (stream == nullptr) stream = std::make_unique<Stream>(device_, priority);
    return {*this, priority, std::move(stream)};
}

Context::Lease::~Lease()
{
    if (stream_) context_->idle_[static_cast<int>(priority_)].put_back(std::move(stream_));
}

std::vector<std::unique_ptr<Context>>& contexts()
{
    static std::vector<std::unique_ptr<Context>> all;
    return all;
}

Context& roomiest(std::span<const std::unique_ptr<Context>> among)
{
    if (among.empty()) throw std::runtime_error("there is no device");
    return **std::max_element(among.begin(), among.end(),
                              [](const auto& a, const auto& b) { return a->pool().room() < b->pool().room(); });
}

Context& least_busy(std::span<const std::unique_ptr<Context>> among)
{
    if (among.empty()) throw std::runtime_error("there is no device");
    return **std::min_element(among.begin(), among.end(), [](const auto& a, const auto& b) {
        return a->builds() != b->builds() ? a->builds() < b->builds() : a->pool().room() > b->pool().room();
    });
}

}  // namespace pgwarp::cuda
