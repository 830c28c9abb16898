#include "engine/device/device.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <thread>
#include <utility>

#include "engine/server/log.h"
#include "methods/comparisons.h"
#include "numeric/distance.h"

namespace pgwarp
{

namespace
{

// The module lies beside the executable.
std::string module_path()
{
    std::error_code error;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
    return error ? std::string() : (self.parent_path() / "pgwarp-cuda.so").string();
}

}  // namespace

std::unique_ptr<Device> Device::open(const EngineOptions& options, std::size_t threads)
{
    std::unique_ptr<Device> device(new Device);
    if (options.device != DeviceChoice::cpu) {
        std::string why;
        if (device->open_module(options, why)) return device;
        if (options.device == DeviceChoice::cuda) throw std::runtime_error("no CUDA device: " + why);
        log_line(LogLevel::debug, "serving on the CPU: " + why);
    }
    device->description_ = std::string("cpu (") + simd_target() + ", " + std::to_string(threads) +
                           (threads == 1 ? " thread)" : " threads)");
    return device;
}

bool Device::open_module(const EngineOptions& options, std::string& why)
{
    const std::string path = module_path();
    library_ = path.empty() ? nullptr : ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) {
        const char* error = ::dlerror();
        why = error != nullptr ? error : "the engine's own path is unknown";
        return false;
    }
    const auto entry = reinterpret_cast<PgwarpDeviceEntry>(::dlsym(library_, PGWARP_DEVICE_ENTRY));
    const PgwarpDeviceModule* module = entry != nullptr ? entry(PGWARP_DEVICE_ABI) : nullptr;
    if (module == nullptr || module->abi != PGWARP_DEVICE_ABI || std::strcmp(module->build, build_name) != 0) {
        why = "\"" + path + "\" belongs to another version";
        return false;
    }
    char text[256] = "";
    if (module->open(options.gpus.c_str(), options.memory, text, sizeof(text)) != 0) {
        why = text;
        return false;
    }
    module_ = module;
    module->describe(text, sizeof(text));
    description_ = text;
    return true;
}

Device::~Device()
{
    // The library stays open: unloading a CUDA runtime is not safe.
    if (module_ != nullptr) module_->close();
}

void Device::set_relief(Relief relief)
{
    relief_ = std::move(relief);
    if (module_ == nullptr) return;
    const auto call = [](void* what, std::int32_t gpu, std::uint64_t bytes) {
        (*static_cast<const Relief*>(what))(gpu, bytes);
    };
    if (relief_) {
        module_->set_relief(call, &relief_);
    } else {
        module_->set_relief(nullptr, nullptr);
    }
}

std::vector<PgwarpDeviceMemory> Device::memory() const
{
    constexpr std::uint32_t most = 64;
    std::vector<PgwarpDeviceMemory> devices(module_ != nullptr ? most : 0);
    if (module_ != nullptr) devices.resize(std::min(most, module_->memory(devices.data(), most)));
    return devices;
}

DeviceClock::duration Device::patience_left() const
{
    // The module has its own table of waits.
    const DeviceClock::duration own = pgwarp::patience_left();
    if (module_ == nullptr) return own;
    return std::min(own, DeviceClock::duration(std::chrono::nanoseconds(module_->patience_left())));
}

void Device::hang(std::chrono::seconds duration) const
{
    if (module_ != nullptr && module_->hang != nullptr) {
        return module_->hang(static_cast<std::uint32_t>(duration.count()));
    }
    const DeviceWait waiting;
    std::this_thread::sleep_for(duration);
}

const MethodFactory* Device::method(Method method, MirrorDevice on, bool& on_cuda) const
{
    const bool ask = module_ != nullptr && on == MirrorDevice::best;
    const MethodFactory* found = ask ? module_->find_method(static_cast<std::uint8_t>(method)) : nullptr;
    on_cuda = found != nullptr;
    return found != nullptr ? found : find_method(method);
}

const MethodFactory& Device::require_method(const IndexShape& shape, MirrorDevice on, bool& on_cuda) const
{
    const MethodDescription* description = find_description(shape.method);
    // A method without a description, such as k-means, makes no index, and takes dense rows.
    if (description != nullptr ? !compares(*description, shape.element, static_cast<Metric>(shape.metric))
                               : is_list(shape.element))
        throw BadRequest("this index method compares no such rows by such a metric");
    const MethodFactory* found = method(shape.method, on, on_cuda);
    if (on_cuda && !device_serves(*found, shape)) found = method(shape.method, MirrorDevice::cpu, on_cuda);
    if (found == nullptr) throw BadRequest("this engine doesn't know the index method");
    return *found;
}

}  // namespace pgwarp
