// The interface to the engine: opens the devices and names the methods that they serve.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>

#include "device/context.h"
#include "device/error.h"
#include "device/hang.h"
#include "methods.h"
#include "methods/device_module.h"
#include "methods/device_wait.h"
#include "methods/method.h"
#include "protocol/messages.h"

namespace pgwarp::cuda
{

namespace
{

// gpus: numbers separated by commas, "0,1"; empty: all devices. Throws std::invalid_argument.
std::vector<int> chosen_devices(const std::string& gpus)
{
    int count = 0;
    check(cudaGetDeviceCount(&count), "looking for devices");
    std::vector<int> devices;
    if (gpus.empty()) {
        for (int i = 0; i < count; ++i) devices.push_back(i);
        return devices;
    }
    std::istringstream numbers(gpus);
    for (std::string number; std::getline(numbers, number, ',');) {
        std::size_t end = 0;
        const int device = std::stoi(number, &end);
        if (end != number.size() || device < 0 || device >= count)
            throw std::invalid_argument("there is no device \"" + number + "\"");
        if (std::find(devices.begin(), devices.end(), device) == devices.end()) devices.push_back(device);
    }
    return devices;
}

int open(const char* gpus, std::uint64_t memory, char* message, std::size_t message_bytes)
{
    try {
        for (const int device : chosen_devices(gpus)) {
            contexts().push_back(std::make_unique<Context>(device, memory));
            check_architecture(*contexts().back());
        }
        if (contexts().empty()) throw std::runtime_error("there is no device");
        exit_on_sticky_errors();
        return 0;
    } catch (const std::exception& error) {
        contexts().clear();
        std::snprintf(message, message_bytes, "%s", error.what());
        return 1;
    }
}

void close()
{
    contexts().clear();
}

void describe(char* text, std::size_t text_bytes)
{
    const std::size_t count = contexts().size();
    if (count == 1) {
        std::snprintf(text, text_bytes, "cuda (%s)", contexts().front()->name().c_str());
    } else {
        std::snprintf(text, text_bytes, "cuda (%zu x %s)", count, contexts().front()->name().c_str());
    }
}

const MethodFactory* find(std::uint8_t method)
{
    return cuda::find_method(static_cast<Method>(method));
}

void set_relief(void (*relief)(void*, std::int32_t, std::uint64_t), void* what)
{
    for (const auto& context : contexts()) {
        if (relief == nullptr) {
            context->pool().set_relief(nullptr);
        } else {
            context->pool().set_relief(
                [relief, what, gpu = context->device()](std::uint64_t bytes) { relief(what, gpu, bytes); });
        }
    }
}

std::uint32_t memory_of_devices(PgwarpDeviceMemory* devices, std::uint32_t most)
{
    const auto& all = contexts();
    for (std::size_t i = 0; i < all.size() && i < most; ++i) {
        devices[i] = {all[i]->device(), all[i]->builds(), all[i]->pool().used(), all[i]->pool().budget()};
    }
    return static_cast<std::uint32_t>(all.size());
}

std::int64_t nanoseconds_left()
{
    return std::chrono::nanoseconds(patience_left()).count();
}

#ifdef PGWARP_FAULTS
void hang_first(std::uint32_t seconds)
{
    hang(*contexts().front(), seconds);
}
#else
constexpr void (*hang_first)(std::uint32_t) = nullptr;
#endif

constexpr PgwarpDeviceModule module = {.abi = PGWARP_DEVICE_ABI,
                                       .reserved = 0,
                                       .build = build_name,
                                       .open = open,
                                       .close = close,
                                       .describe = describe,
                                       .set_relief = set_relief,
                                       .memory = memory_of_devices,
                                       .pinned = pinned_bytes,
                                       .patience_left = nanoseconds_left,
                                       .hang = hang_first,
                                       .find_method = find};

}  // namespace

}  // namespace pgwarp::cuda

extern "C" __attribute__((visibility("default"))) const PgwarpDeviceModule* pgwarp_device_module(std::uint32_t abi)
{
    return abi == PGWARP_DEVICE_ABI ? &pgwarp::cuda::module : nullptr;
}
