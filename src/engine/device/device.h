// The device that serves: the CPU, or the CUDA module where there is one.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/server/options.h"
#include "methods/device_module.h"
#include "methods/device_wait.h"
#include "methods/method.h"
#include "protocol/messages.h"

namespace pgwarp
{

class Device
{
public:
    // Opens the device that the options choose. auto never fails; cuda throws std::runtime_error when there is none.
    static std::unique_ptr<Device> open(const EngineOptions& options, std::size_t threads);
    virtual ~Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    // "cpu (AVX2, 2 threads)"
    const std::string& description() const { return description_; }
    virtual bool on_cuda() const { return module_ != nullptr; }

    // Called before an allocation of `bytes` fails on a GPU, to free memory there; null = none. See device_module.h.
    using Relief = std::function<void(std::int32_t gpu, std::uint64_t bytes)>;
    virtual void set_relief(Relief relief);
    // The memory of each GPU that serves; none on the CPU.
    virtual std::vector<PgwarpDeviceMemory> memory() const;

    // Time left to the search that waits for a device and is closest to its deadline; negative: overdue, the device
    // hangs. See methods/device_wait.h. Any thread, at any time; a hung device doesn't delay it.
    DeviceClock::duration patience_left() const;
    // For tests: waits as for a device that hangs for `duration`.
    void hang(std::chrono::seconds duration) const;

    // The factory to build and search with, and whether it is of the GPU. Null for an unknown method.
    virtual const MethodFactory* method(Method method, MirrorDevice on, bool& on_cuda) const;
    // The same for an index; throws BadRequest when it can't be served. Methods need not check elements and metrics:
    // every builder and searcher of a request's shape is made by a factory from here.
    const MethodFactory& require_method(const IndexShape& shape, MirrorDevice on, bool& on_cuda) const;

protected:
    Device() = default;

private:
    bool open_module(const EngineOptions& options, std::string& why);

    void* library_ = nullptr;
    const PgwarpDeviceModule* module_ = nullptr;
    std::string description_;
    Relief relief_;
};

}  // namespace pgwarp
